package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-lb/weir/internal/core/topology"
)

// zoneHeader names the zone that answered: the clients believe the endpoint, not the proxy in between.
const zoneHeader = "X-Demo-Zone"

// headerTimeout bounds how long a connection may take to send its first line, as every public server should.
const headerTimeout = 5 * time.Second

// capacity is what an endpoint can do at once, and how long one request takes it.
type capacity struct {
	Concurrency int           // requests served at once
	Queue       int           // requests waiting, in order of arrival; one more is answered 503 at once
	Mean        time.Duration // of the service time
	Variation   float64       // of the service time: standard deviation over mean
}

// condition is how an endpoint is doing.
type condition uint8

const (
	well    condition = iota
	slow              // slowFactor times the service time
	failing           // 500 at once
	gone              // refuses connections, has reset those it had
	hanging           // takes requests, never answers
)

// endpoint is a real HTTP server with limited capacity that can be made to fail. It is safe for concurrent use.
type endpoint struct {
	addr     netip.AddrPort
	zone     topology.Zone
	capacity capacity
	server   *http.Server
	slots    chan struct{} // one token for each request in service; the runtime wakes blocked senders in order
	waiting  atomic.Int64
	state    atomic.Uint32 // a condition

	mu       sync.Mutex // guards what follows
	random   *rand.Rand
	listener net.Listener
	conns    map[net.Conn]struct{}
	cleared  chan struct{} // closes when the endpoint stops hanging; not nil while it hangs
	closed   bool
	serving  sync.WaitGroup // the listening loops and the requests; grows under mu only while not closed
}

// newEndpoint makes an endpoint that does not listen yet; see set and close.
func newEndpoint(addr netip.AddrPort, zone topology.Zone, c capacity, random *rand.Rand) *endpoint {
	e := &endpoint{
		addr: addr, zone: zone, capacity: c, random: random,
		slots: make(chan struct{}, c.Concurrency),
		conns: make(map[net.Conn]struct{}),
	}
	e.state.Store(uint32(gone))
	e.server = &http.Server{
		Handler:           e,
		ReadHeaderTimeout: headerTimeout,
		ConnState:         e.track,
		// A proxy that gives up on an endpoint makes net/http complain; the table tells what matters.
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	return e
}

// set changes how the endpoint is doing. The error is of listening again after gone.
func (e *endpoint) set(next condition) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	before := condition(e.state.Load())
	if before == next {
		return nil
	}
	if before == hanging {
		close(e.cleared)
		e.cleared = nil
	}
	if next == hanging {
		e.cleared = make(chan struct{})
	}
	if before == gone {
		if err := e.listenLocked(); err != nil {
			return err
		}
	}
	e.state.Store(uint32(next))
	if next == gone {
		e.leaveLocked()
	}
	return nil
}

// close ends the endpoint for good and waits for its goroutines, at most for a service time.
func (e *endpoint) close() error {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	if err := e.set(gone); err != nil {
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
		return fmt.Errorf("listen as endpoint of %s: %w", e.zone, err)
	}
	e.listener = listener
	e.serving.Go(func() {
		// Serve always ends with an error: the listener was closed by leaveLocked.
		_ = e.server.Serve(listener)
	})
	return nil
}

// leaveLocked is what a machine that lost power looks like to a neighbour that can still reach its switch: no listener,
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
		_ = tcp.SetLinger(0) // without it the kernel says goodbye politely
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
		if condition(e.state.Load()) == gone {
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
	w.Header().Set(zoneHeader, string(e.zone))
	if condition(e.state.Load()) == failing {
		http.Error(w, "broken", http.StatusInternalServerError)
		return
	}
	err := e.serve(r.Context())
	switch {
	case errors.Is(err, errQueueFull):
		http.Error(w, "overloaded", http.StatusServiceUnavailable)
	case err != nil:
		panic(http.ErrAbortHandler) // the client has left; there is nobody to answer
	default:
		_, _ = io.WriteString(w, "served in "+string(e.zone)+"\n") // an error means that the client has left
	}
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
func (e *endpoint) serve(ctx context.Context) error {
	if err := e.swallow(ctx); err != nil {
		return err
	}
	if err := e.enter(ctx); err != nil {
		return err
	}
	// A real handler does not notice that its client has left, so the slot stays taken until the time is over.
	<-time.After(e.serviceTime())
	<-e.slots
	return e.swallow(ctx)
}

// swallow keeps a request for as long as the endpoint hangs, and loses it then.
func (e *endpoint) swallow(ctx context.Context) error {
	e.mu.Lock()
	cleared := e.cleared
	e.mu.Unlock()
	if cleared == nil {
		return ctx.Err()
	}
	select {
	case <-cleared:
		return context.Canceled
	case <-ctx.Done():
		return ctx.Err()
	}
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
	select {
	case e.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// serviceTime draws from a lognormal distribution: most answers near the mean, a few much later, none negative.
func (e *endpoint) serviceTime() time.Duration {
	e.mu.Lock()
	normal := e.random.NormFloat64()
	e.mu.Unlock()
	variance := math.Log(1 + e.capacity.Variation*e.capacity.Variation)
	factor := math.Exp(normal*math.Sqrt(variance) - variance/2)
	if condition(e.state.Load()) == slow {
		factor *= slowFactor
	}
	return time.Duration(factor * float64(e.capacity.Mean))
}
