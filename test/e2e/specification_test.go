package e2e_test

import (
	"fmt"
	"math/bits"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weir-lb/weir/internal/core/hash"
	"github.com/weir-lb/weir/internal/patience"
)

// The blocks of YAML in the specification, in its order. The fifth is what a data plane is told, and no policy.
const (
	blockConf = iota
	blockRoundRobin
	blockLeastRequest
	blockRingHash
	_
	blockRandom
	blockMaglev
	blockDisabled
	blockMatchers
	numberOfBlocks
)

// specification gives a block of the specification, which is there as it was published.
func specification(t *testing.T, block int) string {
	t.Helper()
	text, err := os.ReadFile("../../internal/mesh/testdata/specification.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(found) != numberOfBlocks {
		t.Fatalf("want %d blocks of YAML, got %d", numberOfBlocks, len(found))
	}
	return found[block][1]
}

// The references that stand in for the specification's grammar, as internal/mesh has them.
const (
	anyClient  = "kind: Mesh"
	theBackend = "kind: MeshService\n        name: backend"
)

// fill puts these references, and for Maglev a hash policy, where a block has a grammar, and nothing else.
func fill(block, top, to string) string {
	return strings.NewReplacer(
		"kind: Mesh | MeshSubset | MeshService | MeshServiceSubset", top,
		"kind: Mesh | MeshService", to,
		"hashPolicies: ...", "hashPolicies: [{type: Header, header: {name: x-user}}]",
	).Replace(block)
}

// document makes a document about shop/backend of a block of the specification.
func document(t *testing.T, block int) string {
	t.Helper()
	text := fill(specification(t, block), anyClient, theBackend)
	if strings.HasPrefix(text, "type:") {
		return text
	}
	conf := "        " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n        ")
	return "type: MeshLoadBalancing\nname: lb-1\nmesh: default\nspec:\n  targetRef: {kind: Mesh}\n  to:\n" +
		"    - targetRef: {kind: MeshService, name: backend}\n      default:\n" + conf + "\n"
}

// follow makes a mesh with a policy, and runs an agent in us-east for shop/backend.
func (m *mesh) follow(t *testing.T, policy string) *node {
	t.Helper()
	m.put(t, "policy.yaml", policy)
	return m.start(t, "us-east", "shop/backend")
}

// within fails unless each of these got that many of n requests, with a tolerance; nobody else may get any.
func within(t *testing.T, got, want map[string]int, tolerance int) {
	t.Helper()
	for name, count := range got {
		if d := count - want[name]; d > tolerance || d < -tolerance || want[name] == 0 {
			t.Errorf("%s got %d requests, want %d ± %d (all: %v)", name, count, want[name], tolerance, got)
		}
	}
	for name := range want {
		if got[name] == 0 {
			t.Errorf("%s got no request (all: %v)", name, got)
		}
	}
}

var ownZoneThrice = []string{"us-east", "us-east", "us-east", "us-west", "eu-north"}

func TestS11RoundRobinOfTheSpecificationTakesTurns(t *testing.T) {
	m := newMesh(t, 1, ownZoneThrice...)
	c := m.follow(t, document(t, blockRoundRobin)).asker(t, "")
	const turns = 100
	repeated := 0
	for range turns {
		if len(c.counts(3)) < 3 {
			repeated++
		}
	}
	if repeated > 0 {
		t.Errorf("%d times somebody had a second turn before the others had their first", repeated)
	}
	for _, zone := range []string{"us-west", "eu-north"} {
		if n := m.hits(zone); n > 0 {
			t.Errorf("%s got %d requests: locality is on where nobody switches it off (S-41)", zone, n)
		}
	}
}

// hold occupies one pod with a request and gives it, and what ends the request.
func (m *mesh) hold(t *testing.T, c *asker) (busy *backend, release func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _, _ = c.do("/held")
	}()
	patience.Until(t, "a pod holds the request", func() bool {
		for _, p := range m.pods {
			if p.held.Load() == 1 {
				busy = p
			}
		}
		return busy != nil
	})
	return busy, func() {
		close(busy.free)
		<-done
	}
}

func TestS13ChoiceCountOfTheSpecificationAvoidsWhoIsBusy(t *testing.T) {
	const requests = 600
	for name, bounds := range map[string]struct {
		number, low, high int // of requests that meet the pod that is busy
	}{
		// With 8 draws of 3 all hit it once in 3⁸ requests: 0.1 are expected, and 5 would be a chance of 1 in 10⁷.
		"choiceCount: 8": {2, 0, 5},
		// With 2 draws of 3 both hit it in every ninth: 67 ± 8.
		"choiceCount: 2": {3, 27, 107},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMesh(t, bounds.number, ownZoneThrice...)
			n := m.follow(t, strings.Replace(document(t, blockLeastRequest), "choiceCount: 8", name, 1))
			busy, release := m.hold(t, n.asker(t, ""))
			defer release()
			if got := n.asker(t, "").counts(requests)[busy.name]; got < bounds.low || got > bounds.high {
				t.Errorf("the busy pod got %d of %d requests, want %d to %d", got, requests, bounds.low, bounds.high)
			}
		})
	}
}

// ring is a dumb ring of the MurmurHash2 kind for members of equal weight: every entry of every member, sorted.
func ring(size int, keys ...string) func(hash uint64) string {
	type entry struct {
		hash uint64
		key  string
	}
	var entries []entry
	each := (size + len(keys) - 1) / len(keys)
	for _, key := range keys {
		for i := range each {
			entries = append(entries, entry{hash.Murmur2String(fmt.Sprintf("%s_%d", key, i)), key})
		}
	}
	slices.SortFunc(entries, func(a, b entry) int {
		if a.hash < b.hash {
			return -1
		}
		return 1
	})
	return func(h uint64) string {
		for _, e := range entries {
			if e.hash >= h {
				return e.key
			}
		}
		return entries[0].key
	}
}

// combine is what hash policies make of texts.
func combine(texts ...string) (h uint64) {
	for i, text := range texts {
		if one := hash.XXH64String(0, text); i == 0 {
			h = one
		} else {
			h = bits.RotateLeft64(h, 1) ^ one
		}
	}
	return h
}

func TestS13ToS31TheRingOfTheSpecificationWithItsFiveHashPolicies(t *testing.T) {
	m := newMesh(t, 4, ownZoneThrice...)
	n := m.follow(t, document(t, blockRingHash))
	belongs := ring(64, "shard-0", "shard-1", "shard-2")
	pods := map[string]string{"shard-0": "pod-0", "shard-1": "pod-1", "shard-2": "pod-2"}
	for source, spread := range map[string]func(i int) (header, cookie, ip, query string){
		"header": func(i int) (string, string, string, string) { return fmt.Sprint("h", i), "c", "102", "q" },
		"cookie": func(i int) (string, string, string, string) { return "h", fmt.Sprint("c", i), "102", "q" },
		"source": func(i int) (string, string, string, string) { return "h", "c", fmt.Sprint(102 + i), "q" },
		"query":  func(i int) (string, string, string, string) { return "h", "c", "102", fmt.Sprint("q", i) },
	} {
		met := map[string]bool{}
		for i := range 24 {
			header, cookie, ip, query := spread(i)
			c := n.asker(t, m.block+ip).with("header-name", header, "Cookie", "session="+cookie)
			want := pods[belongs(combine(header, cookie, m.block+ip, query))]
			for filter := range 2 { // the fifth policy comes after a terminal one: it never counts
				if got := c.with("x-weir-filter-state", fmt.Sprint("objectNameInFilterState=", filter)).get("/?param=" + query); got != want {
					t.Errorf("%s: %s %s %s %s is answered by %s, want %s", source, header, cookie, ip, query, got, want)
				}
			}
			met[want] = true
		}
		if len(met) != 3 {
			t.Errorf("different values of the %s reach only %v", source, met)
		}
	}
}

func TestS23TheCookieOfTheSpecificationIsMadeAndKept(t *testing.T) {
	m := newMesh(t, 5, ownZoneThrice...)
	n := m.follow(t, document(t, blockRingHash))
	_, first, header := n.asker(t, "").do("/")
	made := regexp.MustCompile(`^session="([0-9a-f]{16})"; Max-Age=3600; Path=/; HttpOnly$`).FindStringSubmatch(header.Get("Set-Cookie"))
	if made == nil {
		t.Fatalf("the cookie is %q", header.Values("Set-Cookie"))
	}
	for range 10 { // other connections, which would get other cookies
		status, body, header := n.asker(t, "").with("Cookie", "session="+made[1]).do("/")
		if status != http.StatusOK || body != first || header.Get("Set-Cookie") != "" {
			t.Errorf("with the cookie %d %s and %q, want %s", status, body, header.Get("Set-Cookie"), first)
		}
	}
}

// keys asks with many values of a header and gives who answers each.
func (c *asker) keys(name string, n int) []string {
	c.t.Helper()
	answers := make([]string, n)
	for i := range answers {
		answers[i] = c.with(name, fmt.Sprint("user-", i)).get("/?param=q")
	}
	return answers
}

func TestS31AnEndpointThatMovesKeepsTheKeysOfItsLabel(t *testing.T) {
	m := newMesh(t, 6, ownZoneThrice...)
	c := m.follow(t, document(t, blockRingHash)).asker(t, m.front()).with("Cookie", "session=c")
	before := c.keys("header-name", 90)

	// A StatefulSet's pod comes back with another address, after a while without it.
	old := m.pods[1].server
	m.pods[1].serve(t, m.block+"31")
	m.write(t)
	patience.Within(t, followed, "the pod is used at its new address", func() bool {
		was := m.pods[1].hits.Load()
		_ = old.Close()
		c.keys("header-name", 30)
		return m.pods[1].hits.Load() > was
	})
	if after := c.keys("header-name", 90); !slices.Equal(before, after) {
		t.Errorf("keys moved with the address:\n%v\n%v", before, after)
	}

	// Without it only its keys move, but for the few that a ring of another size takes along: 22 entries each, then 32.
	gone := m.pods[1].name
	m.pods = slices.Delete(m.pods, 1, 2)
	m.write(t)
	patience.Within(t, followed, "the pod gets no key", func() bool { return !slices.Contains(c.keys("header-name", 90), gone) })
	belongs := ring(64, "shard-0", "shard-2")
	pods := map[string]string{"shard-0": "pod-0", "shard-2": "pod-2"}
	for i, got := range c.keys("header-name", 90) {
		want := pods[belongs(combine(fmt.Sprint("user-", i), "c", m.front(), "q"))]
		if got != want {
			t.Errorf("user-%d is answered by %s, want %s", i, got, want)
		}
	}
}

func TestS12RandomOfTheSpecificationDraws(t *testing.T) {
	m := newMesh(t, 7, ownZoneThrice...)
	c := m.follow(t, document(t, blockRandom)).asker(t, "")
	const requests = 900 // 300 ± 14 each
	counts, again, last := map[string]int{}, 0, ""
	for range requests {
		name := c.get("/")
		if name == last {
			again++
		}
		counts[name]++
		last = name
	}
	within(t, counts, map[string]int{"pod-0": 300, "pod-1": 300, "pod-2": 300}, 75)
	if again < 225 || again > 375 { // of turns there would be none
		t.Errorf("%d requests went where the one before had gone, want 300 ± 75", again)
	}
}

// table is a dumb Maglev table for members of equal weight, whose keys are sorted.
func table(size uint64, keys ...string) func(h uint64) string {
	slots, next := make([]string, size), make([]uint64, len(keys))
	for filled := uint64(0); filled < size; {
		for i, key := range keys {
			for filled < size {
				at := (hash.XXH64String(0, key)%size + (hash.XXH64String(1, key)%(size-1)+1)*next[i]) % size
				next[i]++
				if slots[at] == "" {
					slots[at] = key
					filled++
					break
				}
			}
		}
	}
	return func(h uint64) string { return slots[h%size] }
}

func TestS18MaglevOfTheSpecificationTakesTheNextPrimeAndSaysSo(t *testing.T) {
	m := newMesh(t, 8, ownZoneThrice...)
	n := m.follow(t, document(t, blockMaglev))
	belongs := table(101, "shard-0", "shard-1", "shard-2")
	pods := map[string]string{"shard-0": "pod-0", "shard-1": "pod-1", "shard-2": "pod-2"}
	for i, got := range n.asker(t, "").keys("x-user", 90) {
		if want := pods[belongs(combine(fmt.Sprint("user-", i)))]; got != want {
			t.Errorf("user-%d is answered by %s, want %s", i, got, want)
		}
	}
	if !strings.Contains(n.log.String(), "100 is not prime: the next prime, 101, is taken") {
		t.Errorf("the log says nothing of the size")
	}
	if out, err := weir(t, "", "policy", "check", "--strict", m.folder+"/policy.yaml"); err == nil || !strings.Contains(out, "prime") {
		t.Errorf("strict: %v\n%s", err, out)
	}
}

func TestS40DisabledOfTheSpecificationUsesEveryZone(t *testing.T) {
	m := newMesh(t, 9, meshZones...)
	n := m.start(t, "us-east", "shop/backend")
	c := n.asker(t, "")
	if got := m.zones(c, 60); len(got) != 1 || got["us-east"] == 0 {
		t.Errorf("without a policy %v answer, want us-east alone", got)
	}
	m.put(t, "policy.yaml", document(t, blockDisabled))
	patience.Within(t, followed, "another zone answers", func() bool { return c.get("/") != "pod-0" })
	within(t, m.zones(c, 600), map[string]int{"us-east": 200, "us-west": 200, "eu-north": 200}, 10) // by turns: S-10
}

func TestS42AndS43TheMatchersOfTheSpecificationAreFollowedWithinThreePercent(t *testing.T) {
	m := newMesh(t, 10, "us-east", "us-east", "us-west", "us-west", "eu-north")
	m.put(t, "policy.yaml", specification(t, blockMatchers))
	const requests = 4400 // of 11 parts one is 400 ± 19
	east := m.start(t, "us-east", "shop/payments").asker(t, "")
	within(t, m.zones(east, requests), map[string]int{"us-west": requests / 11, "eu-north": requests * 10 / 11}, requests*3/100)
	west := m.start(t, "us-west", "shop/payments").asker(t, "")
	within(t, m.zones(west, 100), map[string]int{"us-west": 100}, 0)
}

// The first block, with each kind of client and of destination: the clients that are meant get everywhere, by eight choices;
// others stay in their zone.
func TestS05AndS06TheReferencesOfTheSpecification(t *testing.T) {
	const subset = "kind: MeshSubset\n    tags: {tier: web}"
	for i, c := range []struct {
		top, to string
		others  []string // zones that clients reach who are no pod
	}{
		{anyClient, theBackend, meshZones},
		{anyClient, "kind: Mesh", meshZones},
		{subset, theBackend, meshZones[:1]},
		{subset, "kind: Mesh", meshZones[:1]},
		{"kind: MeshService\n    name: web", theBackend, meshZones[:1]},
		{"kind: MeshServiceSubset\n    name: web\n    tags: {version: v1}", theBackend, meshZones[:1]},
	} {
		t.Run(c.top+" to "+c.to, func(t *testing.T) {
			m := newMesh(t, 20+i, meshZones...)
			n := m.follow(t, fill(specification(t, blockConf), c.top, c.to))
			for ip, want := range map[string][]string{m.front(): meshZones, "": c.others} {
				got := m.zones(n.asker(t, ip), 120)
				for _, zone := range meshZones {
					if (got[zone] > 0) != slices.Contains(want, zone) {
						t.Errorf("from %q %v answer, want %v", ip, got, want)
					}
				}
			}
		})
	}
}
