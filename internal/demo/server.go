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

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/sim/scenario"
)

// zoneHeader names the zone that answered: the clients believe the endpoint, not the proxy in between.
const zoneHeader = "X-Demo-Zone"

// headerTimeout bounds how long a connection may take to send its first line, as every public server should.
const headerTimeout = 5 * time.Second

// capacity is what an endpoint can do at once, and how long one request takes it.
type capacity struct {
	Concurrency int // requests served at once
	Queue       int // requests waiting, in order of arrival; one more is answered 503 at once
	Service     scenario.Distribution
	Speed       float64 // divides the service time; 0: 1
}

// desk is what an endpoint asks about a request, in a world where clients decide and somebody counts.
type desk interface {
	work(r *http.Request) time.Duration // how long it takes a slot of usual speed
	trip(r *http.Request) time.Duration // how long its way and its answer's way are to take beside loopback's own
	arrived(r *http.Request)            // it is here
	asks(service time.Duration)         // it asks for this time of a slot
}

// endpoint is a real HTTP server with limited capacity that can be made to fail. It is safe for concurrent use.
type endpoint struct {
	addr     netip.AddrPort
	zone     topology.Zone
	capacity capacity
	work     scenario.Sampler
	server   *http.Server
	slots    chan struct{} // one token for each request in service; the runtime wakes blocked senders in order
	waiting  atomic.Int64
	state    atomic.Pointer[scenario.Condition] // never nil

	desk desk // nil: none. Not changed once the endpoint listens

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
		work:  scenario.NewSampler(c.Service),
		slots: make(chan struct{}, c.Concurrency),
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
	if before.Hang && !next.Hang {
		close(e.cleared)
		e.cleared = nil
	}
	if next.Hang && !before.Hang {
		e.cleared = make(chan struct{})
	}
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
	w.Header().Set(zoneHeader, string(e.zone))
	now := *e.state.Load()
	work := e.serviceTime(r)
	way := now.Delay / 2
	if e.desk != nil {
		way += e.desk.trip(r) / 2
	}
	pause(way)
	if e.desk != nil {
		e.desk.arrived(r)
	}
	if !now.Hang && now.Fail > 0 && e.fails(now.Fail) {
		pause(way)
		http.Error(w, "broken", http.StatusInternalServerError)
		return
	}
	if e.desk != nil && !now.Hang {
		e.desk.asks(stretched(work, &now))
	}
	err := e.serve(r.Context(), work)
	switch {
	case errors.Is(err, errQueueFull):
		pause(way)
		http.Error(w, "overloaded", http.StatusServiceUnavailable)
	case err != nil:
		panic(http.ErrAbortHandler) // the client has left; there is nobody to answer
	default:
		pause(way)
		_, _ = io.WriteString(w, "served in "+string(e.zone)+"\n") // an error means that the client has left
	}
}

// pause is the way of a request, or of its answer, in a network that is longer than loopback.
func pause(way time.Duration) {
	if way > 0 {
		<-time.After(way)
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
	<-time.After(stretched(work, e.state.Load()))
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
		if e.desk != nil {
			<-ctx.Done() // what was swallowed stays so: nobody resets the connections of a machine that was gone
		}
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
	if e.desk != nil {
		e.slots <- struct{}{} // a queue keeps whom it has let in: a server looks at a request when it is its turn
		if err := ctx.Err(); err != nil {
			<-e.slots
			return err
		}
		return nil
	}
	select {
	case e.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// serviceTime is how long the request takes a slot while the endpoint is well: what the desk says, or what is drawn.
func (e *endpoint) serviceTime(r *http.Request) time.Duration {
	work := time.Duration(0)
	if e.desk != nil {
		work = e.desk.work(r)
	} else {
		e.mu.Lock()
		work = e.work.Draw(e.random)
		e.mu.Unlock()
	}
	return time.Duration(float64(work) / cmp.Or(e.capacity.Speed, 1))
}

// stretched is what a service time becomes in a condition.
func stretched(work time.Duration, c *scenario.Condition) time.Duration {
	return time.Duration(float64(work) * c.Factor())
}
