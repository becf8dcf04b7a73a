package mesh_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/golden"
	"github.com/weir-lb/weir/internal/mesh"
)

// values lists entries whose words are right, by the row of the reference that says what is wrong with their values.
func values() []struct{ row, body string } {
	const cross = "localityAwareness: {crossZone: {failover: "
	return []struct{ row, body string }{
		{"S-10", "loadBalancer: {type: RingHush}"},
		{"S-13", "loadBalancer: {type: LeastRequest, leastRequest: {choiceCount: 1}}"},
		{"S-14", "loadBalancer: {type: RingHash, ringHash: {hashFunction: MD5}}"},
		{"S-16, K-30", "loadBalancer: {type: RingHash, ringHash: {minRingSize: 2048, maxRingSize: 1024}}"},
		{"K-07", "loadBalancer: {type: RingHash, ringHash: {minRingSize: 0}}"},
		{"K-07", "loadBalancer: {type: RingHash, ringHash: {maxRingSize: 8388609}}"},
		{"K-08", "loadBalancer: {type: Maglev, maglev: {tableSize: 0}}"},
		{"S-18", "loadBalancer: {type: Maglev, maglev: {tableSize: 5000012}}"},
		{"K-08", "loadBalancer: {type: Maglev, maglev: {tableSize: 27}}"},
		{"K-30", "loadBalancer: {type: Maglev, ringHash: {minRingSize: 64}}"},
		{"K-25", "loadBalancer: {type: LeastRequest, leastRequest: {activeRequestBias: -1}}"},
		{"K-26", "hashPolicies: [{type: SourceIP}, {type: Cookie, cookie: {name: a, ttl: 1h, path: shop}}]"},
		{"K-26", "loadBalancer: {type: Maglev, maglev: {hashPolicies: [{type: Cookie, cookie: {name: a b}}]}}"},
		{"5.3", "hashPolicies: [{type: Cookie, cookie: {name: a, ttl: 1500ms}}]"},
		{"5.3", "loadBalancer: {type: Random}\nhashPolicies: [{type: SourceIP}]"},
		{"5.3", "hashPolicies: [{type: SourceIP, terminal: true}, {type: Query, query: {name: a}}]"},
		{"K-20", cross + "[{to: {type: Any, zones: [a]}}]}}"},
		{"K-20", cross + "[{to: {type: Any}}, {to: {type: Only}}]}}"},
		{"K-20", cross + "[{to: {type: AnyExcept, zones: []}}]}}"},
		{"K-20", cross + "[{to: {type: Some}}]}}"},
		{"K-21", cross + "[{from: {}, to: {type: Any}}]}}"},
		{"K-21", cross + "[{from: {zones: []}, to: {type: Any}}]}}"},
		{"K-21", cross + "[{from: {zones: [a, '']}, to: {type: Any}}]}}"},
		{"K-22", "localityAwareness: {localZone: {affinityTags: [{key: a, weight: 0}]}}"},
		{"K-22", "localityAwareness: {localZone: {affinityTags: [{key: a, weight: 9}, {key: b}]}}"},
		{"K-22", "localityAwareness: {localZone: {affinityTags: [{key: ''}]}}"},
		{"K-23", cross + "[{to: {type: Any}}], failoverThreshold: {percentage: 0}}}"},
		{"K-23", cross + "[{to: {type: Any}}], failoverThreshold: {percentage: 100.5}}}"},
		{"K-53", cross + "[{to: {type: None}}, {to: {type: Any}}]}}"},
		{"S-42", "localityAwareness: {matchers: [{tagEqual: {name: a, value: b}, weight: 0}]}"},
	}
}

func TestWrongValuesAreNamedInTheDocumentsSpelling(t *testing.T) {
	var b strings.Builder
	for _, v := range values() {
		got := findings(t, v.body)
		fmt.Fprintf(&b, "%s: %s\n%s\n", v.row, strings.ReplaceAll(v.body, "\n", "; "), indent(got, 4))
		for line := range strings.Lines(got) {
			if !strings.Contains(line, " spec.to[0].default.") {
				t.Errorf("no path of the document: %s", line)
			}
		}
		if got == "" {
			t.Errorf("nothing was found in %s", v.body)
		}
	}
	golden.Check(t, "values.golden", b.String())
}

func TestK28ARouteHasHashPoliciesAlone(t *testing.T) {
	d := parse(t, `
type: MeshLoadBalancingStrategy
name: a
spec:
  to:
  - targetRef: {kind: MeshHTTPRoute, name: search}
    default:
      hashPolicies: [{type: QueryParameter, queryParameter: {name: q}}]
  - targetRef: {kind: MeshHTTPRoute, name: search}
    default:
      loadBalancer: {type: Random}
      localityAwareness: {disabled: true}
`, mesh.Options{})
	const why = ": does not belong to a policy about a route: only hashPolicies do"
	for _, want := range []string{"spec.to[1].default.loadBalancer" + why, "spec.to[1].default.localityAwareness" + why} {
		if got := render(d.Findings); !strings.Contains(got, want) {
			t.Errorf("want %q in\n%s", want, got)
		}
	}
	if strings.Contains(render(d.Findings), "to[0]") || !d.Refused() {
		t.Errorf("want a refusal of the second entry alone, got\n%s", render(d.Findings))
	}
}

func TestClientsAreCheckedInTheDocumentsSpelling(t *testing.T) {
	long := strings.Repeat("z", 70)
	got, found := ruleOf(t, "{kind: MeshSubset, tags: {kuma.io/zone: "+long+"}}", "{kind: Mesh}")
	if got.Target.Kind != "" || !strings.HasPrefix(found, "refused spec.targetRef.tags[kuma.io/zone]: ") {
		t.Errorf("want a refusal of the zone, got %q", found)
	}
}

func TestRulesNameTheirDialect(t *testing.T) {
	for _, kind := range mesh.Types() {
		d := parse(t, around(kind, "loadBalancer: {type: Random}"), mesh.Options{})
		if len(d.Rules) != 1 || d.Rules[0].Origin.Dialect != kind || d.Origin.Dialect != kind || !kind.IsMesh() {
			t.Errorf("%s: got %+v", kind, d.Origin)
		}
	}
	if policy.DialectCRD.IsMesh() {
		t.Error("an object of the API server is no document of a mesh")
	}
}

func TestPathsOfTheModelAreToldInTheDocumentsSpelling(t *testing.T) {
	d := parse(t, `
type: MeshLoadBalancing
name: a
targetRef: {kind: MeshServiceSubset, name: web, tags: {kuma.io/zone: a}}
to:
- targetRef: {kind: MeshService, name: b}
  default:
    loadBalancer: {type: RingHash, ringHash: {hashPolicies: [{type: SourceIP}]}}
    localityAwareness: {matchers: [{tagEqual: {name: kuma.io/zone, value: a}}]}
    appendLocalityAwareness: {matchers: [{tagEqual: {name: kuma.io/zone, value: b}}]}
`, mesh.Options{})
	for path, want := range map[string]string{
		"targetRefs[0]":                 "to[0].targetRef",
		"clients.zones[0]":              "targetRef.tags[kuma.io/zone]",
		"clients.service":               "targetRef.name",
		"hashPolicies[0]":               "to[0].default.loadBalancer.ringHash.hashPolicies[0]",
		"loadBalancer.ringHash":         "to[0].default.loadBalancer.ringHash",
		"loadBalancer.type":             "to[0].default.loadBalancer.type",
		"locality.weights[0].value":     "to[0].default.localityAwareness.matchers[0].tagEqual.value",
		"locality.weights[1].weight":    "to[0].default.appendLocalityAwareness.matchers[0].weight",
		"outlierDetection.interval":     "to[0].default",
		"locality.failover[0].to.zones": "to[0].default.localityAwareness.failover[0].to.zones",
	} {
		if got := d.Path(0, path); got != want {
			t.Errorf("%s: want %s, got %s", path, want, got)
		}
	}
	if got := d.Path(1, "locality"); got != "" {
		t.Errorf("want nothing for an entry that is not there, got %s", got)
	}
}
