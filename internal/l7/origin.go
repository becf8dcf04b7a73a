package l7

import (
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// origin is one endpoint's connections, and the calls that wait for an HTTP/2 one. It is safe for concurrent use.
//
// Locks: a call's before an origin's, and that before a link's.
type origin struct {
	streams *streams
	addr    netip.AddrPort
	links   atomic.Pointer[[]*link] // those that may take another stream; replaced whole
	hungry  atomic.Int32            // how many calls wait
	gone    atomic.Bool             // the endpoint was removed: links close with their last stream

	mu      sync.Mutex
	all     map[*link]struct{} // those in links, and those that finish what they have
	waiting []applicant
	dialing int
	kept    []*outbound // HTTP/1 connections that nothing uses, the one that was used last at the end
}

// applicant is a call that waits for a stream. Its number tells whether it is still the same call.
type applicant struct {
	call *call
	life uint64
}

const (
	// dialsAtOnce bounds how many connections to one endpoint are made at the same time.
	dialsAtOnce = 4
	// linksMost bounds how many connections one endpoint gets, whatever little it takes on each.
	linksMost = 256
	// streamsAssumed is how many streams a new connection is expected to take before the endpoint has said: what RFC 9113 section 6.5.2
	// recommends as the least.
	streamsAssumed = 100
)

// open gives the call a stream, or lets it wait for one; it tells which. The caller holds the call's lock.
func (o *origin) open(x *call, b *batch) bool {
	if o.tryOpen(x, b) {
		return true
	}
	o.mu.Lock()
	o.waiting = append(o.waiting, applicant{x, x.life})
	o.hungry.Add(1)
	x.applied = true
	if o.tryOpen(x, b) { // a stream became free in between, and nobody saw the call wait
		o.waiting = o.waiting[:len(o.waiting)-1]
		o.hungry.Add(-1)
		x.applied = false
		o.mu.Unlock()
		return true
	}
	need := o.dialing < dialsAtOnce && len(o.all) < linksMost && o.dialing*streamsAssumed < len(o.waiting)
	if need {
		o.dialing++
	}
	o.mu.Unlock()
	if need {
		// It does not start after the server's end, when the call's client is being cut.
		_ = o.streams.running.start(o.dial)
	}
	return false
}

func (o *origin) tryOpen(x *call, b *batch) bool {
	links := o.links.Load()
	if links == nil {
		return false
	}
	for _, l := range *links {
		if l.open(x, b) {
			return true
		}
	}
	return false
}

// dial makes one more connection.
func (o *origin) dial() {
	var b batch
	start := time.Now()
	conn, err := o.streams.dialer.DialContext(o.streams.life, "tcp", o.addr.String())
	if err != nil {
		o.dialed(nil, err, &b)
		b.flush()
		return
	}
	l := o.streams.newLink(newSocket(conn, nil))
	l.origin = o
	l.startFar(&b)
	o.took(time.Since(start))
	o.dialed(l, nil, &b)
	b.flush()
	l.read()
}

// took tells the call that waits longest how long the connection took.
func (o *origin) took(d time.Duration) {
	o.mu.Lock()
	var first applicant
	if len(o.waiting) > 0 {
		first = o.waiting[0]
	}
	o.mu.Unlock()
	if first.call == nil {
		return
	}
	first.call.mu.Lock()
	defer first.call.mu.Unlock()
	if first.call.life == first.life && first.call.applied {
		first.call.connected(max(d, time.Nanosecond))
	}
}

// dialed takes a new link in, or tells those that wait that there is none.
func (o *origin) dialed(l *link, err error, b *batch) {
	o.mu.Lock()
	o.dialing--
	if l != nil {
		if o.all == nil {
			o.all = make(map[*link]struct{})
		}
		o.all[l] = struct{}{}
		o.offerLocked(l)
	}
	var failed []applicant
	if l == nil && o.dialing == 0 {
		failed = o.waiting
		o.waiting = nil
		o.hungry.Store(0)
	}
	o.mu.Unlock()
	for _, a := range failed {
		a.call.notConnected(a.life, endingOf(err), b)
	}
	o.serve(b)
	if l != nil && o.gone.Load() {
		o.withdraw(l)
		l.retire(b)
	}
}

// offerLocked lets calls open streams on a link, if the endpoint is still wanted.
func (o *origin) offerLocked(l *link) {
	var links []*link
	if old := o.links.Load(); old != nil {
		links = *old
	}
	links = append(slices.Clone(links), l)
	o.links.Store(&links)
}

// withdraw takes a link out: no stream begins there any more.
func (o *origin) withdraw(l *link) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.withdrawLocked(l)
}

func (o *origin) withdrawLocked(l *link) {
	if old := o.links.Load(); old != nil && slices.Contains(*old, l) {
		links := slices.DeleteFunc(slices.Clone(*old), func(other *link) bool { return other == l })
		o.links.Store(&links)
	}
}

// lost forgets a link that has ended.
func (o *origin) lost(l *link) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.withdrawLocked(l)
	delete(o.all, l)
}

// serve gives streams to calls that wait, as long as there are any, and dials for the rest.
func (o *origin) serve(b *batch) {
	for range o.hungry.Load() {
		o.mu.Lock()
		if len(o.waiting) == 0 {
			o.mu.Unlock()
			return
		}
		a := o.waiting[0]
		o.waiting = slices.Delete(o.waiting, 0, 1)
		o.hungry.Add(-1)
		o.mu.Unlock()
		if waits := a.call.admitted(a.life, o, b); waits {
			return
		}
	}
}

// retire closes the origin's links, each when its last stream has ended.
func (o *origin) retire(b *batch) {
	o.gone.Store(true)
	o.mu.Lock()
	links := make([]*link, 0, len(o.all))
	for l := range o.all {
		o.withdrawLocked(l)
		links = append(links, l)
	}
	kept := o.kept
	o.kept = nil
	o.mu.Unlock()
	for _, l := range links {
		l.retire(b)
	}
	for _, c := range kept {
		_ = c.Close()
	}
}
