package l7

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/weir-lb/weir/internal/h2"
)

// Server serves one service port. Its methods are safe for concurrent use; Serve is called once.
type Server struct {
	options  Options
	shared   *shared
	clients  clients
	listener net.Listener
	addr     netip.AddrPort
	streams  *streams
	wire     *wire

	open     *registry // client connections
	count    atomic.Int64
	refusals chan struct{} // room for clients that are being refused
	running  tasks
	stopping atomic.Bool
	life     context.Context //nolint:containedctx // the server's own life, which its connections share
	end      context.CancelFunc
}

// Listen binds a service port. Serve then serves it.
//
// Errors: an address that cannot be bound, with the address and what to do about it; a missing upstream or pool.
func Listen(addr netip.AddrPort, o Options) (*Server, error) {
	if err := o.Upstreams.check(); err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	var config net.ListenConfig
	listener, err := config.Listen(context.Background(), "tcp", addr.String())
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w%s", addr, err, advice(err))
	}
	bound, err := netip.ParseAddrPort(listener.Addr().String())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listen on %s: %w", addr, err), listener.Close())
	}
	return newServer(listener, bound, o), nil
}

// advice says what to do about an address that cannot be bound.
func advice(err error) string {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return ": another process has the port: stop it, or map the service to another address"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return ": no interface of this machine has the address: add it (ip addr add … dev lo), or map the service to another one"
	case errors.Is(err, syscall.EACCES):
		return ": ports below 1024 need CAP_NET_BIND_SERVICE: grant it, or map the service to another port"
	default:
		return ""
	}
}

func newServer(listener net.Listener, addr netip.AddrPort, o Options) *Server {
	s := &Server{
		options:  o.withDefaults(),
		listener: listener,
		addr:     addr,
		open:     newRegistry(),
		refusals: make(chan struct{}, refusalsAtOnce),
	}
	s.life, s.end = context.WithCancel(context.Background())
	s.shared = &shared{
		clock: s.options.Clock, retry: s.options.Retry, budget: newBudget(s.options.Retry),
		limit: s.options.Limits.Pending, perClient: share(s.options.Limits.Pending, pendingShare),
	}
	s.Follow(s.options.Upstreams)
	s.clients.filters = slices.Clone(s.options.TrustedFilters)
	s.clients.last.Store(rand.Uint64()) // or the first connections to all agents would be hashed alike
	s.streams = newStreams(s)
	s.wire = &wire{shared: s.shared, dialer: s.streams.dialer}
	return s
}

// Addr is the address that is served, with the port that was bound if 0 was asked for.
func (s *Server) Addr() netip.AddrPort { return s.addr }

// Keep tells the server which endpoints there still are: kept connections to all others are closed, those in use when
// their requests end. Call it after an update of the pool.
func (s *Server) Keep(endpoints []netip.AddrPort) {
	wanted := make(map[netip.AddrPort]struct{}, len(endpoints))
	for _, addr := range endpoints {
		wanted[addr] = struct{}{}
	}
	s.streams.keep(func(addr netip.AddrPort) bool {
		_, ok := wanted[addr]
		return ok
	})
}

// Serve accepts connections until Shutdown, and then returns nil.
func (s *Server) Serve() error {
	var pause, warned time.Duration
	for {
		conn, err := s.listener.Accept()
		switch {
		case err == nil:
			pause = 0
			s.admit(conn)
		case s.stopping.Load(), errors.Is(err, net.ErrClosed):
			return nil
		default:
			// Out of file descriptors, most likely: what is served goes on, and frees some.
			pause = nextPause(pause)
			if now := s.shared.clock(); warned == 0 || now-warned > warnEvery {
				warned = now
				s.options.Logger.Warn("accept", "address", s.addr.String(), "error", err)
			}
			if !s.rest(pause) {
				return nil
			}
		}
	}
}

// warnEvery is how often the same want is worth a line.
const warnEvery = 10 * time.Second

// nextPause doubles from 5 ms to 1 s: short enough not to be felt, long enough not to spin.
func nextPause(pause time.Duration) time.Duration {
	const shortest, longest = 5 * time.Millisecond, time.Second
	return min(max(2*pause, shortest), longest)
}

func (s *Server) rest(pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.life.Done():
		return false
	}
}

// admit gives a new connection to its engine.
func (s *Server) admit(conn net.Conn) {
	a := &arrival{conn: conn, client: s.clients.know(conn)}
	if !s.clients.enter(a.client, share(s.options.Limits.Connections, connectionsShare)) {
		s.turnAway(conn)
		return
	}
	if over(int(s.count.Add(1)), s.options.Limits.Connections) {
		s.count.Add(-1)
		s.clients.leave(a.client)
		s.turnAway(conn)
		return
	}
	a.observer = s.shared.upstreams.Load().of(a.client.remote.Addr()).observer()
	a.observer.Connections(1)
	var served bool
	switch s.options.Protocol {
	case Detect:
		served = s.running.start(func() { s.detect(a) })
	case TCP:
		served = s.running.start(func() { s.serveTCP(a, nil) })
	default:
		served = s.running.start(func() { s.sort(a, nil) })
	}
	if !served {
		_ = conn.Close()
		s.left(conn, a)
	}
}

const (
	// connectionsShare and pendingShare are what part of a limit one client's address may have: a half, since connections that do nothing
	// cost little and a gateway has many; and a quarter, so that no client alone keeps others waiting.
	connectionsShare = 2
	pendingShare     = 4
)

// share is a part of a limit; a limit that is none has none.
func share(limit, parts int) int {
	if limit <= 0 {
		return limit
	}
	return max(1, limit/parts)
}

// arrival is a client connection that was accepted. Its observer is that of its upstream at that moment, so that the observer that counted
// its beginning hears of its end.
type arrival struct {
	conn     net.Conn
	client   *client
	observer Observer
}

// undecided is a client connection that has not said enough to be served.
type undecided struct{ net.Conn }

func (s *Server) detect(a *arrival) {
	s.open.add(undecided{a.conn})
	p, early := detect(a.conn, s.options.Timeouts.Detect)
	s.open.remove(undecided{a.conn})
	if p == TCP && !s.stopping.Load() {
		s.serveTCP(a, early)
		return
	}
	s.sort(a, early)
}

// sort gives a connection to the engine of the HTTP version that its client speaks. Until the first bytes differ from HTTP/2's preface, or
// are all of it, that is not known; then HTTP/1 has to say what is wrong with them.
func (s *Server) sort(a *arrival, early []byte) {
	const preface = h2.Preface
	headBy := time.Time{}
	if limit := s.options.Timeouts.Head; limit > 0 {
		headBy = time.Now().Add(limit)
	}
	s.open.add(undecided{a.conn})
	_ = a.conn.SetReadDeadline(headBy)
	if s.stopping.Load() {
		_ = a.conn.Close() // Shutdown may have looked before the connection was there to be found
	}
	b := make([]byte, max(detectSize, len(early)))
	n := copy(b, early)
	for n < len(preface) && string(b[:n]) == preface[:n] {
		got, err := a.conn.Read(b[n:])
		n += got
		if err != nil {
			break
		}
	}
	s.open.remove(undecided{a.conn})
	if n < len(preface) || string(b[:len(preface)]) != preface {
		s.streams.serveHTTP1(a, b[:n], s.open.add)
		return
	}
	_ = a.conn.SetReadDeadline(time.Time{})
	s.streams.serve(a, b[len(preface):n], s.open.add)
}

func (s *Server) serveTCP(a *arrival, early []byte) {
	s.open.add(a.conn)
	defer s.left(a.conn, a)
	s.wire.serve(s.life, a, early)
}

// left accounts for a client connection that is closed.
func (s *Server) left(c io.Closer, a *arrival) {
	s.open.remove(c)
	s.count.Add(-1)
	s.clients.leave(a.client)
	a.observer.Connections(-1)
}

// StopAccepting frees the address: when it returns, another server may listen there. What is open stays open until
// Shutdown, which has to follow.
func (s *Server) StopAccepting() {
	s.stopping.Store(true)
	_ = s.listener.Close() // the second time finds it closed
}

// Shutdown stops accepting, lets requests, upgraded and TCP connections end, and closes what is still open when ctx
// ends; then it gives the context's error.
func (s *Server) Shutdown(ctx context.Context) error {
	s.StopAccepting()
	s.open.each(closeUndecided)
	s.streams.drain()
	err := s.open.wait(ctx)
	s.end()
	s.open.each(func(c io.Closer) { _ = c.Close() })
	s.streams.close()
	s.running.end()
	if err != nil {
		return fmt.Errorf("shut down %s: connections were cut: %w", s.addr, err)
	}
	return nil
}

// tasks are the server's goroutines. Unlike a sync.WaitGroup it may be ended while others still start some: a connection
// can be accepted, and Serve itself be called, while Shutdown runs.
type tasks struct {
	mu      sync.Mutex
	ended   bool
	running sync.WaitGroup
}

// start runs f in a goroutine of its own; false after the end, when nothing would wait for it any more.
func (t *tasks) start(f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return false
	}
	t.running.Go(f)
	return true
}

// end lets no more start, and waits for those that did.
func (t *tasks) end() {
	t.mu.Lock()
	t.ended = true
	t.mu.Unlock()
	t.running.Wait()
}

// closeUndecided closes a connection that has not said enough to be served: there is nothing to wait for.
func closeUndecided(c io.Closer) {
	if c, ok := c.(undecided); ok {
		_ = c.Close()
	}
}
