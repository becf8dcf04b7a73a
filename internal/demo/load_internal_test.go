package demo

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// answering is a transport that answers after a delay, or when the request is given up.
type answering struct {
	after   time.Duration
	status  int
	answers bool // an endpoint, and not the agent
}

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case <-time.After(a.after):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	response := &http.Response{
		StatusCode: a.status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("x")), Request: r,
	}
	if a.answers {
		response.Header.Set(endpointHeader, "yes")
	}
	return response, nil
}

// generate runs a generator at 100 requests/s for the given time and gives its samples.
func generate(transport http.RoundTripper, places int, lasts time.Duration) []sample {
	var (
		mu      sync.Mutex
		samples []sample
	)
	began := time.Now()
	g := newGenerator(
		target{
			limits: limits{timeout: time.Second, patience: 10 * time.Second, outstanding: places},
			url:    "http://demo.invalid", reached: new(tracker),
		},
		func() time.Duration { return time.Since(began) },
		func(s sample) {
			mu.Lock()
			defer mu.Unlock()
			samples = append(samples, s)
		})
	g.client.Transport = transport
	due := time.Duration(0)
	g.run(context.Background(), func() (request, bool) {
		due += 10 * time.Millisecond
		return request{due: due}, due <= lasts
	})
	return samples
}

func TestAnswersThatDoNotComeDoNotSlowTheClientsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const places = 2000 // more than there are requests
		quick := generate(answering{time.Millisecond, 200, true}, places, 10*time.Second)
		never := generate(answering{time.Hour, 200, true}, places, 10*time.Second)
		if len(quick) != len(never) {
			t.Errorf("%d requests with quick answers, %d without answers: want as many", len(quick), len(never))
		}
		if n := len(quick); n != 1000 {
			t.Errorf("%d requests in 10 s at 100/s", n)
		}
		for _, s := range never {
			if s.result != late || s.done-s.due != 10*time.Second {
				t.Fatalf("given up after %v as %v: want late after ten seconds", s.done-s.due, s.result)
			}
		}
	})
}

func TestOutcomesOfARequest(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer answering
		result outcome
	}{
		{"2xx in time is good", answering{time.Millisecond, 204, true}, good},
		{"2xx after a second is late", answering{1100 * time.Millisecond, 200, true}, late},
		{"no answer in ten seconds is late", answering{time.Hour, 200, true}, late},
		{"5xx of an endpoint is erroneous", answering{0, 500, true}, erroneous},
		{"5xx of no endpoint is the agent's", answering{0, 503, false}, rejected},
		{"a redirect is not followed", answering{0, 302, true}, erroneous},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for _, s := range generate(c.answer, 100, 100*time.Millisecond) {
					if s.result != c.result {
						t.Fatalf("got %v, want %v", s.result, c.result)
					}
				}
			})
		})
	}
}

func TestRequestsThatFindNoPlaceAreCountedNotHidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		samples := generate(answering{time.Hour, 200, false}, 10, time.Second/2)
		count := map[outcome]int{}
		for _, s := range samples {
			count[s.result]++
		}
		if count[late] != 10 || count[dropped] != len(samples)-10 || len(samples) < 30 {
			t.Errorf("of %d requests with 10 places %v ended so: want 10 late and the rest dropped", len(samples), count)
		}
	})
}

func TestBrokenConnectionsAreErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, s := range generate(failingTransport{}, 100, 100*time.Millisecond) {
			if s.result != broken {
				t.Fatalf("got %v, want broken", s.result)
			}
		}
	})
}

type failingTransport struct{}

func (failingTransport) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, io.ErrUnexpectedEOF
}
