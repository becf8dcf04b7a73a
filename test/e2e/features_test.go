package e2e_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/patience"
)

// alone is five pods in the zone of the only node.
func alone(t *testing.T, number int) *site {
	t.Helper()
	return newSite(t, number, "shop/web", zones()[:1]).with(t, "p1@node-a", "p2@node-a", "p3@node-a", "p4@node-a", "p5@node-a")
}

func TestRequestsOfAQueryStayTogether(t *testing.T) {
	t.Parallel()
	s := alone(t, 20)
	s.apply(t)
	s.policy(t, `
loadBalancer: {type: RingHash, ringHash: {hashFunction: MurmurHash2, minRingSize: 64, maxRingSize: 1024}}
hashPolicies: [{type: QueryParameter, queryParameter: {name: id}}]`)
	n := s.start(t, "node-a")
	n.holds(t, "algorithm=RingHash")
	c := n.client(t, 0)
	seen := make(map[string]bool)
	for i := range 40 {
		owner := c.ask(t, fmt.Sprintf("/?id=%d", i))
		seen[owner] = true
		for j := range 5 {
			for _, path := range []string{"/a?id=%d&page=%d", "/b?page=%[2]d&id=%[1]d&id=9", "/?ID=%[2]d&id=%[1]d"} {
				if got := c.ask(t, fmt.Sprintf(path, i, j)); got != owner {
					t.Errorf("id %d comes to %s and to %s", i, owner, got)
				}
			}
		}
	}
	if len(seen) < 4 {
		t.Errorf("40 keys come to %d of 5 pods", len(seen))
	}
}

func TestFilterStateIsTakenFromTrustedFiltersOnly(t *testing.T) {
	t.Parallel()
	s := alone(t, 21)
	s.apply(t)
	s.policy(t, `
loadBalancer: {type: Maglev}
hashPolicies: [{type: FilterState, filterState: {key: shop.user}}]`)
	const field = "X-Weir-Filter-State"
	tells := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, strings.Join(r.Header.Values(field), "|"))
	}
	n := s.start(t, "node-a", "--trusted-filter", s.block+"101/32")
	n.holds(t, "algorithm=Maglev")
	filter, other := n.client(t, 101), n.client(t, 102)
	seen := make(map[string]bool)
	for i := range 40 {
		state := fmt.Sprintf("shop.shard=7, shop.user = user-%d", i)
		owner := filter.ask(t, "/", field, state)
		seen[owner] = true
		for range 5 {
			if got := filter.ask(t, "/", field, state); got != owner {
				t.Errorf("of a trusted filter %s comes to %s and to %s", state, owner, got)
			}
		}
	}
	if len(seen) < 4 {
		t.Errorf("40 keys come to %d of 5 pods", len(seen))
	}
	clear(seen)
	for range 60 {
		seen[other.ask(t, "/", field, "shop.user=user-1")] = true
	}
	if len(seen) != 5 { // one missed: less than 1 in 100,000
		t.Errorf("what a client says of itself keeps it with %d of 5 pods", len(seen))
	}
	for _, p := range s.pods {
		p.answers(tells)
	}
	for name, c := range map[string]*client{"a filter": filter, "another client": other} {
		if got := c.ask(t, "/", field, "shop.user=secret"); got != "" {
			t.Errorf("the pod is told %q by %s", got, name)
		}
	}
}

func TestTheBusiestOfTenGetsNextToNothing(t *testing.T) {
	t.Parallel()
	var pods []string
	for i := range 10 {
		pods = append(pods, fmt.Sprintf("p%d@node-a", i))
	}
	s := newSite(t, 22, "shop/web", zones()[:1]).with(t, pods...)
	s.apply(t)
	s.policy(t, "loadBalancer: {type: LeastRequest, leastRequest: {choiceCount: 8}}")
	n := s.start(t, "node-a")
	n.holds(t, "algorithm=LeastRequest", "loadBalancer.leastRequest.choiceCount=8")
	c := n.client(t, 0)

	// One pod holds a request: it is the only one that has any when a client that asks one by one decides.
	busy, free := s.pod("p0"), make(chan struct{})
	busy.answers(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-free:
		case <-r.Context().Done():
		}
		_, _ = io.WriteString(w, busy.name)
	})
	held := c.flood(t, 1, plain)
	patience.Until(t, "the pod holds a request", func() bool { return busy.hits.Load() == 1 })
	const times = 2000
	if got := c.count(t, times/2)["p0"]; got != 0 || busy.hits.Load() != 1 {
		t.Errorf("the busiest of ten gets %d of %d requests when eight are compared", got, times/2)
	}

	// With two to choose from it is drawn twice by one request in a hundred.
	busy.behaves() // at once, but for the request that it holds
	s.policy(t, "loadBalancer: {type: LeastRequest, leastRequest: {choiceCount: 2}}")
	n.holds(t, "loadBalancer.leastRequest.choiceCount=2")
	if got := c.count(t, times)["p0"]; got < 1 || got > 43 { // 20 ± 5 standard deviations of 4.5; none is 1 in 100 million
		t.Errorf("the busiest of ten gets %d of %d requests when two are compared, want about 20", got, times)
	}
	close(free)
	held()
}

func TestWeightsOfPodsCountWhereTheAlgorithmKnowsThem(t *testing.T) {
	t.Parallel()
	s := newSite(t, 23, "shop/web", zones()[:1]).with(t, "p1@node-a", "p2@node-a", "p3@node-a")
	for i, p := range s.pods {
		p.annotations = map[string]string{"weir.dev/weight": fmt.Sprint(i + 1)}
	}
	s.apply(t)
	s.policy(t, "loadBalancer: {type: RoundRobin}")
	n := s.start(t, "node-a")
	n.holds(t, "algorithm=RoundRobin")
	c := n.client(t, 0)
	const times = 900
	shares := map[string]float64{"p1": 1.0 / 6, "p2": 2.0 / 6, "p3": 3.0 / 6}
	answers := c.count(t, times)
	for pod, share := range shares {
		near(t, pod+" in turn", answers[pod], about{times, share, 0.01}) // smooth: a few requests at the ends
	}
	for _, algorithm := range []string{"LeastRequest", "RingHash", "Maglev"} {
		s.policy(t, "loadBalancer: {type: "+algorithm+"}\nhashPolicies: [{type: Header, header: {name: x-user}}]")
		n.holds(t, "algorithm="+algorithm)
		clear(answers)
		for i := range times {
			answers[c.ask(t, "/", "X-User", fmt.Sprint(i))]++
		}
		for pod, share := range shares {
			near(t, pod+" by "+algorithm, answers[pod], about{times, share, 0.085}) // 5 standard deviations
		}
	}
	s.policy(t, "loadBalancer: {type: Random}")
	n.holds(t, "algorithm=Random")
	answers = c.count(t, times)
	for _, p := range s.pods {
		near(t, p.name+" at random", answers[p.name], about{times, 1.0 / 3, 0.08}) // 5 standard deviations; weights do not count
	}
}

func TestANewPolicyTakesEffectWithinASecondAndLosesNoRequest(t *testing.T) {
	t.Parallel()
	s := newSite(t, 24, "shop/web", zones()).with(t, "a1@node-a", "a2@node-a", "b1@node-b", "c1@node-c")
	s.apply(t)
	stay := "locality: {failover: [{to: {type: None}}]}"
	s.policy(t, stay)
	n := s.start(t, "node-a")
	n.holds(t, "locality.failover=*")
	c := n.client(t, 0)
	stop := c.flood(t, 4, func(i int) (string, []string) { return "/", []string{"X-User", fmt.Sprint(i % 50)} })
	patience.Until(t, "requests flow", func() bool { return hits(s.pods) > 200 })
	if others := hits(s.on("b")) + hits(s.on("c")); others > 0 {
		t.Errorf("%d requests left the zone", others)
	}
	only := func(zone, algorithm string) string { // without failover: on a busy machine zones are slow now and then
		return "loadBalancer: {type: " + algorithm + "}\nhashPolicies: [{type: Header, header: {name: x-user}}]\n" +
			"locality: {failover: [{to: {type: None}}], weights: [{key: topology.kubernetes.io/zone, value: " + zone + ", weight: 1}]}"
	}
	for i, spec := range []string{only("b", "Maglev"), only("c", "RingHash"), only("b", "LeastRequest"), stay, only("c", "Random")} {
		there := s.on([]string{"b", "c", "b", "a", "c"}[i])
		asked := hits(there)
		s.policy(t, spec)
		took := patience.Within(t, time.Second, "the policy takes effect", func() bool { return hits(there) > asked+5 })
		t.Logf("figure: a policy took effect %v after it was written", took.Round(time.Millisecond))
		rest := hits(s.pods) - hits(there)
		asked = hits(there)
		patience.Until(t, "more requests flow", func() bool { return hits(there) > asked+100 })
		if strays := hits(s.pods) - hits(there) - rest; strays > 20 {
			t.Errorf("after policy %d took effect %d requests went elsewhere", i, strays)
		}
	}
	if r := stop(); len(r.bad) > 0 {
		t.Errorf("%d of %d requests failed, the first %s", len(r.bad), total(r.answers), r.bad[0])
	}
}

func TestABadEditKeepsTheLastGoodPolicy(t *testing.T) {
	t.Parallel()
	s := newSite(t, 25, "shop/web", zones()).with(t, "a1@node-a", "b1@node-b", "c1@node-c")
	s.apply(t)
	// Nothing may spill: on a busy machine zones are slow now and then.
	const only = "locality: {weights: [{key: topology.kubernetes.io/zone, value: %s, weight: 1}], failover: [{to: {type: None}}]}\n"
	s.policy(t, fmt.Sprintf(only, "c"))
	n := s.start(t, "node-a")
	n.holds(t, "locality.weights=*")
	c := n.client(t, 0)
	stop := n.client(t, 0).flood(t, 2, plain)
	for _, bad := range []struct{ spec, logged string }{
		{fmt.Sprintf(only, "b") + "loadBalancer: {type: Maglev, maglev: {tableSize: 100}}", "spec.loadBalancer.maglev.tableSize"},
		{fmt.Sprintf(only, "b") + "hashPolicy: []", "spec.hashPolicy: unknown field"},
		{fmt.Sprintf(only, "b") + "panicThreshold: high", "spec.panicThreshold"},
		{fmt.Sprintf(only, "b") + "loadBalancer: {", "the manifests cannot be read, the last good state stays"},
	} {
		s.policy(t, bad.spec)
		patience.Until(t, "the log says "+bad.logged, func() bool { return strings.Contains(n.log.String(), bad.logged) })
		patience.Stays(t, time.Second, "the last good policy counts after "+bad.spec, func() bool { return c.count(t, 50)["c1"] == 50 })
	}
	s.policy(t, fmt.Sprintf(only, "b"))
	patience.Within(t, time.Second, "the next good policy counts", func() bool { return c.ask(t, "/") == "b1" })
	patience.Stays(t, time.Second, "the next good policy counts", func() bool { return c.ask(t, "/") == "b1" })
	if r := stop(); len(r.bad) > 0 || r.answers["a1"] > 0 {
		t.Errorf("%d requests failed, these were answered: %v", len(r.bad), r.answers)
	}
	if lines := strings.Count(n.log.String(), "\n"); lines > 60 {
		t.Errorf("the log has %d lines", lines)
	}
}

func TestPanicThreshold(t *testing.T) {
	t.Parallel()
	s := newSite(t, 26, "shop/web", zones()[:1]).with(t, "p1@node-a", "p2@node-a", "p3@node-a")
	s.apply(t)
	spec := `
loadBalancer: {type: RoundRobin}
panicThreshold: %d
outlierDetection: {baseEjectionTime: 120s, maxEjectionTime: 120s, maxEjectionPercent: 100, consecutive: {serverErrors: 3}}`
	s.policy(t, fmt.Sprintf(spec, 0))
	n := s.start(t, "node-a")
	n.holds(t, "panicThreshold=0")
	c := n.client(t, 0)
	c.count(t, 30)
	for _, p := range s.pods {
		p.fails(http.StatusInternalServerError)
	}
	refused := func() bool {
		got, err := c.get("/")
		return err == nil && got.status == http.StatusServiceUnavailable && got.header.Get("Weir-Reason") != ""
	}
	patience.Until(t, "all are ejected, and none is used", func() bool {
		for range 20 {
			if !refused() {
				return false
			}
		}
		return true
	})
	before := hits(s.pods)
	patience.Stays(t, time.Second, "no pod is used while all are ejected", func() bool { return refused() && hits(s.pods) == before })
	for _, p := range s.pods {
		p.behaves()
	}
	s.policy(t, fmt.Sprintf(spec, 50))
	n.holds(t, "panicThreshold=50")
	patience.Within(t, followed, "in a panic ejected endpoints are used", func() bool { return !refused() })
	c.count(t, 30)
}

func TestWithoutLocalityAllZonesAreAlike(t *testing.T) {
	t.Parallel()
	s := newSite(t, 27, "shop/web", zones()).with(t, "a1@node-a", "a2@node-a", "a3@node-a", "b1@node-b", "c1@node-c", "c2@node-c")
	s.apply(t)
	s.policy(t, "loadBalancer: {type: RoundRobin}")
	n := s.start(t, "node-a")
	n.holds(t, "algorithm=RoundRobin")
	c := n.client(t, 0)
	patience.Until(t, "with locality the zone answers alone", func() bool {
		others := hits(s.on("b")) + hits(s.on("c"))
		return total(c.count(t, 300)) == 300 && hits(s.on("b"))+hits(s.on("c")) == others
	})
	s.policy(t, "loadBalancer: {type: RoundRobin}\nlocality: {disabled: true}")
	n.holds(t, "locality.disabled=true")
	answers := c.count(t, 600)
	for _, p := range s.pods {
		if got := answers[p.name]; got < 95 || got > 105 { // in turn
			t.Errorf("without locality %s answers %d of 600 requests, want 100", p.name, got)
		}
	}
}

// Of a list only what a connection has counts for TCP.
func TestConnectionsHashBySourceAlone(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 8)
	c.write(t, "policy.yaml", `apiVersion: weir.dev/v1alpha1
kind: LoadBalancingPolicy
metadata: {name: sticky, namespace: shop}
spec:
  targetRefs: [{group: "", kind: Service, name: web, sectionName: echo}]
  loadBalancer: {type: Maglev}
  hashPolicies: [{type: Header, header: {name: x-user}}, {type: SourceIP}]
  locality: {disabled: true}
`)
	a, b := c.start(t, "a"), c.start(t, "b")
	answer := func(n *node, source int) string {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(fmt.Sprint(c.block, source))}}
		conn, err := dialer.DialContext(t.Context(), "tcp", n.at("echo"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		send(t, conn, "hello")
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(conn)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	seen := make(map[string]bool)
	for source := 101; source < 141; source++ {
		first := answer(a, source)
		seen[first] = true
		for _, n := range []*node{a, b, b, a} {
			if got := answer(n, source); got != first {
				t.Errorf("source %d is answered %q and %q", source, first, got)
			}
		}
	}
	if len(seen) != 3 || !seen["hello zone-c"] { // one missed by 40: less than 1 in a million
		t.Errorf("40 sources get the answers %v", seen)
	}
}
