package l7

import (
	"errors"

	"github.com/weir-lb/weir/internal/h2"
)

// read handles what the peer sends until the connection ends, and then ends the link.
func (l *link) read() {
	var b batch
	err := l.handleAll(&b)
	for err == nil {
		b.flush()
		if err = l.fill(&l.streams.buffers); err != nil {
			break
		}
		l.heard.Store(l.streams.coarse.Load())
		err = l.handleAll(&b)
	}
	l.end(err, &b)
}

// handleAll handles all frames that are there whole.
func (l *link) handleAll(b *batch) error {
	in, used := l.bytes(), 0
	for {
		f, n, err := h2.Next(in[used:])
		if n == 0 || err != nil {
			l.consume(used)
			return err
		}
		used += n
		if err := l.handle(&f, b); err != nil {
			fault, ok := errors.AsType[*h2.Error](err)
			if !ok || fault.Stream == 0 {
				return err
			}
			l.fault(fault, b)
		}
	}
}

// fault ends a stream that the peer did wrong on.
func (l *link) fault(fault *h2.Error, b *batch) {
	if x := l.find(fault.Stream); x != nil {
		x.mu.Lock()
		defer x.mu.Unlock()
		switch x.legOn(l, fault.Stream) {
		case &x.near:
			x.clientBroke(fault.Code, b)
			return
		case &x.far:
			x.broken(fault.Code, b)
			return
		}
	}
	l.reset(fault.Stream, fault.Code, b)
}

func connectionFault(code h2.Code, fault string) error { return &h2.Error{Code: code, Fault: fault} }

// handle does what a frame asks for.
func (l *link) handle(f *h2.Frame, b *batch) error {
	if block := l.decoder.Stream(); block != 0 && (f.Type != h2.Continuation || f.Stream != block) {
		return connectionFault(h2.ProtocolError, "a frame within a header block")
	}
	if !l.begun && (f.Type != h2.SettingsType || f.Has(h2.Ack)) {
		return connectionFault(h2.ProtocolError, "a connection that does not begin with SETTINGS")
	}
	switch f.Type {
	case h2.Data:
		return l.onData(f, b)
	case h2.Headers, h2.Continuation:
		return l.onHeaders(f, b)
	case h2.Reset:
		return l.onReset(f, b)
	case h2.SettingsType:
		return l.onSettings(f, b)
	case h2.Ping:
		return l.onPing(f, b)
	case h2.GoAway:
		return l.onGoAway(f, b)
	case h2.WindowUpdate:
		return l.onWindowUpdate(f, b)
	case h2.PushPromise:
		return connectionFault(h2.ProtocolError, "PUSH_PROMISE")
	case h2.Priority:
		if err := l.cost(otherFrames); err != nil {
			return err
		}
		return f.CheckPriority()
	default:
		return l.cost(otherFrames)
	}
}

func (l *link) onData(f *h2.Frame, b *batch) error {
	body, _, err := f.Body()
	if err != nil {
		return err
	}
	size := int64(len(f.Payload))
	if l.room -= size; l.room < 0 {
		return connectionFault(h2.FlowControlError, "more DATA than the connection's window")
	}
	// All that arrives counts, also for a stream that was reset just now.
	if l.unread += size; l.unread >= linkWindow/2 {
		l.windowUpdate(0, uint32(l.unread), b) //nolint:gosec // at most the window
		l.room += l.unread
		l.unread = 0
	}
	if len(body) > 0 || f.Has(h2.EndStream) {
		l.eager.Store(true)
		l.flood.pay()
	} else if err := l.cost(emptyData); err != nil {
		return err
	}
	x := l.find(f.Stream)
	if x == nil {
		return l.stray(f, "DATA")
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	switch x.legOn(l, f.Stream) {
	case &x.near:
		if err := x.body(f, b); err != nil {
			x.clientBroke(codeOf(err), b)
		}
	case &x.far:
		x.data(f, b)
	}
	return nil
}

func codeOf(err error) h2.Code {
	if fault, ok := errors.AsType[*h2.Error](err); ok {
		return fault.Code
	}
	return h2.InternalError
}

// isIdle tells whether a stream has not begun yet.
func (l *link) isIdle(id uint32) bool {
	if l.origin == nil {
		return id%2 == 0 || id > l.last.Load()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return id%2 == 0 || id >= l.next
}

// stray judges a frame on a stream that is not there any more. What was under way when we reset it is ignored.
func (l *link) stray(f *h2.Frame, what string) error {
	if l.isIdle(f.Stream) {
		return connectionFault(h2.ProtocolError, what+" on a stream that did not begin")
	}
	l.mu.Lock()
	known, ours := l.resets.has(f.Stream)
	l.mu.Unlock()
	switch {
	case ours:
		return nil
	case f.Type == h2.Headers && !known:
		return connectionFault(h2.StreamClosed, what+" on a closed stream")
	default:
		return &h2.Error{Code: h2.StreamClosed, Stream: f.Stream, Fault: what + " on a closed stream"}
	}
}

func (l *link) onHeaders(f *h2.Frame, b *batch) error {
	if f.Type == h2.Continuation && l.decoder.Stream() == 0 {
		return connectionFault(h2.ProtocolError, "CONTINUATION without HEADERS")
	}
	if f.Type == h2.Headers && f.Stream%2 == 0 {
		return connectionFault(h2.ProtocolError, "HEADERS on a stream with an even number")
	}
	complete, err := l.decoder.Add(f)
	if err != nil {
		return err
	}
	l.timeBlock(complete)
	if !complete {
		return nil
	}
	l.eager.Store(true)
	l.flood.pay()
	return l.onBlock(f, b)
}

// timeBlock starts or stops the clock of a header block.
func (l *link) timeBlock(complete bool) {
	limit := l.streams.options.Timeouts.Head
	switch running := l.blockBy.Load() != 0; {
	case complete && running:
		l.blockBy.Store(0)
	case !complete && !running && limit > 0:
		l.blockBy.Store(int64(l.streams.now() + limit))
	}
}

// onBlock does what a header block asks for, of which f is the last frame.
func (l *link) onBlock(f *h2.Frame, b *batch) error {
	x := l.find(f.Stream)
	if x == nil {
		if l.origin == nil && f.Stream > l.last.Load() {
			l.accept(f.Stream, b)
			return nil
		}
		return l.stray(&h2.Frame{Type: h2.Headers, Stream: f.Stream}, "HEADERS")
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	switch x.legOn(l, f.Stream) {
	case &x.near:
		if err := l.requestTrailer(x, b); err != nil {
			x.clientBroke(codeOf(err), b)
		}
	case &x.far:
		l.onResponse(x, b)
	}
	return nil
}

// onResponse takes a response's head or trailer section in. A malformed one is as good as none.
func (l *link) onResponse(x *call, b *batch) {
	d := l.decoder
	switch {
	case d.TooLarge:
		x.broken(h2.Cancel, b)
	case !x.answering:
		var err error
		if x.heard, err = h2.ParseResponse(d.Fields); err != nil {
			x.broken(h2.ProtocolError, b)
			return
		}
		var flags h2.Flags
		if d.EndsStream() {
			flags = h2.EndStream
		}
		x.response(flags, b)
	case !d.EndsStream() || h2.CheckTrailer(d.Fields) != nil:
		x.cutShort(b)
	default:
		x.responseTrailer(d.Fields, b)
	}
}

// requestTrailer takes a trailer section in.
func (l *link) requestTrailer(x *call, b *batch) error {
	if !x.near.finished && (!l.decoder.EndsStream() || l.decoder.TooLarge) {
		return &h2.Error{Code: h2.ProtocolError, Stream: x.near.id, Fault: "a trailer section that is too large, or not the end"}
	}
	return x.bodyTrailer(l.decoder.Fields, b)
}

// accept begins a request.
func (l *link) accept(id uint32, b *batch) {
	x, _ := l.streams.calls.Get().(*call)
	x.mu.Lock()
	defer x.mu.Unlock()
	l.mu.Lock()
	l.last.Store(id)
	limit := l.streams.options.Limits.Streams
	if l.leaving >= going || l.ended || over(len(l.calls)+1, limit) {
		l.resets.add(id, byUs)
		l.mu.Unlock()
		l.reset(id, h2.RefusedStream, b)
		l.streams.calls.Put(x)
		return
	}
	l.calls[id] = x
	window := l.peer.Window
	l.mu.Unlock()
	x.begin(&l.outlet, id, window)
	x.near.finished = l.decoder.EndsStream()
	x.far.last = x.near.finished
	x.receive(l.decoder, b)
}
