package demo

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// answering is a transport that answers after a delay, or when the request is given up.
type answering struct {
	after  time.Duration
	status int
	zone   string
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
	if a.zone != "" {
		response.Header.Set(zoneHeader, a.zone)
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
		target{zone: 0, url: "http://demo.invalid", zones: map[string]int{"zone-a": 0, "zone-b": 1}},
		func() time.Duration { return time.Since(began) },
		func(s sample) {
			mu.Lock()
			defer mu.Unlock()
			samples = append(samples, s)
		})
	g.client.Transport = transport
	g.places = make(chan struct{}, places)
	g.setRate(100)
	ctx, cancel := context.WithTimeout(context.Background(), lasts)
	defer cancel()
	g.run(ctx, rand.New(rand.NewPCG(3, 4)))
	return samples
}

func TestAnswersThatDoNotComeDoNotSlowTheClientsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const places = 2000 // more than there are requests
		quick := generate(answering{time.Millisecond, 200, "zone-a"}, places, 10*time.Second)
		never := generate(answering{time.Hour, 200, "zone-a"}, places, 10*time.Second)
		if len(quick) != len(never) {
			t.Errorf("%d requests with quick answers, %d without answers: want as many", len(quick), len(never))
		}
		if n := len(quick); n < 900 || n > 1100 {
			t.Errorf("%d requests in 10 s at 100/s", n)
		}
		for _, s := range never {
			if s.result != late || s.done-s.due != patience {
				t.Fatalf("given up after %v as %v: want late after %v", s.done-s.due, s.result, patience)
			}
		}
	})
}

func TestOutcomesOfARequest(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer answering
		served int
		result outcome
	}{
		{"2xx in time is good", answering{time.Millisecond, 204, "zone-b"}, 1, good},
		{"2xx after a second is late", answering{1100 * time.Millisecond, 200, "zone-a"}, 0, late},
		{"no answer in ten seconds is late", answering{time.Hour, 200, "zone-a"}, -1, late},
		{"5xx of an endpoint is erroneous", answering{0, 500, "zone-a"}, 0, erroneous},
		{"5xx without a zone is the agent's", answering{0, 503, ""}, -1, rejected},
		{"a redirect is not followed", answering{0, 302, "zone-a"}, 0, erroneous},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for _, s := range generate(c.answer, maxOutstanding, 100*time.Millisecond) {
					if s.result != c.result || s.served != c.served {
						t.Fatalf("got %v from zone %d, want %v from zone %d", s.result, s.served, c.result, c.served)
					}
				}
			})
		})
	}
}

func TestRequestsThatFindNoPlaceAreCountedNotHidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		samples := generate(answering{time.Hour, 200, ""}, 10, time.Second/2)
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
		for _, s := range generate(failingTransport{}, maxOutstanding, 100*time.Millisecond) {
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
