package l7

import (
	"cmp"
	"slices"
	"time"

	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/h2"
)

// receive judges a request's head and begins the request. The caller holds the lock.
func (x *call) receive(d *h2.Decoder, b *batch) {
	if d.TooLarge {
		x.refuse(reason.HeadTooLarge, b)
		return
	}
	h, err := h2.ParseRequest(d.Fields)
	if err == nil && x.near.finished && h.Length > 0 {
		err = h2.MalformedError("Content-Length without DATA")
	}
	if err != nil {
		x.fault = h2.ProtocolError
		x.refuse(reason.MalformedRequest, b)
		return
	}
	x.asked = request{
		method: h.Method, target: h.Path, authority: h.Authority, version: http2Version,
		fields: fields{list: append(x.asked.fields.list[:0], h.Fields...)},
	}
	x.length = h.Length
	x.run(b)
}

func (l *link) onReset(f *h2.Frame, b *batch) error {
	x := l.find(f.Stream)
	if x == nil {
		if l.isIdle(f.Stream) {
			return connectionFault(h2.ProtocolError, "RST_STREAM on a stream that did not begin")
		}
		return l.cost(otherFrames)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	switch x.legOn(l, f.Stream) {
	case &x.near:
		isRapid := x.clock()-x.start < rapid && !x.answering
		x.clientLeft(b)
		if isRapid {
			return l.cost(resetStreams)
		}
	case &x.far:
		x.farReset(f.Code(), b)
	}
	return nil
}

func (l *link) onSettings(f *h2.Frame, b *batch) error {
	if f.Has(h2.Ack) {
		return nil
	}
	if err := l.cost(settings); err != nil {
		return err
	}
	l.begun = true
	l.mu.Lock()
	before := l.peer
	if err := l.peer.Apply(f.Payload); err != nil {
		l.mu.Unlock()
		return err
	}
	l.settled = true
	if l.peer.HeaderTable != before.HeaderTable {
		l.encoder.SetTableSize(l.peer.HeaderTable)
	}
	if !l.ended {
		out := l.bufferLocked()
		l.noteLocked(out, h2.AppendSettingsAck(out.b), b)
	}
	delta := l.peer.Window - before.Window
	var resized []waiter
	if delta != 0 {
		resized = l.callsLocked(nil)
	}
	l.mu.Unlock()
	if l.origin != nil && l.origin.hungry.Load() > 0 {
		b.serve(l.origin)
	}
	for _, w := range resized {
		if err := l.widen(w.call, w.id, delta, b); err != nil {
			return connectionFault(h2.FlowControlError, "SETTINGS_INITIAL_WINDOW_SIZE makes a window too large")
		}
	}
	return nil
}

// widen changes what the peer lets a call send.
func (l *link) widen(x *call, id uint32, by int64, b *batch) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	g := x.legOn(l, id)
	if g == nil {
		return nil
	}
	if g.window += by; g.window > h2.MaxWindow {
		return &h2.Error{Code: h2.FlowControlError, Stream: id, Fault: "a window above 2^31-1"}
	}
	if by > 0 {
		x.goOn(g, b)
	}
	return nil
}

func (l *link) onWindowUpdate(f *h2.Frame, b *batch) error {
	n, err := f.Increment()
	if err != nil {
		return err
	}
	if n < smallUpdate {
		if err := l.cost(windowUpdates); err != nil {
			return err
		}
	}
	if f.Stream != 0 {
		if x := l.find(f.Stream); x != nil {
			return l.widen(x, f.Stream, n, b)
		}
		if l.isIdle(f.Stream) {
			return connectionFault(h2.ProtocolError, "WINDOW_UPDATE on a stream that did not begin")
		}
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.window += n; l.window > h2.MaxWindow {
		return connectionFault(h2.FlowControlError, "a window above 2^31-1")
	}
	if len(l.waiting) > 0 {
		l.dirtyLocked(b) // who writes lets them go on
	}
	return nil
}

// farewellPing marks the PING that follows the announcement of the end: once it is answered, all that the client began before is here.
func farewellPing() [8]byte { return [8]byte{'w', 'e', 'i', 'r', 'g', 'o', 'n', 'e'} }

func (l *link) onPing(f *h2.Frame, b *batch) error {
	data := [8]byte(f.Payload)
	if f.Has(h2.Ack) {
		l.mu.Lock()
		l.pingAt = 0
		last := l.leaving == announced && data == farewellPing()
		l.mu.Unlock()
		if last {
			l.nameLast(b)
		}
		return nil
	}
	if err := l.cost(pings); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		out := l.bufferLocked()
		l.noteLocked(out, h2.AppendPing(out.b, h2.Ack, data), b)
	}
	return nil
}

// onGoAway ends what the endpoint will not process; a client that says it will just close.
func (l *link) onGoAway(f *h2.Frame, b *batch) error {
	if l.origin == nil {
		return l.cost(otherFrames)
	}
	l.origin.withdraw(l)
	last := f.LastStream()
	var refused []waiter
	l.mu.Lock()
	l.leaving = max(l.leaving, going)
	for id, x := range l.calls {
		if id > last {
			refused = append(refused, waiter{x, id})
		}
	}
	if len(l.calls) == 0 && !l.ended {
		l.farewellLocked(gone, b)
	}
	l.mu.Unlock()
	inOrder(refused)
	for _, w := range refused {
		w.call.mu.Lock()
		if g := w.call.legOn(l, w.id); g != nil {
			g.leave(byPeer, b)
			w.call.farLost(true, b)
		}
		w.call.mu.Unlock()
	}
	return nil
}

// inOrder sorts calls by their streams: those that began first are sent again first, so that none is unlucky for ever.
func inOrder(calls []waiter) {
	slices.SortFunc(calls, func(a, b waiter) int { return cmp.Compare(a.id, b.id) })
}

// announce is the first step of an orderly end: no request is lost that the client has sent meanwhile.
func (l *link) announce(b *batch) {
	if l.arrival == nil {
		return // connections to endpoints end with the last client
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leaving != staying || l.ended {
		return
	}
	l.leaving, l.leftAt = announced, l.streams.now()
	out := l.bufferLocked()
	grown := h2.AppendGoAway(out.b, h2.MaxStream, h2.NoError, "")
	l.noteLocked(out, h2.AppendPing(grown, 0, farewellPing()), b)
}

// nameLast is the second step: what begins from now on is refused, and with the last stream the connection ends.
func (l *link) nameLast(b *batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leaving < going && !l.ended {
		l.nameLastLocked(b)
	}
}

func (l *link) nameLastLocked(b *batch) {
	l.leaving = going
	l.goAwayLocked(h2.NoError, "", b)
	if len(l.calls) == 0 {
		l.farewellLocked(gone, b)
	}
}

// goAwayLocked says which stream was the last, and why.
func (l *link) goAwayLocked(code h2.Code, text string, b *batch) {
	out := l.bufferLocked()
	l.noteLocked(out, h2.AppendGoAway(out.b, l.last.Load(), code, text), b)
}

// goAway tells the peer what it did wrong.
func (l *link) goAway(fault *h2.Error, b *batch) {
	l.mu.Lock()
	if !l.ended {
		l.goAwayLocked(fault.Code, fault.Fault, b)
		l.farewellLocked(gone, b)
	}
	l.mu.Unlock()
	l.streams.report(l, fault)
}

// retire lets a link to an endpoint end with its last stream.
func (l *link) retire(b *batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leaving = max(l.leaving, going)
	if len(l.calls) == 0 && !l.ended {
		l.farewellLocked(gone, b)
	}
}

// farLost goes on when the connection to the endpoint broke, or will not carry the stream; untouched says that the endpoint has seen
// nothing of the request, or says that it did not process it.
func (x *call) farLost(untouched bool, b *batch) {
	switch {
	case x.bodiless && x.near.ended:
		x.closeTicket(x.done.Outcome)
		x.settle(b)
	case untouched && !x.answering:
		x.refused(b)
	default:
		x.broken(h2.InternalError, b)
	}
}

// report logs why a connection was ended by us. A client that floods is worth a line; it pays with a connection for each.
func (s *streams) report(l *link, fault *h2.Error) {
	side, address := "client", ""
	if l.origin != nil {
		side, address = "endpoint", l.origin.addr.String()
	} else {
		address = l.arrival.client.remote.String()
	}
	if fault.Code == h2.EnhanceYourCalm {
		if l.arrival != nil {
			l.arrival.observer.Request(Result{Protocol: H2C, Status: NoStatus, Outcome: pick.Canceled, Reason: reason.ClientFlood})
		}
		s.floods.Add(1)
		if now, last := s.now(), time.Duration(s.logged.Load()); now-last >= time.Second && s.logged.CompareAndSwap(int64(last), int64(now)) {
			s.options.Logger.Warn("connection closed", "peer", side, "address", address, "fault", fault.Fault, "closed_so_far", s.floods.Load())
		}
		return
	}
	s.options.Logger.Debug("connection closed", "peer", side, "address", address, "code", fault.Code.String(), "fault", fault.Fault)
}

// reportStray logs that an endpoint sent bytes that nothing asked for: at most one line a second.
func (s *streams) reportStray(c *outbound) {
	s.strays.Add(1)
	if now, last := s.now(), time.Duration(s.logged.Load()); now-last >= time.Second && s.logged.CompareAndSwap(int64(last), int64(now)) {
		s.options.Logger.Warn("connection closed", "endpoint", c.origin.addr.String(),
			"fault", "bytes after the end of an answer", "closed_so_far", s.strays.Load())
	}
}
