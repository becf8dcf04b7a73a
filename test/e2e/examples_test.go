package e2e_test

import (
	"fmt"
	"maps"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/patience"
)

// The tests of this file run the policies of deploy/examples/policies as they stand. What follows from a number in one of
// them is tested with that number changed in the file, where waiting for it would take too long.

func TestExampleMeshDefaultKeepsALoadBand(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1, "shop/web", zones()).with(t, "a1@node-a", "a2@node-a", "b1@node-b", "c1@node-c")
	s.apply(t)
	s.write(t, "policy.yaml", example(t, "1-mesh-default.yaml"))
	n := s.start(t, "node-a")
	n.holds(t, "algorithm=LeastRequest", "locality.overflow.loadBand=*")
	c := n.client(t, 0)
	if answers := c.count(t, 200); answers["a1"]+answers["a2"] != 200 {
		t.Errorf("at rest the zone answers %v of 200 requests", answers)
	}
	for _, p := range s.pods {
		p.takes(30 * time.Millisecond)
	}
	stop := c.flood(t, 12, plain) // 6 in flight for each of its two endpoints, above 2.0
	patience.Until(t, "other zones help", func() bool { return hits(s.on("b"))+hits(s.on("c")) > 20 })
	if r := stop(); len(r.bad) > 0 {
		t.Errorf("%d requests failed, the first %s", len(r.bad), r.bad[0])
	}
	for _, p := range s.pods {
		p.behaves()
	}
	atHome := func() bool {
		others := hits(s.on("b")) + hits(s.on("c"))
		c.count(t, 50)
		return hits(s.on("b"))+hits(s.on("c")) == others
	}
	patience.Until(t, "no other zone helps any longer", atHome)
	patience.Stays(t, 500*time.Millisecond, "no other zone helps any longer", atHome)
}

func TestExampleMeshDefaultEjectsWhoFails(t *testing.T) {
	t.Parallel()
	s := newSite(t, 2, "shop/web", zones()[:1]).with(t, "a1@node-a", "a2@node-a", "a3@node-a", "a4@node-a",
		"a5@node-a", "a6@node-a", "a7@node-a", "a8@node-a") // 30 % of eight are two
	s.apply(t)
	policy := example(t, "1-mesh-default.yaml")
	s.write(t, "policy.yaml", policy)
	n := s.start(t, "node-a")
	n.holds(t, "algorithm=LeastRequest", "outlierDetection.baseEjectionTime=30s")
	c := n.client(t, 0)
	eject := func(p *pod) (seconds float64) {
		p.fails(http.StatusInternalServerError)
		failed := 0
		patience.Until(t, p.name+" is ejected", func() bool {
			if got, err := c.get("/"); err != nil || got.status != http.StatusOK {
				failed++
			}
			seconds = n.out(t, p)
			return seconds > 1 // weir's own rule begins with a second
		})
		if failed < 5 {
			t.Errorf("%s is ejected after %d errors, want 5", p.name, failed)
		}
		return seconds
	}
	a1, a2 := s.pod("a1"), s.pod("a2")
	if seconds := eject(a1); seconds > 30 {
		t.Errorf("it is ejected for %v s, want 30", seconds)
	}
	before := a1.hits.Load()
	if answers := c.count(t, 300); a1.hits.Load() != before || answers["a2"] == 0 || len(answers) != 7 {
		t.Errorf("while a1 is ejected %v answer", answers)
	}

	// It comes back after the pause, and then starts slowly: with a tenth of its weight, which grows for 30 s.
	a1.behaves()
	s.write(t, "policy.yaml", replace(t, policy, "baseEjectionTime: 30s", "baseEjectionTime: 3s"))
	n.holds(t, "outlierDetection.baseEjectionTime=3s")
	eject(a2)
	a2.behaves()
	before = a2.hits.Load()
	patience.Until(t, "a2 is back", func() bool {
		c.ask(t, "/")
		return a2.hits.Load() > before
	})
	began := time.Now()
	answers := c.count(t, 600)
	weight := max(0.1, (time.Since(began).Seconds()+1)/30) // at the end; a second for its way back
	most := weight / (6 + weight)                          // beside six whole ones, as a1 is still ejected
	if got := float64(answers["a2"]) / 600; got > most+5*math.Sqrt(most*(1-most)/600) {
		t.Errorf("%v after it came back a2 answers %.3f of the requests, want %.3f at most", time.Since(began), got, most)
	}
	s.write(t, "policy.yaml", replace(t, policy, "  slowStart: {window: 30s}\n", ""))
	n.holds(t, "slowStart=-")
	near(t, "a2 without a slow start", c.count(t, 900)["a2"], about{900, 1.0 / 7.5, 0.065}) // of seven or eight; 5 deviations
}

// tenant is the header that the second example goes by.
const tenant = "X-Tenant-Id"

// owners asks for n tenants and tells which pod answered each.
func (c *client) owners(t *testing.T, n int) map[string]string {
	t.Helper()
	owners := make(map[string]string, n)
	for i := range n {
		key := fmt.Sprintf("key-%d", i)
		owners[key] = c.ask(t, "/", tenant, key)
	}
	return owners
}

// moved counts the keys that changed their pod: those of pods that are gone, and others.
func moved(before, after map[string]string, gone ...string) (theirs, others int) {
	for key, pod := range before {
		switch {
		case pod == after[key]:
		case slices.Contains(gone, pod):
			theirs++
		default:
			others++
		}
	}
	return theirs, others
}

// keysOf counts the keys of a pod.
func keysOf(owners map[string]string, pod string) (n int) {
	for _, owner := range owners {
		if owner == pod {
			n++
		}
	}
	return n
}

// cacheShards is the service that the second example is about, on the addresses of that number.
func cacheShards(t *testing.T, number int) *site {
	t.Helper()
	s := newSite(t, number, "shop/cache", zones()).with(t,
		"cache-0@node-a", "cache-1@node-b", "cache-2@node-c", "cache-3@node-a", "cache-4@node-b", "cache-5@node-c")
	s.apply(t)
	s.write(t, "policy.yaml", example(t, "2-cache-shards.yaml"))
	return s
}

func TestExampleCacheShardsMapsAKeyToOnePodFromEveryZone(t *testing.T) {
	t.Parallel()
	const keys = 400
	s := cacheShards(t, 3)
	a, b := s.start(t, "node-a"), s.start(t, "node-b")
	a.holds(t, "algorithm=Maglev")
	b.holds(t, "algorithm=Maglev")
	ca, cb := a.client(t, 0), b.client(t, 0)
	before := ca.owners(t, keys)
	for _, p := range s.pods {
		near(t, "keys of "+p.name, keysOf(before, p.name), about{keys, 1.0 / 6, 5 * 0.0187})
	}
	if !maps.Equal(before, cb.owners(t, keys)) {
		t.Error("agents of two zones send the same keys to different pods")
	}

	// A user's requests go to one pod, however many there are at the same time, on however many connections.
	for i := range 10 {
		key := fmt.Sprintf("key-%d", i)
		asked := s.pod(before[key]).hits.Load()
		r := ca.flood(t, 8, func(int) (string, []string) { return "/", []string{tenant, key} })
		patience.Until(t, key+" is asked for often", func() bool { return s.pod(before[key]).hits.Load() > asked+100 })
		if got := r(); len(got.answers) != 1 || got.answers[before[key]] == 0 || len(got.bad) > 0 {
			t.Errorf("%s belongs to %s; %v answered, %d requests failed", key, before[key], got.answers, len(got.bad))
		}
	}

	// A pod that comes back under its name has its keys again, whatever its address.
	again := s.newPod(t, "cache-0", "node-a")
	old := s.pods[0]
	s.pods[0] = again
	s.apply(t)
	for _, c := range []*client{ca, cb} {
		asked := again.hits.Load()
		patience.Until(t, "the new cache-0 answers", func() bool {
			c.owners(t, 20)
			return again.hits.Load() > asked
		})
	}
	stale := old.hits.Load()
	if after := ca.owners(t, keys); !maps.Equal(before, after) || old.hits.Load() != stale {
		theirs, others := moved(before, after, "cache-0")
		t.Errorf("under its name cache-0 lost %d keys and %d others moved", theirs, others)
	}

	// A pod that goes takes only its own keys with it, and hardly any of the others.
	s.pods = slices.Delete(s.pods, 5, 6)
	s.apply(t)
	isGone := func() bool { return keysOf(ca.owners(t, 40), "cache-5")+keysOf(cb.owners(t, 40), "cache-5") == 0 }
	patience.Within(t, followed, "cache-5 gets no key", isGone)
	patience.Stays(t, 500*time.Millisecond, "cache-5 gets no key", isGone)
	after := ca.owners(t, keys)
	theirs, others := moved(before, after, "cache-5")
	if theirs != keysOf(before, "cache-5") || others > keys/50 {
		t.Errorf("without cache-5 its %d keys of %d moved, and %d others", theirs, keys, others)
	}
	t.Logf("figure: Maglev moved %d keys of the pod that went and %d of %d others", theirs, others, keys-theirs)
	if !maps.Equal(after, cb.owners(t, keys)) {
		t.Error("after a change agents of two zones send the same keys to different pods")
	}
}

func TestExampleCacheShardsAsksForTheHeaderBeforeTheCookie(t *testing.T) {
	t.Parallel()
	s := cacheShards(t, 4)
	a, b := s.start(t, "node-a"), s.start(t, "node-b")
	a.holds(t, "algorithm=Maglev")
	b.holds(t, "algorithm=Maglev")
	c, cb := a.client(t, 0), b.client(t, 0)
	owner := c.ask(t, "/", "X-Tenant-Id", "alice")
	for i := range 40 {
		if got := c.ask(t, "/", "X-Tenant-Id", "alice", "Cookie", fmt.Sprintf("sid=%d", i)); got != owner {
			t.Fatalf("beside a header the cookie counts: %s answers instead of %s", got, owner)
		}
	}
	form := regexp.MustCompile(`^sid="([0-9a-f]{16})"; Max-Age=3600; Path=/; HttpOnly$`)
	seen := make(map[string]bool)
	for range 40 {
		first := a.client(t, 0) // on a connection of its own
		got, err := first.get("/")
		if err != nil || got.status != http.StatusOK {
			t.Fatal(err, got)
		}
		cookie := form.FindStringSubmatch(got.header.Get("Set-Cookie"))
		if cookie == nil {
			t.Fatalf("the cookie is %q", got.header.Values("Set-Cookie"))
		}
		seen[got.pod] = true
		for _, n := range []*node{a, b} {
			later, err := n.client(t, 0).get("/", "Cookie", "sid="+cookie[1])
			if err != nil || later.pod != got.pod || later.header.Get("Set-Cookie") != "" {
				t.Errorf("with its cookie a client of %s comes to %v instead of %s, %v", n.name, later, got.pod, err)
			}
		}
	}
	if len(seen) < 5 { // to have missed two of six is a chance of less than 1 in a million
		t.Errorf("40 clients without a cookie come to %d of 6 pods", len(seen))
	}

	// The source comes last; without the cookie, which is made where there is none, it decides.
	const line = "  - {type: Cookie, terminal: true, cookie: {name: sid, ttl: 1h, path: /}}\n"
	s.write(t, "policy.yaml", replace(t, example(t, "2-cache-shards.yaml"), line, ""))
	setsNone := func() bool {
		got, err := cb.get("/")
		other, otherErr := c.get("/")
		return err == nil && otherErr == nil && got.header.Get("Set-Cookie") == "" && other.header.Get("Set-Cookie") == ""
	}
	patience.Within(t, followed, "no cookie is set", setsNone)
	patience.Stays(t, 500*time.Millisecond, "no cookie is set", setsNone)
	clear(seen)
	for i := range 40 {
		own := a.client(t, 101+i).ask(t, "/")
		seen[own] = true
		for _, n := range []*node{a, b, a} {
			if got := n.client(t, 101+i).ask(t, "/", "Cookie", fmt.Sprintf("sid=%d", i)); got != own {
				t.Errorf("source %d comes to %s and to %s", i, own, got)
			}
		}
		if got := a.client(t, 101+i).ask(t, "/", "X-Tenant-Id", "alice"); got != owner {
			t.Errorf("beside a header the source counts: %s answers instead of %s", got, owner)
		}
	}
	if len(seen) < 5 {
		t.Errorf("40 sources come to %d of 6 pods", len(seen))
	}
}

func TestExampleCacheShardsWithARing(t *testing.T) {
	t.Parallel()
	const keys = 400
	s := cacheShards(t, 5)
	s.write(t, "policy.yaml", replace(t, example(t, "2-cache-shards.yaml"),
		"{type: Maglev, maglev: {tableSize: 65537}}", "{type: RingHash, ringHash: {minRingSize: 30000}}"))
	a, b := s.start(t, "node-a"), s.start(t, "node-b")
	a.holds(t, "algorithm=RingHash")
	b.holds(t, "algorithm=RingHash")
	before := a.client(t, 0).owners(t, keys)
	if !maps.Equal(before, b.client(t, 0).owners(t, keys)) {
		t.Error("agents of two zones send the same keys to different pods")
	}

	// A pod that dies while it is in the slices: its keys go on to others, the rest stays.
	_ = s.pod("cache-2").server.Close()
	during := a.client(t, 0).owners(t, keys)
	theirs, others := moved(before, during, "cache-2")
	if theirs != keysOf(before, "cache-2") || others != 0 {
		t.Errorf("with cache-2 dead its %d keys moved, and %d others", theirs, others)
	}

	// Without it there are 6000 points for each pod instead of 5000: the added sixth takes some keys along.
	s.pods = slices.Delete(s.pods, 2, 3)
	s.apply(t)
	patience.Within(t, followed, "the slices are read", func() bool {
		page, ok := a.services(t)
		return ok && page.Services[0].Ports[0].Endpoints == 5
	})
	theirs, others = moved(before, a.client(t, 0).owners(t, keys), "cache-2")
	if theirs != keysOf(before, "cache-2") || others > keys/4 {
		t.Errorf("without cache-2 its %d keys moved, and %d others", theirs, others)
	}
	t.Logf("figure: a ring moved %d keys of the pod that went and %d of %d others", theirs, others, keys-theirs)
}

func TestExampleLedgerLocalNeverLeavesTheZone(t *testing.T) {
	t.Parallel()
	rack := func(name string) map[string]string { return map[string]string{"topology.example.com/rack": name} }
	places := []place{
		{name: "node-1", zone: "a", labels: rack("r1")},
		{name: "node-2", zone: "a", labels: rack("r1")},
		{name: "node-3", zone: "a", labels: rack("r2")},
		{name: "node-4", zone: "b", labels: rack("r1")},
	}
	s := newSite(t, 6, "bank/ledger", places).with(t, "own@node-1", "rack@node-2", "zone@node-3", "other@node-4")
	s.apply(t)
	s.write(t, "policy.yaml", example(t, "3-ledger-local.yaml"))
	n := s.start(t, "node-1")
	n.holds(t, "locality.affinity=*")
	c := n.client(t, 0)
	const times = 4000 // a standard deviation of 0.0046 at most: 0.03 are more than 6
	answers := c.count(t, times)
	near(t, "the own node", answers["own"], about{times, 900.0 / 991, 0.03})
	near(t, "the own rack", answers["rack"], about{times, 90.0 / 991, 0.03})
	near(t, "the rest of the zone", answers["zone"], about{times, 1.0 / 991, 0.03})

	s.pod("own").unready.Store(true)
	s.apply(t)
	patience.Within(t, followed, "the own node's pod answers no more", func() bool { return c.count(t, 20)["own"] == 0 })
	answers = c.count(t, times)
	near(t, "the own rack, the next best", answers["rack"], about{times, 90.0 / 91, 0.03})
	near(t, "the rest of the zone then", answers["zone"], about{times, 1.0 / 91, 0.03})

	for _, name := range []string{"rack", "zone"} { // an outage that the slices do not show
		_ = s.pod(name).server.Close()
	}
	var last reply
	patience.Until(t, "no endpoint answers", func() bool {
		var err error
		last, err = c.get("/")
		return err == nil && last.status != http.StatusOK
	})
	if last.status != http.StatusBadGateway && last.status != http.StatusServiceUnavailable || last.header.Get("Weir-Reason") == "" {
		t.Errorf("in an outage a client is told %d, %v", last.status, last.header)
	}
	for _, name := range []string{"rack", "zone"} {
		s.pod(name).unready.Store(true)
	}
	s.apply(t)
	isEmpty := func() bool {
		last, err := c.get("/")
		return err == nil && last.status == http.StatusServiceUnavailable && last.header.Get("Weir-Reason") == "NoEndpoints"
	}
	patience.Within(t, followed, "the zone has no ready pod", isEmpty)
	patience.Stays(t, 500*time.Millisecond, "the zone has no ready pod", isEmpty)
	if other := s.pod("other").hits.Load(); other != 0 {
		t.Errorf("%d requests left the zone", other)
	}
}

func TestExamplePaymentsGeoFailsOverInOrder(t *testing.T) {
	t.Parallel()
	var places []place
	var pods []string
	for _, region := range []string{"us-1", "us-2", "eu-1", "eu-2", "lab"} {
		for _, zone := range []string{"a", "b"} {
			node := region + zone
			places = append(places, place{name: node, zone: node, region: region})
			pods = append(pods, node+"-0@"+node, node+"-1@"+node)
		}
	}
	s := newSite(t, 7, "pay/payments", places).with(t, pods...)
	s.apply(t)
	s.write(t, "policy.yaml", example(t, "4-payments-geo.yaml"))
	n := s.start(t, "us-1a")
	n.holds(t, "locality.zoneKey=topology.kubernetes.io/region", "locality.failoverThreshold=70")
	c := n.client(t, 0)
	in := func(region string, answers map[string]int) (n int) {
		for pod, count := range answers {
			if strings.HasPrefix(pod, region) {
				n += count
			}
		}
		return n
	}
	// The adaptive overflow of services whose policy names no other may help for a moment where a machine is busy, so that
	// each state is waited for.
	const times = 1000
	reaches := func(what string, holds func(map[string]int) bool) {
		t.Helper()
		var last map[string]int
		patience.Until(t, what, func() bool {
			last = c.count(t, times)
			return holds(last)
		})
		t.Logf("%s: %v", what, last)
	}
	down := func(names ...string) {
		for _, name := range names {
			s.pod(name).unready.Store(true)
		}
		s.apply(t)
	}
	// 5 standard deviations of a thousand are 0.048 of a share of 0.9, and 0.072 of one of 0.71.
	reaches("all stays in the region, and nine of ten in the zone", func(a map[string]int) bool {
		return in("us-1", a) == times && math.Abs(float64(in("us-1a", a))/times-0.9) < 0.048
	})
	down("us-1b-1")
	reaches("with 75 % of the region all stays in it", func(a map[string]int) bool {
		return in("us-1", a) == times && a["us-1b-1"] == 0
	})
	down("us-1b-0")
	reaches("with 50 % of the region 50 × 1.43 = 71 % stay in it", func(a map[string]int) bool {
		return in("us-1", a)+in("us-2", a) == times && math.Abs(float64(in("us-1", a))/times-0.71) < 0.072
	})
	down("us-1a-0", "us-1a-1")
	reaches("without the region all goes to the other one", func(a map[string]int) bool { return in("us-2", a) == times })
	down("us-2a-0", "us-2a-1", "us-2b-0", "us-2b-1")
	reaches("without the US all goes to Europe", func(a map[string]int) bool { return in("eu", a) == times })
	down("eu-1a-0", "eu-1a-1", "eu-1b-0", "eu-1b-1", "eu-2a-0", "eu-2a-1", "eu-2b-0", "eu-2b-1")
	refused := func() bool {
		got, err := c.get("/")
		return err == nil && got.status == http.StatusServiceUnavailable
	}
	patience.Until(t, "no endpoint is left", refused)
	patience.Stays(t, 500*time.Millisecond, "no endpoint is left", refused)
	if lab := hits(s.on("lab")); lab != 0 {
		t.Errorf("the lab got %d requests", lab)
	}
}

const searchOwner = `apiVersion: weir.dev/v1alpha1
kind: LoadBalancingPolicy
metadata: {name: owner, namespace: web}
spec:
  targetRefs: [{group: "", kind: Service, name: search}]
  loadBalancer: {type: Maglev}
  hashPolicies: [{type: Header, header: {name: x-user}}]
  locality:
    overflow: {mode: LoadBand, loadBand: {low: "0.8", high: "2.0"}}
`

func TestExampleBatchToSearchIsForItsClientsAlone(t *testing.T) {
	t.Parallel()
	s := newSite(t, 8, "web/search", zones()).with(t, "a1@node-a", "a2@node-a", "b1@node-b", "c1@node-c")
	s.apply(t)
	s.write(t, "policy.yaml", example(t, "5-batch-to-search.yaml"))
	s.write(t, "owner.yaml", searchOwner)
	var clients strings.Builder
	for i, pod := range []string{
		"{namespace: batch, name: a, labels: {tier: offline}}", "{namespace: batch, name: b, labels: {tier: online}}",
		"{namespace: web, name: c, labels: {tier: offline}}",
	} {
		fmt.Fprintf(&clients, "---\napiVersion: v1\nkind: Pod\nmetadata: %s\nspec: {nodeName: node-a}\nstatus: {phase: Running, podIPs: [{ip: %s%d}]}\n",
			pod, s.block, 101+i)
	}
	s.write(t, "clients.yaml", clients.String())
	n := s.start(t, "node-a")
	n.holds(t, "algorithm=Maglev", "algorithm=RoundRobin")

	// All send the same user: turns are taken for the offline pod of batch, the others stay where that user belongs.
	offline := n.client(t, 101)
	for range 100 {
		first, second := offline.ask(t, "/", "X-User", "u"), offline.ask(t, "/", "X-User", "u")
		if first == second || !strings.HasPrefix(first+second, "a") {
			t.Fatalf("%s and %s do not take turns", first, second)
		}
	}
	others := map[string]*client{"online": n.client(t, 102), "of another namespace": n.client(t, 103), "unknown": n.client(t, 104)}
	owner := others["unknown"].ask(t, "/", "X-User", "u")
	for name, c := range others {
		for range 50 {
			if got := c.ask(t, "/", "X-User", "u"); got != owner {
				t.Fatalf("the client that is %s comes to %s instead of %s", name, got, owner)
			}
		}
	}

	// 5 in flight for each endpoint of the zone are in the one band, and above the other.
	for _, p := range s.pods {
		p.takes(30 * time.Millisecond)
	}
	users := func(i int) (string, []string) { return "/", []string{"X-User", fmt.Sprint(i)} }
	before := hits(s.pods)
	stop := offline.flood(t, 10, users)
	patience.Until(t, "the offline client has asked for a while", func() bool { return hits(s.pods) > before+600 })
	if r := stop(); r.answers["b1"]+r.answers["c1"] > 0 || len(r.bad) > 0 {
		t.Errorf("in its band the offline client leaves the zone: %v, failed %v", r.answers, r.bad)
	}
	remote := hits(s.on("b")) + hits(s.on("c"))
	stop = others["online"].flood(t, 10, users)
	patience.Until(t, "the online client leaves the zone", func() bool { return hits(s.on("b"))+hits(s.on("c")) > remote+20 })
	if r := stop(); len(r.bad) > 0 {
		t.Errorf("%d requests failed, the first %s", len(r.bad), r.bad[0])
	}
}

func TestExampleSearchByQueryIsForItsRouteAlone(t *testing.T) {
	t.Parallel()
	s := newSite(t, 9, "web/search", zones()).with(t, "a1@node-a", "a2@node-a", "a3@node-a", "a4@node-a", "a5@node-a")
	s.apply(t)
	s.write(t, "policy.yaml", example(t, "6-search-by-query.yaml"))
	s.write(t, "owner.yaml", searchOwner)
	s.write(t, "route.yaml", `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: search, namespace: web}
spec:
  parentRefs: [{group: "", kind: Service, name: search}]
  rules:
  - name: by-query
    matches: [{path: {type: PathPrefix, value: /search}}]
  - name: rest
    matches: [{path: {type: PathPrefix, value: /}}]
`)
	n := s.start(t, "node-a")
	n.holds(t, "algorithm=Maglev")
	c := n.client(t, 0)
	const keys = 30
	byQuery, byUser := make(map[string]bool), make(map[string]bool)
	for k := range keys {
		query := fmt.Sprintf("?q=word-%d", k)
		user := fmt.Sprintf("user-%d", k)
		ofQuery, ofUser := c.ask(t, "/search"+query), c.ask(t, "/other", "X-User", user)
		byQuery[ofQuery], byUser[ofUser] = true, true
		for i := range 10 {
			if got := c.ask(t, "/search"+query+fmt.Sprintf("&page=%d", i), "X-User", fmt.Sprint(i)); got != ofQuery {
				t.Errorf("%s comes to %s and to %s", query, ofQuery, got)
			}
			if got := c.ask(t, fmt.Sprintf("/other?q=%d", i), "X-User", user); got != ofUser {
				t.Errorf("beside the route %s comes to %s and to %s", user, ofUser, got)
			}
		}
	}
	if len(byQuery) < 4 || len(byUser) < 4 { // two pods of five missed by 30 keys: less than 1 in 100,000
		t.Errorf("%d keys come to %d and %d of 5 pods", keys, len(byQuery), len(byUser))
	}
	anywhere := make(map[string]bool)
	for range 60 {
		anywhere[c.ask(t, "/search", "X-User", "u")] = true
	}
	if len(anywhere) != 5 { // one missed: less than 1 in 100,000
		t.Errorf("a search without a query comes to %d of 5 pods", len(anywhere))
	}
}
