package demo

import (
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// limits bound the requests of a client.
type limits struct {
	timeout     time.Duration // an answer that takes longer is late
	patience    time.Duration // after which the client gives up
	outstanding int           // in flight at most; one more is not sent and counts as an error: see dropped
}

// outcome is how a request ended, seen from the client.
type outcome uint8

const (
	good      outcome = iota // 2xx within the timeout
	late                     // 2xx after the timeout, or no answer
	erroneous                // answered by an endpoint, but not 2xx
	rejected                 // answered by the agent itself: no endpoint answered
	broken                   // the connection to the agent broke
	dropped                  // never sent: too many were outstanding
	outcomes                 // how many there are
)

// request is a request to be sent.
type request struct {
	due  time.Duration // since the run began
	work time.Duration // how long it takes a worker
}

// sample is a request that is over.
type sample struct {
	request

	row      int           // of the client's zone
	sent     time.Duration // when it was sent; later than due only if the machine was too busy
	done     time.Duration // when its last byte was read, or when it was given up
	result   outcome
	reached  []int // the endpoints that the request arrived at, in this order, whether they answered or not
	isTheirs bool  // an endpoint gave the answer, and not the agent
}

// target is where a generator's requests go and how their answers are read.
type target struct {
	limits

	row     int    // the clients' zone, as an index
	zone    string // its name
	url     string // the agent
	host    string // the Host header
	reached *tracker
}

// generator sends the requests of one client through its agent.
type generator struct {
	target
	client *http.Client
	clock  func() time.Duration // since the run began
	record func(sample)         // called once for each request, from many goroutines
	flying sync.WaitGroup
	places chan struct{} // one token for each request in flight
}

func newGenerator(t target, clock func() time.Duration, record func(sample)) *generator {
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

// run sends the requests that next gives, each when it is due, until there are no more or ctx ends; then it waits for those
// in flight.
func (g *generator) run(ctx context.Context, next func() (request, bool)) {
	defer g.client.CloseIdleConnections()
	defer g.flying.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		q, ok := next()
		if !ok {
			return
		}
		timer.Reset(q.due - g.clock())
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			g.launch(q)
		}
	}
}

// launch sends one request without waiting for its answer.
func (g *generator) launch(q request) {
	select {
	case g.places <- struct{}{}:
	default:
		now := g.clock()
		g.record(sample{request: q, row: g.row, sent: now, done: now, result: dropped})
		return
	}
	g.flying.Go(func() {
		defer func() { <-g.places }()
		g.record(g.send(q))
	})
}

// send makes one request and judges its answer. It outlives the generator's context, so that the last requests of a run
// are judged like all others.
func (g *generator) send(q request) sample {
	s := sample{request: q, row: g.row, sent: g.clock()}
	ctx, cancel := context.WithTimeout(context.Background(), g.patience-(s.sent-s.due))
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
		if s.done-s.due > g.timeout {
			s.result = late
		}
	case s.isTheirs:
		s.result = erroneous
	case s.done-s.due >= g.timeout:
		s.result = late // the agent's word that the time is over
	default:
		s.result = rejected
	}
	return s
}

// exchange sends the request, notes where it arrived and reads the answer to its end.
func (g *generator) exchange(ctx context.Context, s *sample) (status int, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, g.url, http.NoBody)
	if err != nil {
		return 0, err
	}
	id := g.reached.begin()
	defer func() { s.reached = g.reached.end(id) }()
	r.Host = g.host
	r.Header.Set(requestHeader, strconv.FormatUint(id, 10))
	r.Header.Set(zoneHeader, g.zone)
	r.Header.Set(workHeader, strconv.FormatInt(int64(s.work), 10))
	response, err := g.client.Do(r)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close() //nolint:errcheck // everything was read, or the error is known.
	s.isTheirs = response.Header.Get(endpointHeader) != ""
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}
