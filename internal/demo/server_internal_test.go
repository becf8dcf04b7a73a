package demo

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-lb/weir/internal/sim/scenario"
)

// equal is traffic all of which is the same work, on a network of no length.
type equal struct{}

func (equal) work(*http.Request) time.Duration { return 100 * time.Millisecond }
func (equal) trip(*http.Request) time.Duration { return 0 }
func (equal) arrived(*http.Request)            {}
func (equal) asks(time.Duration)               {}

// newTestEndpoint serves two requests at once; two more wait.
func newTestEndpoint(addr netip.AddrPort) *endpoint {
	return newEndpoint(addr, capacity{Workers: 2, Queue: 2}, rand.New(rand.NewPCG(1, 1)), equal{})
}

// asked is how one request to an endpoint went.
type asked struct {
	status int
	after  time.Duration
}

// ask sends n requests one right after the other and gives how each went.
func ask(e *endpoint, n int) []asked {
	answers := make([]asked, n)
	began := time.Now()
	var requests sync.WaitGroup
	for i := range answers {
		requests.Go(func() {
			w := httptest.NewRecorder()
			e.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
			answers[i] = asked{w.Code, time.Since(began)}
		})
		synctest.Wait() // so that they arrive in this order
	}
	requests.Wait()
	return answers
}

func TestOverloadedEndpointQueuesInOrderAndRejectsTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newTestEndpoint(netip.AddrPort{})
		e.state.Store(&scenario.Condition{})
		want := []asked{
			{200, 100 * time.Millisecond},
			{200, 100 * time.Millisecond},
			{200, 200 * time.Millisecond},
			{200, 200 * time.Millisecond},
			{503, 0},
		}
		if got := ask(e, 5); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

func TestConditionsOfAnEndpoint(t *testing.T) {
	for _, c := range []struct {
		name  string
		state scenario.Condition
		want  asked
	}{
		{"a well one takes its time", scenario.Condition{}, asked{200, 100 * time.Millisecond}},
		{"a slow one takes ten times as long", scenario.Condition{Slow: 10}, asked{200, time.Second}},
		{"a failing one fails at once", scenario.Condition{Fail: 1}, asked{500, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newTestEndpoint(netip.AddrPort{})
				e.state.Store(&c.state)
				if got := ask(e, 1)[0]; got != c.want {
					t.Errorf("got %v, want %v", got, c.want)
				}
			})
		})
	}
}

// listening gives an endpoint that listens on loopback, and closes it after the test.
func listening(t *testing.T) *endpoint {
	t.Helper()
	l, err := newLayout(story(t))
	if err != nil {
		t.Fatal(err)
	}
	e := newTestEndpoint(l.endpoints[0].addr)
	if err := e.set(scenario.Condition{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// get asks over a connection of its own, as a client that gives up after patience.
func get(e *endpoint, patience time.Duration) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+e.addr.String(), http.NoBody)
	if err != nil {
		return 0, err
	}
	response, err := transport.RoundTrip(r)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, errors.Join(err, response.Body.Close())
}

func TestGoneEndpointResetsAndRefusesUntilItIsBack(t *testing.T) {
	e := listening(t)
	kept, err := net.Dial("tcp", e.addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close() //nolint:errcheck // it is to be broken.
	if _, err := get(e, time.Minute); err != nil {
		t.Fatalf("a well endpoint does not answer: %v", err) // and has accepted the connection before this one
	}
	if err := e.set(scenario.Condition{Refuse: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := kept.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("reading from a connection it had gives %v, want a reset", err)
	}
	if _, err := get(e, time.Minute); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a new connection gives %v, want it refused", err)
	}
	if err := e.set(scenario.Condition{}); err != nil {
		t.Fatal(err)
	}
	if status, err := get(e, time.Minute); status != http.StatusOK {
		t.Errorf("once back it answers %d, %v", status, err)
	}
}

func TestHangingEndpointTakesRequestsAndLosesThem(t *testing.T) {
	e := listening(t)
	if err := e.set(scenario.Condition{Hang: true}); err != nil {
		t.Fatal(err)
	}
	if status, err := get(e, 300*time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %d, %v: want no answer at all", status, err)
	}
	var waiting sync.WaitGroup
	waiting.Go(func() { _, _ = get(e, time.Second) }) // lost, or answered if it comes after the change
	if err := e.set(scenario.Condition{}); err != nil {
		t.Fatal(err)
	}
	waiting.Wait()
	if status, err := get(e, time.Minute); status != http.StatusOK {
		t.Errorf("once well it answers %d, %v", status, err)
	}
}
