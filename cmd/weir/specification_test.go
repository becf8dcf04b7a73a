package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/manifest"
	"github.com/weir-lb/weir/internal/mesh"
)

// specificationWorld is what the specification's documents are about: clients in two zones, one of them a pod of the service
// web.
const specificationWorld = `
{apiVersion: v1, kind: Node, metadata: {name: node-east, labels: {topology.kubernetes.io/zone: us-east}}}
---
{apiVersion: v1, kind: Node, metadata: {name: node-west, labels: {topology.kubernetes.io/zone: us-west}}}
---
{apiVersion: v1, kind: Node, metadata: {name: node-north, labels: {topology.kubernetes.io/zone: eu-north}}}
---
apiVersion: v1
kind: Pod
metadata: {name: front, namespace: shop, labels: {tier: web, version: v1, app: web}}
spec: {nodeName: node-east}
status: {podIP: 10.0.0.9}
---
{apiVersion: v1, kind: Pod, metadata: {name: other, namespace: shop}, spec: {nodeName: node-west}, status: {podIP: 10.0.0.8}}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {clusterIP: 10.1.0.9, selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{port: 80}]
endpoints: [{addresses: [10.0.0.9], zone: us-east, nodeName: node-east, targetRef: {kind: Pod, namespace: shop, name: front}}]
---
{apiVersion: v1, kind: Service, metadata: {name: backend, namespace: shop}, spec: {clusterIP: 10.1.0.1, ports: [{port: 80}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: payments, namespace: shop}, spec: {clusterIP: 10.1.0.2, ports: [{port: 80}]}}
`

// specificationDocuments gives every block of YAML of the specification that is an author's, whole and with its grammar
// filled in by each of the alternatives, as internal/mesh has it.
func specificationDocuments(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../internal/mesh/testdata/specification.md")
	if err != nil {
		t.Fatal(err)
	}
	documents := make(map[string]string)
	for i, found := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		block := found[1]
		if strings.HasPrefix(block, "filter_metadata:") { // what a data plane is told
			continue
		}
		if !strings.HasPrefix(block, "type:") {
			conf := "        " + strings.ReplaceAll(strings.TrimSpace(block), "\n", "\n        ")
			block = "type: MeshLoadBalancing\nname: part\nspec:\n  targetRef:\n    kind: Mesh | MeshSubset | MeshService | MeshServiceSubset\n" +
				"  to:\n    - targetRef:\n        kind: Mesh | MeshService\n      default:\n" + conf + "\n"
		}
		for _, top := range []string{
			"kind: Mesh", "kind: MeshSubset\n    tags: {tier: web}", "kind: MeshService\n    name: web",
			"kind: MeshServiceSubset\n    name: web\n    tags: {version: v1}",
		} {
			for _, to := range []string{"kind: Mesh", "kind: MeshService\n        name: backend"} {
				documents[fmt.Sprintf("%d %s to %s", i, strings.Fields(top)[1], strings.Fields(to)[1])] = strings.NewReplacer(
					"kind: Mesh | MeshSubset | MeshService | MeshServiceSubset", top, "kind: Mesh | MeshService", to,
					"hashPolicies: ...", "hashPolicies: [{type: Header, header: {name: x-user}}]",
				).Replace(block)
			}
		}
	}
	const want = 8 * 4 * 2
	if len(documents) != want {
		t.Fatalf("want %d documents, got %d", want, len(documents))
	}
	return documents
}

// TestWhatIsConvertedOfTheSpecificationMeansTheSame compares what holds for every client and destination.
func TestWhatIsConvertedOfTheSpecificationMeansTheSame(t *testing.T) {
	for name, document := range specificationDocuments(t) {
		t.Run(name, func(t *testing.T) {
			status, converted, warnings := weir(t, document, "policy", "convert", "-", "-n", "shop")
			if status != exitOK {
				t.Fatalf("status %d: %s", status, warnings)
			}
			before, after := specificationSet(t, document, mesh.Options{Namespace: "shop"}), specificationSet(t, converted, mesh.Options{})
			hasDefault := strings.Contains(warnings, "names no loadBalancer")
			if hasDefault == strings.Contains(document, "loadBalancer:") {
				t.Errorf("warned of the load balancer: %v; %s", hasDefault, warnings)
			}
			for _, c := range specificationClients(before) {
				for _, service := range []string{"backend", "payments", "web"} {
					d := policy.Destination{Service: topology.ServiceName{Namespace: "shop", Name: service}, Port: topology.Port{Port: 80}}
					want, got := before.Resolve(c, d), after.Resolve(c, d)
					if hasDefault && want.LoadBalancer.Type == policy.RoundRobin { // which the warning says
						want.LoadBalancer = policy.Defaults().LoadBalancer
						want.Fields = slices.DeleteFunc(want.Fields, func(f policy.Field) bool { return f.Path == "loadBalancer.type" })
					}
					ignored := gocmp.Options{cmpopts.IgnoreTypes(policy.Origin{}), cmpopts.EquateEmpty()}
					if diff := gocmp.Diff(want, got, ignored); diff != "" {
						t.Errorf("%s for %+v (-document +object):\n%s", service, c, diff)
					}
				}
			}
		})
	}
}

// specificationSet reads policies together with the objects that they are about.
func specificationSet(t *testing.T, policies string, o mesh.Options) *policy.Set {
	t.Helper()
	source := manifest.Source{Paths: []string{manifest.Stdin}, Stdin: strings.NewReader(specificationWorld + "---\n" + policies)}
	r, err := manifest.Read(t.Context(), source, manifest.Options{Mesh: o})
	if err != nil || len(r.Refused) > 0 || len(r.Policies.Rules) == 0 {
		t.Fatalf("%v, refused: %v\n%s", err, r.Problems, policies)
	}
	return r.Policies
}

// specificationClients are all kinds of clients: in each zone one that is no pod, a pod of web, and a pod of nothing.
func specificationClients(s *policy.Set) []policy.Client {
	clients := []policy.Client{
		{Node: "node-east", Zone: "us-east"}, {Node: "node-west", Zone: "us-west"}, {Node: "node-north", Zone: "eu-north"},
	}
	for _, c := range clients {
		c.Namespace, c.Pod = "shop", s.Pod("shop", "other").Labels
		clients = append(clients, c)
		c.Pod, c.Serves = s.Pod("shop", "front").Labels, []topology.ServiceName{{Namespace: "shop", Name: "web"}}
		clients = append(clients, c)
	}
	return clients
}

func TestEveryYAMLOfTheSpecificationIsExplained(t *testing.T) {
	for name, document := range specificationDocuments(t) {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			write(t, filepath.Join(folder, "cluster.yaml"), specificationWorld)
			// Without a namespace, web is default/web: the objects are in shop.
			document = strings.Replace(document, "name: web\n", "name: web\n    namespace: shop\n", 1)
			write(t, filepath.Join(folder, "policy.yaml"), document)
			service := "shop/backend"
			if strings.Contains(document, "name: payments") {
				service = "shop/payments"
			}
			status, out, err := weir(t, "", "explain", "-f", folder, "--client", "shop/front", service)
			if status != exitOK {
				t.Fatalf("status %d: %s", status, err)
			}
			for _, want := range explained(document) {
				if !regexp.MustCompile(`(?m)^80/TCP +` + want + ` +MeshLoadBalancing [a-z1-]+ to\[0\] \(.*policy.yaml:\d+\)$`).MatchString(out) {
					t.Errorf("want a field %s in\n%s", want, out)
				}
			}
		})
	}
}

// explained are the fields and values that an explanation has to have for what a document says.
func explained(document string) []string {
	var want []string
	for said, field := range map[string]string{
		"type: RoundRobin": `loadBalancer\.type +RoundRobin`, "type: Random": `loadBalancer\.type +Random`,
		"choiceCount: 8": `loadBalancer\.leastRequest\.choiceCount +8`,
		"MURMUR_HASH_2":  `loadBalancer\.ringHash\.hashFunction +MurmurHash2`, "minRingSize: 64": `loadBalancer\.ringHash\.minRingSize +64`,
		"maxRingSize: 1024": `loadBalancer\.ringHash\.maxRingSize +1024`, "tableSize: 100": `loadBalancer\.maglev\.tableSize +101`,
		"hashPolicies:": `hashPolicies +.+`, "disabled: true": `locality\.disabled +true`, "matchers:": `locality\.weights +.*10`,
	} {
		if strings.Contains(document, said) {
			want = append(want, field)
		}
	}
	return want
}
