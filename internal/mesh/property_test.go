package mesh_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/mesh"
)

// author writes documents at random: each is right, as the words of the reference have it.
type author struct{ *rand.Rand }

func (a author) one(of ...string) string { return of[a.IntN(len(of))] }

// some joins up to most things that write makes.
func (a author) some(least, most int, write func(i int) string) string {
	var parts []string
	for i := range least + a.IntN(most-least+1) {
		parts = append(parts, write(i))
	}
	return strings.Join(parts, ", ")
}

func (a author) zones() string {
	return "[" + a.some(1, 3, func(i int) string { return fmt.Sprintf("zone-%d", i) }) + "]"
}

func (a author) hashPolicies() string {
	return "[" + a.some(0, 4, func(int) string {
		return fmt.Sprintf(a.one(
			"{type: Header, terminal: %t, header: {name: x-user}}",
			"{type: Cookie, terminal: %t, cookie: {name: sid, ttl: 1h, path: /}}",
			"{type: SourceIP, terminal: %t}",
			"{type: Connection, terminal: %t, connection: {sourceIP: true}}",
			"{type: Connection, terminal: %t, connection: {sourceIP: false}}",
			"{type: Query, terminal: %t, query: {name: q}}",
			"{type: QueryParameter, terminal: %t, queryParameter: {name: q}}",
			"{type: FilterState, terminal: %t, filterState: {key: k}}",
		), a.IntN(2) == 0)
	}) + "]"
}

func (a author) loadBalancer() string {
	low := 1 + a.IntN(policy.MaxRingSize)
	return a.one(
		"{type: RoundRobin}", "{type: Random}", "{type: LeastRequest}", "{type: RingHash}", "{type: Maglev}",
		fmt.Sprintf("{type: LeastRequest, leastRequest: {choiceCount: %d, activeRequestBias: %q}}", 2+a.IntN(9), fmt.Sprint(a.Float64())),
		fmt.Sprintf("{type: RingHash, ringHash: {hashFunction: %s, minRingSize: %d, maxRingSize: %d}}",
			a.one("XX_HASH", "MURMUR_HASH_2", "XXHash", "MurmurHash2"), low, low+a.IntN(policy.MaxRingSize-low+1)),
		fmt.Sprintf("{type: Maglev, maglev: {tableSize: %d}}", 1+a.IntN(policy.MaxTableSize)),
	)
}

func (a author) failover() string {
	return "[" + a.some(0, 4, func(int) string {
		from := a.one("", "from: {zones: "+a.zones()+"}, ")
		return "{" + from + "to: " + a.one("{type: Any}", "{type: None}", "{type: Only, zones: "+a.zones()+"}",
			"{type: AnyExcept, zones: "+a.zones()+"}") + "}"
	}) + "]"
}

func (a author) locality() string {
	weight := a.one("", ", weight: 7")
	local := "localZone: {affinityTags: [" + a.some(0, 4, func(i int) string { return fmt.Sprintf("{key: tag-%d%s}", i, weight) }) + "]}"
	cross := "crossZone: {failover: " + a.failover() + a.one("", fmt.Sprintf(", failoverThreshold: {percentage: %d}", 1+a.IntN(100))) + "}"
	return a.one("{}", "{disabled: true}", "{disabled: false}", "{"+local+"}", "{"+cross+"}", "{"+local+", "+cross+"}",
		"{disabled: true, "+cross+"}",
		"{matchers: ["+a.some(0, 3, func(i int) string {
			return fmt.Sprintf("{tagEqual: {name: kuma.io/zone, value: z%d}, weight: %d}", i, 1+a.IntN(9))
		})+"]}")
}

func (a author) entry() string {
	if a.IntN(8) == 0 {
		return "{targetRef: {kind: MeshHTTPRoute, name: route, namespace: shop}, default: {hashPolicies: " + a.hashPolicies() + "}}"
	}
	to := a.one("{kind: Mesh}", "{kind: MeshService, name: web}", "{kind: MeshService, name: web_shop_svc_80}",
		"{kind: MeshService, name: web, namespace: shop, sectionName: http}", "{kind: MeshMultiZoneService, name: web, namespace: shop}")
	var parts []string
	for key, text := range map[string]string{
		"loadBalancer": a.loadBalancer(), "hashPolicies": a.hashPolicies(), "localityAwareness": a.locality(),
	} {
		if a.IntN(2) == 0 {
			parts = append(parts, key+": "+text)
		}
	}
	return "{targetRef: " + to + ", default: {" + strings.Join(parts, ", ") + "}}"
}

func (a author) document() string {
	top := a.one("{kind: Mesh}", "{kind: MeshSubset, tags: {kuma.io/zone: zone-1, version: v1}}", "{kind: MeshService, name: web}",
		"{kind: MeshServiceSubset, name: web, tags: {tier: '*'}}", "null")
	return "type: MeshLoadBalancingStrategy\nname: a\nspec:\n  targetRef: " + top + "\n  to: [" +
		a.some(1, 3, func(int) string { return a.entry() }) + "]\n"
}

func TestEveryRightDocumentBecomesRulesThatTheValidatorAccepts(t *testing.T) {
	a := author{rand.New(rand.NewPCG(1, 2))}
	for range 500 {
		text := a.document()
		d := parse(t, text, mesh.Options{})
		if d.Refused() || len(d.Rules) == 0 {
			t.Fatalf("refused:\n%s\n%s", render(d.Findings), text)
		}
		for i := range d.Rules {
			if found := d.Rules[i].Validate(); reason.AnyRefused(found) {
				t.Fatalf("%v in\n%s", found, text)
			}
		}
		if diff := cmp.Diff(d.Rules, parse(t, text, mesh.Options{}).Rules); diff != "" {
			t.Fatalf("read twice, it differs:\n%s\n%s", diff, text)
		}
	}
}

func FuzzDocument(f *testing.F) {
	for _, body := range append(wrong(), "loadBalancer: {type: Maglev, maglev: {tableSize: 100}}") {
		addYAML(f, around(policy.DialectMeshLoadBalancing, body))
	}
	for _, text := range wrongEnvelopes() {
		addYAML(f, text)
	}
	a := author{rand.New(rand.NewPCG(3, 4))}
	for range 20 {
		addYAML(f, a.document())
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d := mesh.Parse(data, mesh.Options{})
		if d.Refused() == (len(d.Rules) > 0) {
			t.Errorf("refused %t, yet %d rules: %s", d.Refused(), len(d.Rules), render(d.Findings))
		}
		for i := range d.Rules {
			if found := d.Rules[i].Validate(); reason.AnyRefused(found) {
				t.Errorf("a rule is no good: %v", found)
			}
		}
		if _, err := json.Marshal(d.Findings); err != nil {
			t.Error(err)
		}
	})
}

func addYAML(f *testing.F, text string) {
	f.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
}
