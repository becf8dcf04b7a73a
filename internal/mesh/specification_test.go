package mesh_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/mesh"
)

// blocks gives the YAML of the specification, which is in testdata as it was published.
func blocks(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile("testdata/specification.md")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for i, part := range strings.Split(string(data), "```") {
		if yaml, ok := strings.CutPrefix(part, "yaml\n"); ok && i%2 == 1 {
			found = append(found, yaml)
		}
	}
	const want = 9
	if len(found) != want {
		t.Fatalf("want %d blocks of YAML, got %d", want, len(found))
	}
	return found
}

// fill puts values where a block of the specification has a grammar. That is all that is changed:
//   - the kind of the top reference and that of the destination: each of the alternatives in turn, with the name that
//     the kind needs;
//   - "hashPolicies: ..." of Maglev: one policy of the kinds that RingHash has.
func fill(block, top, to string) string {
	return strings.NewReplacer(
		"kind: Mesh | MeshSubset | MeshService | MeshServiceSubset", indentRest(top, 4),
		"kind: Mesh | MeshService", indentRest(to, 8),
		"hashPolicies: ...", "hashPolicies: [{type: Header, header: {name: x-user}}]",
	).Replace(block)
}

func indentRest(text string, by int) string { return strings.TrimLeft(indent(text, by), " ") }

// whole makes a document of a block that is a part of one.
func whole(block string) string {
	if strings.HasPrefix(block, "type:") {
		return block
	}
	return around(policy.DialectMeshLoadBalancing, block)
}

func TestEveryYAMLOfTheSpecificationLoads(t *testing.T) {
	for _, block := range blocks(t) {
		if strings.HasPrefix(block, "filter_metadata:") { // a data plane's, not an author's: see S-31
			continue
		}
		for _, top := range []string{
			"kind: Mesh", "kind: MeshSubset\ntags: {tier: web}", "kind: MeshService\nname: web",
			"kind: MeshServiceSubset\nname: web\ntags: {version: v1}",
		} {
			for _, to := range []string{"kind: Mesh", "kind: MeshService\nname: backend"} {
				d := parse(t, whole(fill(block, top, to)), mesh.Options{})
				if d.Refused() || len(d.Rules) != 1 {
					t.Errorf("%d rules and\n%s\nof\n%s", len(d.Rules), render(d.Findings), block)
				}
			}
		}
	}
}

func TestPlaceholdersOfTheSpecificationAreRefusedAsGrammar(t *testing.T) {
	var got strings.Builder
	for _, block := range blocks(t) {
		if text := whole(block); !strings.HasPrefix(block, "filter_metadata:") && text != fill(text, "", "") {
			d := parse(t, text, mesh.Options{})
			got.WriteString(render(d.Findings) + "\n")
		}
	}
	const want = `refused spec.targetRef.kind: "Mesh | MeshSubset | MeshService | MeshServiceSubset" is grammar, not a value: write one value
refused spec.to[0].targetRef.kind: "Mesh | MeshService" is grammar, not a value: write one value
refused spec.to[0].default.loadBalancer.maglev.hashPolicies: "..." is grammar, not a value: write a list
warning spec.to[0].default.loadBalancer.maglev.tableSize: 100 is not prime: the next prime, 101, is taken
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestS04AndS08TheFirstDocumentOfTheSpecification(t *testing.T) {
	d := parse(t, fill(blocks(t)[0], "kind: Mesh", "kind: MeshService\nname: backend"), mesh.Options{})
	want := []policy.Rule{{
		Origin: policy.Origin{Dialect: policy.DialectMeshLoadBalancing, Name: "lb-1"},
		Target: policy.Target{Kind: policy.TargetService, Name: "backend"},
		Conf: policy.Conf{
			LoadBalancer: &policy.LoadBalancer{
				Type: policy.LeastRequest, LeastRequest: &policy.LeastRequestConf{ChoiceCount: new(int32(8))},
			},
			Locality: policy.Locality{Disabled: new(true)},
		},
	}}
	if diff := cmp.Diff(want, d.Rules); diff != "" || len(d.Findings) > 0 {
		t.Errorf("%s\n(-want +got):\n%s", render(d.Findings), diff)
	}
}

func TestS13ToS26TheRingOfTheSpecification(t *testing.T) {
	got, _ := said(t, blocks(t)[3])
	want := policy.Conf{
		LoadBalancer: &policy.LoadBalancer{
			Type: policy.RingHash,
			RingHash: &policy.RingHashConf{
				HashFunction: new(policy.MurmurHash2), MinRingSize: new(int64(64)), MaxRingSize: new(int64(1024)),
			},
		},
		HashPolicies: []policy.HashPolicy{
			{Terminal: new(false), Type: policy.HashHeader, Header: &policy.HeaderKey{Name: "header-name"}},
			{Terminal: new(false), Type: policy.HashCookie, Cookie: &policy.CookieKey{Name: "session", TTL: new(policy.Duration(hour)), Path: new("/")}},
			{Terminal: new(false), Type: policy.HashSourceIP},
			{Type: policy.HashQueryParameter, QueryParameter: &policy.QueryParameterKey{Name: "param"}, Terminal: new(true)},
			{Terminal: new(false), Type: policy.HashFilterState, FilterState: &policy.FilterStateKey{Key: "objectNameInFilterState"}},
		},
		EndpointHashKey: &policy.EndpointHashKey{Type: policy.HashKeyLabel, Key: new("kuma.io/hash")},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestS18TheTableOfTheSpecificationIsNotPrime(t *testing.T) {
	text := whole(fill(blocks(t)[6], "", ""))
	const at = "spec.to[0].default.loadBalancer.maglev.tableSize: "
	d := parse(t, text, mesh.Options{})
	if diff := cmp.Diff("warning "+at+"100 is not prime: the next prime, 101, is taken", render(d.Findings)); diff != "" {
		t.Errorf("compatible (-want +got):\n%s", diff)
	}
	if got := *d.Rules[0].Conf.LoadBalancer.Maglev.TableSize; got != 101 {
		t.Errorf("want a table of 101, got %d", got)
	}
	d = parse(t, text, mesh.Options{Strictness: mesh.Strict})
	if got := render(d.Findings); !d.Refused() || !strings.HasPrefix(got, "refused "+at) || !strings.Contains(got, "prime") {
		t.Errorf("strict: want a refusal of %s got %q", at, got)
	}
}

func TestS42AndS43TheMatchersOfTheSpecification(t *testing.T) {
	d := parse(t, blocks(t)[8], mesh.Options{})
	want := []policy.Rule{{
		Origin:  policy.Origin{Dialect: policy.DialectMeshLoadBalancing, Name: "extra-us-east"},
		Clients: policy.Clients{Zones: []topology.Zone{"us-east"}},
		Target:  policy.Target{Kind: policy.TargetService, Name: "payments"},
		Conf: policy.Conf{Locality: policy.Locality{
			Disabled: new(false),
			Weights: []policy.Weight{
				{Key: "topology.kubernetes.io/zone", Value: "us-west", Weight: 1},
				{Key: "topology.kubernetes.io/zone", Value: "eu-north", Weight: 10},
			},
		}},
	}}
	if diff := cmp.Diff(want, d.Rules); diff != "" || len(d.Findings) > 0 {
		t.Errorf("%s\n(-want +got):\n%s", render(d.Findings), diff)
	}
}

func TestS31EndpointsAreHashedByTheLabelThatTheSpecificationProposes(t *testing.T) {
	want := &policy.EndpointHashKey{Type: policy.HashKeyLabel, Key: new("kuma.io/hash")}
	for body, want := range map[string]*policy.EndpointHashKey{
		"loadBalancer: {type: RingHash}":   want,
		"loadBalancer: {type: Maglev}":     want,
		"loadBalancer: {type: RoundRobin}": nil,
	} {
		got, _ := said(t, body)
		if diff := cmp.Diff(want, got.EndpointHashKey); diff != "" {
			t.Errorf("%s (-want +got):\n%s", body, diff)
		}
	}
	if got := findings(t, blocks(t)[4]); !strings.Contains(got, "default.filter_metadata: unknown field") {
		t.Errorf("what only a data plane is told was taken for a policy: %q", got)
	}
}
