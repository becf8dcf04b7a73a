package l7

import (
	"context"
	"io"
	"maps"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/h2"
)

// streams is the engine for HTTP. Each connection has one goroutine, which reads; it does what its frames or messages ask for and then writes
// what that gave the other connections.
type streams struct {
	shared   *shared
	options  *Options
	texts    map[reason.Code]string
	running  *tasks
	stopping *atomic.Bool
	life     context.Context //nolint:containedctx // the server's own, for dials
	dialer   net.Dialer
	buffers  buffers
	calls    sync.Pool // of *call
	coarse   atomic.Int64
	writes   atomic.Int64 // calls that write
	floods   atomic.Int64 // connections that were ended for a flood
	strays   atomic.Int64 // connections of endpoints that were ended for bytes that nothing asked for
	logged   atomic.Int64 // when a flood, or a stray, was logged last
	origins  atomic.Pointer[map[netip.AddrPort]*origin]
	left     func(io.Closer, *arrival)

	mu       sync.Mutex
	conns    map[watched]struct{}
	watching bool
	closed   bool // links that come now are closed at once
}

func newStreams(s *Server) *streams {
	e := &streams{
		shared: s.shared, options: &s.options, texts: texts(), running: &s.running, stopping: &s.stopping, life: s.life,
		dialer: net.Dialer{Timeout: max(s.options.Timeouts.Connect, 0)},
		conns:  make(map[watched]struct{}),
		left:   s.left,
	}
	e.logged.Store(-int64(time.Second)) // the first is logged
	e.calls.New = func() any {
		x := &call{over: true}
		x.near.call, x.far.call = x, x
		return x
	}
	return e
}

// texts renders every reason to refuse a request once.
func texts() map[reason.Code]string {
	all := make(map[reason.Code]string)
	for _, code := range refusalReasons() {
		all[code] = reason.New(code).String()
	}
	return all
}

// now is the time up to a tick ago, and costs nothing.
func (s *streams) now() time.Duration { return time.Duration(s.coarse.Load()) }

// origin finds the connections of an endpoint.
func (s *streams) origin(addr netip.AddrPort) *origin {
	if known := s.origins.Load(); known != nil {
		if o := (*known)[addr]; o != nil {
			return o
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	origins := make(map[netip.AddrPort]*origin)
	if known := s.origins.Load(); known != nil {
		if o := (*known)[addr]; o != nil {
			return o
		}
		maps.Copy(origins, *known)
	}
	o := &origin{streams: s, addr: addr}
	origins[addr] = o
	s.origins.Store(&origins)
	return o
}

// keep forgets every endpoint that is not wanted.
func (s *streams) keep(wanted func(netip.AddrPort) bool) {
	var retired []*origin
	s.mu.Lock()
	if known := s.origins.Load(); known != nil {
		origins := make(map[netip.AddrPort]*origin, len(*known))
		for addr, o := range *known {
			if wanted(addr) {
				origins[addr] = o
			} else {
				retired = append(retired, o)
			}
		}
		s.origins.Store(&origins)
	}
	s.mu.Unlock()
	var b batch
	for _, o := range retired {
		o.retire(&b)
	}
	b.flush()
}

// watched is a connection that the watch looks after.
type watched interface {
	io.Closer
	// check looks at time limits; calls is memory to use.
	check(now time.Duration, calls []waiter, b *batch) []waiter
	// announce begins an orderly end.
	announce(b *batch)
}

// enter has the watch look after a connection.
func (s *streams) enter(l watched) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[l] = struct{}{}
	if s.closed {
		_ = l.Close() // it was dialed, or accepted, while the server ended
	}
	if !s.watching {
		s.watching = s.running.start(s.watch)
	}
}

func (s *streams) forget(l watched) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, l)
}

// all gives every connection there is at this moment, in memory to use.
func (s *streams) all(conns []watched) []watched {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l := range s.conns {
		conns = append(conns, l)
	}
	return conns
}

// drain tells all clients that no further request is taken.
func (s *streams) drain() {
	var b batch
	for _, l := range s.all(nil) {
		l.announce(&b)
	}
	b.flush()
}

// close ends all connections, and those that are still being made.
func (s *streams) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	for _, l := range s.all(nil) {
		_ = l.Close()
	}
}

// serve carries a client's connection to its end. early was read from it behind the preface.
func (s *streams) serve(a *arrival, early []byte, opened func(io.Closer)) {
	s.coarse.CompareAndSwap(0, int64(s.shared.clock()))
	l := s.newLink(newSocket(a.conn, early))
	l.arrival = a
	l.decoder = h2.NewDecoder(s.options.Limits.Head, s.options.Limits.Fields)
	opened(l)
	s.enter(l)
	var b batch
	l.greet(&b)
	if s.stopping.Load() {
		l.announce(&b)
	}
	b.flush()
	l.read()
}

// startFar begins a connection to an endpoint.
func (l *link) startFar(b *batch) {
	l.decoder = h2.NewDecoder(maxResponseHead, maxResponseFields)
	l.streams.enter(l)
	l.greet(b)
}

// maxResponseFields bounds an endpoint's head: eight times what a client may send.
const maxResponseFields = 8 * defaultFields

// greet says what a connection begins with.
func (l *link) greet(b *batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.bufferLocked()
	grown := out.b
	if l.origin != nil {
		grown = append(grown, h2.Preface...)
		grown = h2.AppendSettings(grown, h2.Setting{ID: h2.EnablePush}, h2.Setting{ID: h2.MaxHeaderListSize, Value: maxResponseHead})
	} else {
		var settings []h2.Setting
		if limit := l.streams.options.Limits.Streams; limit > 0 {
			settings = append(settings, h2.Setting{ID: h2.MaxConcurrentStreams, Value: uint32(limit)}) //nolint:gosec // positive
		}
		if limit := l.streams.options.Limits.Head; limit > 0 {
			settings = append(settings, h2.Setting{ID: h2.MaxHeaderListSize, Value: uint32(limit)}) //nolint:gosec // positive
		}
		grown = h2.AppendSettings(grown, settings...)
	}
	grown = h2.AppendWindowUpdate(grown, 0, linkWindow-h2.DefaultWindow)
	l.noteLocked(out, grown, b)
}
