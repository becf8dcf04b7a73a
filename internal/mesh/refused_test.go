package mesh_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/golden"
	"github.com/weir-lb/weir/internal/mesh"
)

// wrong lists entries with a mistake in the words; those with a mistake in a value are in wrongValues.
func wrong() []string {
	return []string{
		"loadBalancer: {leastRequest: {choiceCount: 2}}",
		"loadBalancer: {type: LeastRequest, leastRequest: {choiceCount: -2}}",
		"loadBalancer: {type: LeastRequest, leastRequest: {choiceCount: '2'}}",
		"loadBalancer: {type: LeastRequest, leastRequest: {choiceCount: 99999999999}}",
		"loadBalancer: {type: LeastRequest, leastRequest: {choices: 2}}",
		"loadBalancer: {type: LeastRequest, leastRequest: {activeRequestBias: many}}",
		"loadBalancer: {type: LeastRequest, leastRequest: {activeRequestBias: [1]}}",
		"loadBalancer: {type: LeastRequest, leastRequest: {activeRequestBias: 'NaN'}}",
		"loadBalancer: {type: RingHash, ringHash: {hashfunction: XX_HASH}}",
		"loadBalancer: {type: RingHash, ringHash: {minRingSize: 1.5}}",
		"loadBalancer: {type: RingHash, ringHash: [64]}",
		"loadBalancer: Random",
		"loadBalancer: {type: RoundRobin | Random}",
		"loadbalancer: {type: Random}",
		"hashPolicies: {type: SourceIP}",
		"hashPolicies: [null]",
		"hashPolicies: [SourceIP]",
		"hashPolicies: [{header: {name: a}}]",
		"hashPolicies: [{type: Header}]",
		"hashPolicies: [{type: Header, header: {}}]",
		"hashPolicies: [{type: Header, header: {name: ''}}]",
		"hashPolicies: [{type: Header, header: {name: 5}}]",
		"hashPolicies: [{type: Header, header: {name: a}, cookie: {name: a}}]",
		"hashPolicies: [{type: Header, header: {nam: a}}]",
		"hashPolicies: [{type: Cookie, cookie: {name: a, ttl: soon}}]",
		"hashPolicies: [{type: Cookie, cookie: {name: a, ttl: 5}}]",
		"hashPolicies: [{type: Connection}]",
		"hashPolicies: [{type: Connection, connection: {sourceIP: 'yes'}}]",
		"hashPolicies: [{type: QueryParameter, query: {name: a}}]",
		"hashPolicies: [{type: Host, terminal: 1}]",
		"hashPolicies: [{type: FilterState, filterState: {key: <a key>}}]",
		"localityAwareness: true",
		"localityAwareness: {disabled: 'true'}",
		"localityAwareness: {disable: true}",
		"localityAwareness: {localZone: {affinityTags: {key: a}}}",
		"localityAwareness: {localZone: {affinityTags: [{weight: 1}]}}",
		"localityAwareness: {localZone: {affinityTags: [{key: a, weight: -1}]}}",
		"localityAwareness: {localZone: {affinityTags: [null]}}",
		"localityAwareness: {crossZone: {failover: [{from: {zones: [a]}}]}}",
		"localityAwareness: {crossZone: {failover: [{to: {zones: [a]}}]}}",
		"localityAwareness: {crossZone: {failover: [{to: {type: Only, zones: a}}]}}",
		"localityAwareness: {crossZone: {failover: [{to: {type: Only, zones: [a, null]}}]}}",
		"localityAwareness: {crossZone: {failover: [{to: {type: Any}}], failoverThreshold: 70}}",
		"localityAwareness: {crossZone: {failover: [{to: {type: Any}}], failoverThreshold: {}}}",
		"localityAwareness: {crossZone: {failover: [{to: {type: Any}}], failoverThreshold: {percentage: 70%}}}",
		"localityAwareness: {matchers: [{weight: 1}]}",
		"localityAwareness: {matchers: [{tagEqual: {name: a}}]}",
		"localityAwareness: {matchers: [{tagEqual: {name: a, value: b}, weight: 0.5}]}",
		"localityAwareness: {matchers: [null]}",
		"appendLocalityAwareness: {disabled: true}",
	}
}

// wrongEnvelopes lists documents with a mistake around their entries.
func wrongEnvelopes() []string {
	const fine = "to: [{targetRef: {kind: Mesh}, default: {}}]"
	documents := []string{
		"type: MeshLoadBalancing\nspec: {" + fine + "}",
		"type: MeshLoadBalancer\nname: a\nspec: {" + fine + "}",
		"type: MeshLoadBalancing\nname: a\nspec: {" + fine + "}\n" + fine,
		"type: MeshLoadBalancing\nname: a\nspecs: {" + fine + "}",
		"type: MeshLoadBalancing\nname: a\nspec: {}",
		"type: MeshLoadBalancing\nname: a\nspec: {to: []}",
		"type: MeshLoadBalancing\nname: a\nspec: {to: [null]}",
		"type: MeshLoadBalancing\nname: a\nspec: {to: [{default: {}}]}",
		"type: MeshLoadBalancing\nname: a\nspec: {to: [{targetRef: {kind: Mesh}}]}",
		"type: MeshLoadBalancing\nname: a\nspec: {to: [{targetRef: {kind: Mesh}, from: [], default: {}}]}",
		"type: MeshLoadBalancing\nname: a\nspec: {" + fine + ", from: []}",
		"type: MeshLoadBalancing\nname: a\nspec: [1]",
		"type: MeshLoadBalancing\nname: [a]\nspec: {" + fine + "}",
	}
	for _, to := range []string{
		"{kind: MeshServices, name: a}", "{kind: MeshSubset}", "{kind: MeshExternalService, name: a}", "{kind: MeshService}",
		"{kind: MeshMultiZoneService, name: a}", "{name: a}", "{kind: Mesh, tags: {a: b}}", "{kind: MeshService, name: A_B}",
		"{kind: MeshService, name: a_b_svc_80, namespace: b}", "{kind: MeshService, name: a_b_svc_80, sectionName: http}",
		"{kind: MeshService, name: a, namespace: -}", "{kind: MeshService, labels: {a: b}}", "Mesh",
	} {
		documents = append(documents, "type: MeshLoadBalancing\nname: a\nspec: {to: [{targetRef: "+to+", default: {}}]}")
	}
	for _, top := range []string{
		"{kind: MeshGateway, name: a}", "{kind: Dataplane, labels: {a: b}}", "{kind: MeshHTTPRoute, name: a}",
		"{kind: Mesh, proxyTypes: [Gateway]}", "{kind: MeshSubset, tags: {version: 1}}", "{kind: MeshSubset, name: a}",
		"{kind: MeshServiceSubset, name: a, tags: {kuma.io/service: a}}", "{kind: MeshSubset, tags: {kuma.io/service: A}}",
		"{kind: MeshSubset, tags: {kuma.io/protocol: http}}",
	} {
		documents = append(documents, "type: MeshLoadBalancingStrategy\nname: a\nspec: {targetRef: "+top+", "+fine+"}")
	}
	return documents
}

func TestMistakesAreNamedByField(t *testing.T) {
	var b strings.Builder
	for _, body := range wrong() {
		fmt.Fprintf(&b, "%s\n%s\n", body, indent(findings(t, body), 4))
		d := parse(t, around(policy.DialectMeshLoadBalancingStrategy, body), mesh.Options{})
		if !d.Refused() || d.Rules != nil {
			t.Errorf("accepted: %s", body)
		}
	}
	golden.Check(t, "mistakes.golden", b.String())
}

func TestMistakesAroundEntriesAreNamedByField(t *testing.T) {
	var b strings.Builder
	for _, text := range wrongEnvelopes() {
		d := parse(t, text, mesh.Options{})
		fmt.Fprintf(&b, "%s\n%s\n", strings.ReplaceAll(text, "\n", "; "), indent(render(d.Findings), 4))
		if len(d.Findings) == 0 {
			t.Errorf("nothing was found in\n%s", text)
		}
	}
	golden.Check(t, "envelopes.golden", b.String())
}

func TestWhatIsNoDocumentIsRefused(t *testing.T) {
	for _, text := range []string{"", " ", "{", "null", "[]", "7", `"a"`, "{}", `{"type":null}`, `{"type":{}}`} {
		d := mesh.Parse([]byte(text), mesh.Options{})
		if !d.Refused() || d.Rules != nil {
			t.Errorf("%q was accepted", text)
		}
	}
}
