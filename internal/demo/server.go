package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-lb/weir/internal/sim/scenario"
)

// headerTimeout bounds how long a connection may take to send its first line, as every public server should.
const headerTimeout = 5 * time.Second

// capacity is what an endpoint can do at once, and how fast.
type capacity struct {
	Workers int     // requests served at once
	Queue   int     // requests waiting, in order of arrival; one more is answered 503 at once
	Speed   float64 // divides the work of a request; 0: 1
}

// traffic is what an endpoint knows of its requests, and tells of them.
type traffic interface {
	work(r *http.Request) time.Duration // how long it takes a worker of usual speed
	trip(r *http.Request) time.Duration // how long the network takes there and back, beside loopback's own time
	arrived(r *http.Request)            // it is here
	asks(service time.Duration)         // it asks for this time of a worker
}

// endpoint is a real HTTP server with limited capacity that can be made to fail. It is safe for concurrent use.
type endpoint struct {
	addr     netip.AddrPort
	capacity capacity
	traffic  traffic
	server   *http.Server
	slots    chan struct{} // one token for each request in service; the runtime wakes blocked senders in order
	waiting  atomic.Int64
	state    atomic.Pointer[scenario.Condition] // never nil

	mu       sync.Mutex // guards what follows
	random   *rand.Rand
	listener net.Listener
	conns    map[net.Conn]struct{}
	closed   bool
	serving  sync.WaitGroup // the listening loops and the requests; grows under mu only while not closed
}

// newEndpoint makes an endpoint that does not listen yet; see set and close.
func newEndpoint(addr netip.AddrPort, c capacity, random *rand.Rand, t traffic) *endpoint {
	e := &endpoint{
		addr: addr, capacity: c, random: random, traffic: t,
		slots: make(chan struct{}, c.Workers),
		conns: make(map[net.Conn]struct{}),
	}
	e.state.Store(&scenario.Condition{Refuse: true})
	e.server = &http.Server{
		Handler:           e,
		ReadHeaderTimeout: headerTimeout,
		ConnState:         e.track,
		// A proxy that gives up on an endpoint makes net/http complain; the table tells what matters.
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	return e
}

// set changes how the endpoint is doing. The error is of listening again after it refused.
func (e *endpoint) set(next scenario.Condition) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	before := *e.state.Load()
	if before.Refuse && !next.Refuse {
		if err := e.listenLocked(); err != nil {
			return err
		}
	}
	e.state.Store(&next)
	if next.Refuse && !before.Refuse {
		e.leaveLocked()
	}
	return nil
}

// close ends the endpoint for good and waits for its goroutines, at most for a service time.
func (e *endpoint) close() error {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	if err := e.set(scenario.Condition{Refuse: true}); err != nil {
		return err
	}
	err := e.server.Close()
	e.serving.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil // set closed the listener, and its loop had not told the server yet
	}
	return err
}

func (e *endpoint) listenLocked() error {
	listener, err := net.Listen("tcp", e.addr.String())
	if err != nil {
		return fmt.Errorf("listen as an endpoint: %w", err)
	}
	e.listener = listener
	e.serving.Go(func() {
		// Serve always ends with an error: the listener was closed by leaveLocked.
		_ = e.server.Serve(listener)
	})
	return nil
}

// leaveLocked is what a client on the same switch sees of a machine that lost power: no listener,
// and a reset on every connection.
func (e *endpoint) leaveLocked() {
	if e.listener != nil {
		_ = e.listener.Close() // it has no buffered state that could be lost
	}
	for conn := range e.conns {
		reset(conn)
	}
}

func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // without it the kernel sends FIN
	}
	_ = conn.Close() // there is nothing left to lose
}

// track keeps the list of connections that gone resets.
func (e *endpoint) track(conn net.Conn, state http.ConnState) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch state {
	case http.StateNew:
		e.conns[conn] = struct{}{}
		if e.state.Load().Refuse {
			reset(conn) // accepted just before the listener closed
		}
	case http.StateClosed, http.StateHijacked:
		delete(e.conns, conn)
	default:
	}
}

// ServeHTTP waits for a free slot, holds it for the service time and answers 200; it answers 503 when the queue is full.
func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !e.begin() {
		panic(http.ErrAbortHandler)
	}
	defer e.serving.Done()
	w.Header().Set(endpointHeader, "yes")
	now := *e.state.Load()
	work := time.Duration(float64(e.traffic.work(r)) / cmp.Or(e.capacity.Speed, 1))
	half := now.Delay/2 + e.traffic.trip(r)/2
	pause(half)
	e.traffic.arrived(r)
	if !now.Hang && now.Fail > 0 && e.fails(now.Fail) {
		pause(half)
		http.Error(w, "broken", http.StatusInternalServerError)
		return
	}
	if !now.Hang {
		e.traffic.asks(lengthened(work, &now))
	}
	err := e.serve(r.Context(), work)
	switch {
	case errors.Is(err, errQueueFull):
		pause(half)
		http.Error(w, "overloaded", http.StatusServiceUnavailable)
	case err != nil:
		panic(http.ErrAbortHandler) // the client has left
	default:
		pause(half)
		_, _ = io.WriteString(w, "served\n") // an error means that the client has left
	}
}

// pause is the time of a request, or of its answer, in a network that is slower than loopback.
func pause(d time.Duration) {
	if d > 0 {
		<-time.After(d)
	}
}

// fails tells whether one more request is answered with an error.
func (e *endpoint) fails(ratio float64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.random.Float64() < ratio
}

// begin registers a request with close.
func (e *endpoint) begin() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false
	}
	e.serving.Add(1)
	return true
}

var errQueueFull = errors.New("queue is full")

// serve takes the request through queue and service. The error is errQueueFull, or of a context that ended.
func (e *endpoint) serve(ctx context.Context, work time.Duration) error {
	if err := e.swallow(ctx); err != nil {
		return err
	}
	if err := e.enter(ctx); err != nil {
		return err
	}
	// A real handler does not notice that its client has left, so the slot stays taken until the time is over.
	<-time.After(lengthened(work, e.state.Load()))
	<-e.slots
	return e.swallow(ctx)
}

// swallow keeps a request that is here while the endpoint hangs until its client gives up: a machine that was gone answers
// nothing when it is back, and resets no connection.
func (e *endpoint) swallow(ctx context.Context) error {
	if e.state.Load().Hang {
		<-ctx.Done()
	}
	return ctx.Err()
}

// enter takes a slot, waiting in the queue when there is none.
func (e *endpoint) enter(ctx context.Context) error {
	select {
	case e.slots <- struct{}{}:
		return nil
	default:
	}
	if e.waiting.Add(1) > int64(e.capacity.Queue) {
		e.waiting.Add(-1)
		return errQueueFull
	}
	defer e.waiting.Add(-1)
	e.slots <- struct{}{} // a queue keeps what it has let in: a server takes a request when a worker is free
	if err := ctx.Err(); err != nil {
		<-e.slots
		return err
	}
	return nil
}

// lengthened is what a service time becomes in a condition.
func lengthened(work time.Duration, c *scenario.Condition) time.Duration {
	return time.Duration(float64(work) * c.Factor())
}
