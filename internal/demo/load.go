package demo

import (
	"cmp"
	"context"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
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
	// reached are the places of the endpoints that the request arrived at, in this order, whether they answered or not.
	// Without a ledger: nil.
	reached []int
}

// letter is a request to be sent.
type letter struct {
	due  time.Duration // since the run began
	work time.Duration // how long it takes a slot; told to the endpoint if the clients have a ledger
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

	good        time.Duration // how fast a good answer is; 0: goodWithin
	patience    time.Duration // how long a client waits; 0: patience
	outstanding int           // requests in flight at most; 0: maxOutstanding
	ledger      *ledger       // nil: where requests arrived is not noted
	from        string        // what endpoints are told of where the request comes from; empty: nothing
}

func (t *target) withDefaults() target {
	full := *t
	full.good = cmp.Or(t.good, goodWithin)
	full.patience = cmp.Or(t.patience, patience)
	full.outstanding = cmp.Or(t.outstanding, maxOutstanding)
	return full
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
	t = t.withDefaults()
	return &generator{
		target: t, clock: clock, record: record,
		places: make(chan struct{}, t.outstanding),
		client: &http.Client{
			Transport: &http.Transport{
				DialContext:         (&net.Dialer{Timeout: t.patience}).DialContext,
				MaxIdleConnsPerHost: t.outstanding, // keep every connection, as the pool of a busy client does
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
	plan := schedule{random: random, due: g.clock()}
	g.follow(ctx, func() (letter, bool) {
		return letter{due: plan.next(math.Float64frombits(g.rate.Load()))}, true
	})
}

// follow is run with requests that somebody else decides on, until there are no more.
func (g *generator) follow(ctx context.Context, next func() (letter, bool)) {
	defer g.client.CloseIdleConnections()
	defer g.flying.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		l, ok := next()
		if !ok {
			return
		}
		timer.Reset(l.due - g.clock())
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			g.launch(l)
		}
	}
}

// launch sends one request without waiting for its answer.
func (g *generator) launch(l letter) {
	select {
	case g.places <- struct{}{}:
	default:
		now := g.clock()
		g.record(sample{zone: g.zone, due: l.due, sent: now, done: now, served: -1, result: dropped})
		return
	}
	g.flying.Go(func() {
		defer func() { <-g.places }()
		g.record(g.send(l))
	})
}

// send makes one request and judges its answer. It outlives the generator's context, so that the last requests of a run
// are judged like all others.
func (g *generator) send(l letter) sample {
	s := sample{zone: g.zone, due: l.due, sent: g.clock(), served: -1}
	ctx, cancel := context.WithTimeout(context.Background(), g.patience-(s.sent-s.due))
	defer cancel()
	status, err := g.exchange(ctx, &s, l.work)
	s.done = g.clock()
	switch {
	case ctx.Err() != nil:
		s.result = late
	case err != nil:
		s.result = broken
	case status >= 200 && status < 300:
		s.result = good
		if s.done-s.due > g.good {
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
func (g *generator) exchange(ctx context.Context, s *sample, work time.Duration) (status int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, g.url, http.NoBody)
	if err != nil {
		return 0, err
	}
	request.Host = g.host
	if g.ledger != nil {
		id := g.ledger.begin()
		defer func() { s.reached = g.ledger.end(id) }()
		request.Header.Set(requestHeader, strconv.FormatUint(id, 10))
		request.Header.Set(fromHeader, g.from)
		request.Header.Set(workHeader, strconv.FormatInt(int64(work), 10))
	}
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
