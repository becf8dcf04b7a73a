package demo

import (
	"context"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// goodWithin is how fast an answer has to be to be a good one: as long as a person waits without wondering.
const goodWithin = time.Second

// patience is how long a client waits before it gives up and closes the connection. It is so much longer than goodWithin
// because whoever closes has to connect again: on a machine without time to spare a stall would be followed by a storm of
// new connections that takes more time than the requests did.
const patience = 10 * time.Second

// maxOutstanding bounds a zone's requests in flight. The script's worst second, a zone that hangs, has about 200 of them,
// and a surge 60. When it is full the request is not sent and counts as an error (see dropped): what a client's
// connection pool does with a service that has stopped answering.
const maxOutstanding = 512

// outcome is how a request ended, seen from the client.
type outcome uint8

const (
	good      outcome = iota // 2xx within goodWithin
	late                     // 2xx after goodWithin, or no answer within patience
	erroneous                // answered by an endpoint, but not 2xx
	rejected                 // answered by the agent itself: nobody could be asked
	broken                   // the connection to the agent broke
	dropped                  // never sent: too many were outstanding
	outcomes                 // how many there are
)

// sample is one request, seen from the client.
type sample struct {
	zone   int           // the client's, as an index
	due    time.Duration // when the request should have been sent, since the run began
	sent   time.Duration // when it was; later than due only if the machine was too busy
	done   time.Duration // when its last byte was read, or when it was given up
	served int           // the zone that answered, as an index; -1: none
	result outcome
}

// schedule draws the moments at which requests are due: a Poisson process, whose rate may change at any time.
//
// Source: an open loop (arrivals do not wait for answers) is what many independent clients look like; a closed one would
// slow down with the endpoints and hide their queue.
type schedule struct {
	random *rand.Rand
	due    time.Duration
}

// next gives the moment after the last one at which a request is due.
func (s *schedule) next(perSecond float64) time.Duration {
	s.due += time.Duration(s.random.ExpFloat64() / perSecond * float64(time.Second))
	return s.due
}

// target is where a generator's requests go and how their answers are read.
type target struct {
	zone  int            // the clients' zone, as an index
	url   string         // the zone's agent
	host  string         // the Host header: the service's name in the cluster
	zones map[string]int // the index of each zone that may answer
}

// generator sends the requests of one zone's clients through the zone's agent.
type generator struct {
	target
	client *http.Client
	clock  func() time.Duration // since the run began
	record func(sample)         // called once for each request, from many goroutines
	rate   atomic.Uint64        // requests per second, as the bits of a float64
	flying sync.WaitGroup
	places chan struct{} // one token for each request in flight
}

func newGenerator(t target, clock func() time.Duration, record func(sample)) *generator {
	return &generator{
		target: t, clock: clock, record: record,
		places: make(chan struct{}, maxOutstanding),
		client: &http.Client{
			Transport: &http.Transport{
				DialContext:         (&net.Dialer{Timeout: patience}).DialContext,
				MaxIdleConnsPerHost: maxOutstanding, // keep every connection, as the pool of a busy client does
				DisableCompression:  true,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// setRate changes how many requests per second are due from now on.
func (g *generator) setRate(perSecond float64) { g.rate.Store(math.Float64bits(perSecond)) }

// run sends requests until ctx ends, then waits for those in flight, at most for their patience.
func (g *generator) run(ctx context.Context, random *rand.Rand) {
	defer g.client.CloseIdleConnections()
	defer g.flying.Wait()
	plan := schedule{random: random, due: g.clock()}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		due := plan.next(math.Float64frombits(g.rate.Load()))
		timer.Reset(due - g.clock())
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			g.launch(due)
		}
	}
}

// launch sends one request without waiting for its answer.
func (g *generator) launch(due time.Duration) {
	select {
	case g.places <- struct{}{}:
	default:
		now := g.clock()
		g.record(sample{zone: g.zone, due: due, sent: now, done: now, served: -1, result: dropped})
		return
	}
	g.flying.Go(func() {
		defer func() { <-g.places }()
		g.record(g.send(due))
	})
}

// send makes one request and judges its answer. It outlives the generator's context, so that the last requests of a run
// are judged like all others.
func (g *generator) send(due time.Duration) sample {
	s := sample{zone: g.zone, due: due, sent: g.clock(), served: -1}
	ctx, cancel := context.WithTimeout(context.Background(), patience-(s.sent-due))
	defer cancel()
	status, err := g.exchange(ctx, &s)
	s.done = g.clock()
	switch {
	case ctx.Err() != nil:
		s.result = late
	case err != nil:
		s.result = broken
	case status >= 200 && status < 300:
		s.result = good
		if s.done-due > goodWithin {
			s.result = late
		}
	case s.served >= 0:
		s.result = erroneous
	default:
		s.result = rejected
	}
	return s
}

// exchange sends the request, notes which zone answered and reads the answer to its end.
func (g *generator) exchange(ctx context.Context, s *sample) (status int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, g.url, http.NoBody)
	if err != nil {
		return 0, err
	}
	request.Host = g.host
	response, err := g.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close() //nolint:errcheck // everything was read, or the error is known.
	if zone, ok := g.zones[response.Header.Get(zoneHeader)]; ok {
		s.served = zone
	}
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}
