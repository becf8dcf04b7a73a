package agent_test

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/agent"
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/patience"
)

// oneZone balances over all endpoints alike.
func oneZone() policy.Locality { return policy.Locality{Disabled: new(true)} }

// long is a pause that no test outlasts.
const long = 10 * time.Minute

// fails answers with a status, always.
func (e *endpoint) fails(status int) {
	e.answers(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
}

// of gives what the pool knows of an endpoint.
func (r *running) of(t *testing.T, e *endpoint) agent.EndpointStatus {
	t.Helper()
	for _, s := range r.pool(t).Endpoints {
		if s.Address == e.addr.String() {
			return s
		}
	}
	t.Fatalf("the pool does not know %v", e.addr)
	return agent.EndpointStatus{}
}

// out counts the ejected endpoints.
func (r *running) out(t *testing.T) int {
	t.Helper()
	n := 0
	for _, e := range r.pool(t).Endpoints {
		if e.Out {
			n++
		}
	}
	return n
}

func TestGatewayErrorsInARowPauseAnEndpointForTheBaseEjectionTime(t *testing.T) {
	const base = 2 * time.Second
	w := newCluster(t, topology.ModeDisabled, 1)
	w.follow(ruleFor("outliers", policy.Conf{
		LoadBalancer: balancer(policy.RoundRobin), Locality: oneZone(),
		OutlierDetection: &policy.OutlierDetection{
			BaseEjectionTime: new(policy.Duration(base)), Consecutive: &policy.Consecutive{GatewayErrors: new(int32(3))},
		},
	}))
	bad := w.endpoints[1]
	var (
		mu    sync.Mutex
		times []time.Time // at which the bad one was asked
	)
	bad.answers(func(rw http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if times = append(times, time.Now()); len(times) <= 3 {
			rw.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	r := w.start(agent.Config{Node: "node-a"})
	patience.Until(t, "it is ejected", func() bool { r.zones(3); return r.of(t, bad).Ejections > 0 })
	patience.Until(t, "it is asked again", func() bool { r.zones(3); return bad.hits.Load() > 3 })
	mu.Lock()
	if pause := times[3].Sub(times[2]); pause < base {
		t.Errorf("asked again %v after the third failure, want after %v", pause, base)
	}
	mu.Unlock()
	patience.Until(t, "its trial is over", func() bool { r.zones(1); return r.out(t) == 0 })
	patience.Until(t, "it has its part again", func() bool {
		before := bad.hits.Load()
		r.zones(30)
		return bad.hits.Load() == before+10
	})
	if n := r.of(t, bad).Ejections; n != 1 {
		t.Errorf("it sat out %d times, want 1", n)
	}
}

func TestServerErrorsAreNoGatewayErrors(t *testing.T) {
	w := newCluster(t, topology.ModeDisabled, 1)
	w.follow(ruleFor("outliers", policy.Conf{
		LoadBalancer: balancer(policy.RoundRobin), Locality: oneZone(),
		OutlierDetection: &policy.OutlierDetection{
			BaseEjectionTime: new(policy.Duration(long)), Consecutive: &policy.Consecutive{GatewayErrors: new(int32(2))},
		},
	}))
	bad := w.endpoints[1]
	bad.answers(func(rw http.ResponseWriter, _ *http.Request) {
		if bad.hits.Load()%4 != 0 { // three in a row, which neither weir's own rules nor the policy minds
			rw.WriteHeader(http.StatusInternalServerError)
		}
	})
	r := w.start(agent.Config{Node: "node-a"})
	r.zones(12) // so few that the rate rule, which wants five, does not act
	if s := r.of(t, bad); s.Ejections != 0 || bad.hits.Load() != 4 {
		t.Errorf("it sat out %d times after %d requests, want 0 after 4", s.Ejections, bad.hits.Load())
	}
}

func TestWhoFailsMoreThanThePercentageSitsOut(t *testing.T) {
	w := newCluster(t, topology.ModeDisabled, 1)
	w.follow(ruleFor("percentage", policy.Conf{
		LoadBalancer: balancer(policy.RoundRobin), Locality: oneZone(),
		OutlierDetection: &policy.OutlierDetection{
			Interval: new(policy.Duration(500 * time.Millisecond)), BaseEjectionTime: new(policy.Duration(long)),
			FailurePercentage: &policy.FailurePercentage{
				Threshold: new(policy.Number(15.0)), MinimumHosts: new(int32(3)), RequestVolume: new(int32(10)),
			},
		},
	}))
	for i, every := range []int64{50, 6, 50} { // of five and more in a row less than 30 % fail, which weir's own rules mind
		e := w.endpoints[i]
		e.answers(func(rw http.ResponseWriter, _ *http.Request) {
			if e.hits.Load()%every == 0 {
				rw.WriteHeader(http.StatusInternalServerError)
			}
		})
	}
	r := w.start(agent.Config{Node: "node-a"})
	stop := r.load(4)
	defer stop()
	patience.Until(t, "it is ejected", func() bool { return r.of(t, w.endpoints[1]).Out })
	if s := r.of(t, w.endpoints[1]); s.OutFor < long.Seconds()/2 {
		t.Errorf("it is ejected for %.0f s more, want the policy's %v", s.OutFor, long)
	}
	before := hits(w.endpoints)
	patience.Until(t, "the others go on", func() bool { return hits(w.endpoints) > before+500 })
	if n := r.out(t); n != 1 {
		t.Errorf("%d are ejected, want the one that fails a sixth", n)
	}
}

func TestANewEndpointStartsSlowly(t *testing.T) {
	const window, asked = 5 * time.Second, 300
	w := newCluster(t, topology.ModeDisabled, 1)
	w.snapshots.Store(w.snapshot(w.endpoints[:2]...))
	w.follow(ruleFor("slow", policy.Conf{
		LoadBalancer: balancer(policy.RoundRobin), Locality: oneZone(), SlowStart: &policy.SlowStart{Window: policy.Duration(window)},
	}))
	r := w.start(agent.Config{Node: "node-a"})
	r.zones(20)
	began := time.Now()
	w.snapshots.Store(w.snapshot(w.endpoints...))
	patience.Within(t, time.Second, "the new one is known", func() bool { return len(r.pool(t).Endpoints) == 3 })
	newcomer := w.endpoints[2]
	before := newcomer.hits.Load()
	r.zones(asked)
	got := float64(newcomer.hits.Load() - before)
	part := func(weight float64) float64 { return asked * weight / (2 + weight) }
	grown := min(1, time.Since(began).Seconds()/window.Seconds())
	// Its turns are kept by chance, as often as it has weight: a third of the requests would be its fair part.
	if most := part(max(0.1, grown)); got == 0 || got > most+5*math.Sqrt(most) {
		t.Errorf("in its first %v the new one got %v of %d requests, want some, about %.0f at most", time.Since(began), got, asked, most)
	}
	patience.Until(t, "it has its fair part", func() bool {
		before := newcomer.hits.Load()
		r.zones(300)
		return newcomer.hits.Load()-before == 100
	})
	if took := time.Since(began); took < window/2 { // at half of its weight it has a fifth
		t.Errorf("it had a third after %v, of a window of %v", took, window)
	}
}

func TestBelowTheFailoverThresholdAPartGoesElsewhere(t *testing.T) {
	const requests = 2500
	w := newCluster(t, topology.ModePreferSameZone, 10)
	w.extra = func(svc *topology.Service) {
		atHome := 0
		for i := range svc.Endpoints {
			if e := &svc.Endpoints[i]; e.Zone == "a" {
				if atHome++; atHome > 3 {
					e.Ready = topology.False
				}
			}
		}
	}
	w.snapshots.Store(w.snapshot(w.endpoints...))
	disabled := policy.OverflowDisabled
	w.follow(ruleFor("threshold", policy.Conf{Locality: policy.Locality{
		FailoverThreshold: new(policy.Number(50.0)), Overflow: policy.Overflow{Mode: &disabled},
	}}))
	r := w.start(agent.Config{Node: "node-a"})
	counts := r.zones(requests)
	const share = 2 * 0.3 // 100 % as long as half of them are ready
	fiveSigma := 5 * math.Sqrt(share*(1-share)*requests)
	if got := float64(counts["a"]); math.Abs(got-share*requests) > fiveSigma || counts["a"]+counts["b"]+counts["c"] != requests {
		t.Errorf("%v, want %.0f ± %.0f at home and the rest in other zones", counts, share*requests, fiveSigma)
	}
	if n := hits(w.in("a")[3:]); n > 0 {
		t.Errorf("endpoints that are not ready got %d requests", n)
	}
}

// ejecting is a policy that pauses endpoints for long after two gateway errors, as many as it likes.
func ejecting(name string, change func(*policy.Conf)) policy.Rule {
	conf := policy.Conf{
		LoadBalancer: balancer(policy.RoundRobin), Locality: oneZone(),
		OutlierDetection: &policy.OutlierDetection{
			BaseEjectionTime: new(policy.Duration(long)), MaxEjectionTime: new(policy.Duration(long)), MaxEjectionPercent: new(policy.Number(100.0)),
			Consecutive: &policy.Consecutive{GatewayErrors: new(int32(2))},
		},
	}
	if change != nil {
		change(&conf)
	}
	return ruleFor(name, conf)
}

func TestAPanicThresholdOfAHundredUsesWhoSitsOut(t *testing.T) {
	w := newCluster(t, topology.ModeDisabled, 1)
	w.follow(ejecting("panic", func(c *policy.Conf) { c.PanicThreshold = new(policy.Number(100.0)) }))
	bad := w.endpoints[1]
	bad.fails(http.StatusBadGateway)
	r := w.start(agent.Config{Node: "node-a"})
	patience.Until(t, "it is ejected", func() bool { r.zones(1); return r.of(t, bad).Out })
	bad.behaves()
	before := bad.hits.Load()
	patience.Until(t, "it is used all the same", func() bool { r.zones(10); return bad.hits.Load() > before+20 })
	if s := r.of(t, bad); !s.Out || s.Ejections != 1 {
		t.Errorf("want its first ejection, got %+v", s)
	}
}

func TestAPanicThresholdOfZeroUsesNobodyWhoSitsOut(t *testing.T) {
	w := newCluster(t, topology.ModeDisabled, 1)
	w.follow(ejecting("calm", func(c *policy.Conf) { c.PanicThreshold = new(policy.Number(0.0)) }))
	for _, e := range w.endpoints {
		e.fails(http.StatusServiceUnavailable)
	}
	r := w.start(agent.Config{Node: "node-a"})
	patience.Until(t, "all are ejected", func() bool { r.zones(1); return r.out(t) == 3 })
	before := hits(w.endpoints)
	patience.Stays(t, someTicks, "ejected endpoints get nothing", func() bool {
		return r.zones(5)["503"] == 5 && hits(w.endpoints) == before
	})
}

// Ten percent of three is none, but one always may.
func TestOneEndpointMaySitOutOfAFew(t *testing.T) {
	w := newCluster(t, topology.ModeDisabled, 1)
	w.follow(ejecting("few", func(c *policy.Conf) { c.OutlierDetection.MaxEjectionPercent = new(policy.Number(10.0)) }))
	for _, e := range w.endpoints[:2] {
		e.fails(http.StatusServiceUnavailable)
	}
	r := w.start(agent.Config{Node: "node-a"})
	patience.Until(t, "one is ejected", func() bool { r.zones(1); return r.out(t) == 1 })
	before := hits(w.endpoints[:2])
	patience.Stays(t, someTicks, "one is ejected", func() bool { r.zones(10); return r.out(t) == 1 })
	if hits(w.endpoints[:2]) == before {
		t.Error("the other one that fails got no requests: an endpoint that may not be ejected takes part")
	}
}

func TestAChangeOfPolicyKeepsWhatThePoolKnows(t *testing.T) {
	w := newCluster(t, topology.ModeDisabled, 1)
	w.follow(ejecting("first", nil))
	bad, busy := w.endpoints[0], w.endpoints[1]
	bad.fails(http.StatusServiceUnavailable)
	release := make(chan struct{})
	free := sync.OnceFunc(func() { close(release) })
	defer free()
	asked := make(chan struct{})
	ask := sync.OnceFunc(func() { close(asked) })
	r := w.start(agent.Config{Node: "node-a"})
	patience.Until(t, "one is ejected", func() bool { r.zones(1); return r.out(t) == 1 })
	before := busy.hits.Load()
	busy.answers(func(http.ResponseWriter, *http.Request) { ask(); <-release })
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer free()
	waiting.Go(func() { // one request after the other, until the busy one holds one
		for busy.hits.Load() == before {
			if status, _, err := r.get(); err != nil || status != http.StatusOK {
				t.Errorf("a request that was under way: status %d, error %v", status, err)
			}
		}
	})
	await(t, asked, "the busy endpoint to be asked")
	patience.Until(t, "one request waits", func() bool { return r.of(t, busy).InFlight == 1 })
	for i, algorithm := range []policy.Algorithm{policy.LeastRequest, policy.Random, policy.Maglev, policy.RoundRobin} {
		name := fmt.Sprint("next-", i)
		w.follow(ejecting(name, func(c *policy.Conf) { c.LoadBalancer = balancer(algorithm) }))
		r.applied(name)
		if s := r.of(t, bad); !s.Out || s.Ejections != 1 || s.OutFor < long.Seconds()/2 {
			t.Errorf("%s: the one that sat out is %+v", algorithm, s)
		}
		if s := r.of(t, busy); s.InFlight != 1 {
			t.Errorf("%s: %d requests wait for the busy one, want 1", algorithm, s.InFlight)
		}
	}
	free()
	patience.Until(t, "no request waits", func() bool { return r.of(t, busy).InFlight == 0 })
}

func TestAChangeOfAnotherFieldMovesNoKey(t *testing.T) {
	w := newCluster(t, topology.ModeDisabled, 3)
	for i, e := range w.endpoints {
		e.answers(func(rw http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(rw, i) })
	}
	for _, algorithm := range []policy.Algorithm{policy.Maglev, policy.RingHash} {
		rule := func(name string, change func(*policy.Conf)) policy.Rule {
			return ejecting(name, func(c *policy.Conf) {
				c.LoadBalancer = balancer(algorithm)
				c.HashPolicies = []policy.HashPolicy{{Type: policy.HashHeader, Header: &policy.HeaderKey{Name: "x-user"}}}
				change(c)
			})
		}
		first := string(algorithm) + "-first"
		w.follow(rule(first, func(*policy.Conf) {}))
		r := w.start(agent.Config{Node: "node-a"})
		r.applied(first)
		before := r.keys(t, 60)
		for name, change := range map[string]func(*policy.Conf){
			"outliers": func(c *policy.Conf) { c.OutlierDetection = nil },
			"panic":    func(c *policy.Conf) { c.PanicThreshold = new(policy.Number(30.0)) },
			"fewer":    func(c *policy.Conf) { c.OutlierDetection.MaxEjectionPercent = new(policy.Number(20.0)) },
		} {
			w.follow(rule(string(algorithm)+"-"+name, change))
			r.applied(string(algorithm) + "-" + name)
			if diff := cmp.Diff(before, r.keys(t, 60)); diff != "" {
				t.Errorf("%s, %s: keys moved (-before +after)\n%s", algorithm, name, diff)
			}
		}
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
	}
}

// keys gives the endpoint that answers each of n values of a header.
func (r *running) keys(t *testing.T, n int) []string {
	t.Helper()
	answers := make([]string, n)
	for i := range answers {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-User", fmt.Sprint("user-", i))
		resp, err := r.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("status %d, error %v", resp.StatusCode, err)
		}
		answers[i] = string(body)
	}
	return answers
}
