package manifest_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/manifest"
)

func stdin(text string) manifest.Source {
	return manifest.Source{Paths: []string{manifest.Stdin}, Stdin: strings.NewReader(text)}
}

// A decoder would take ten seconds for the empty documents.
func TestMillionsOfEmptyDocumentsAreSkippedAndLinesKeepTheirNumbers(t *testing.T) {
	const lines = 1 << 21
	text := strings.Repeat("---\n", lines) + service("web", "80") + strings.Repeat("---  \r\n\n", 3) + "kind: Service\n"
	_, err := manifest.Read(t.Context(), stdin(text), manifest.Options{})
	if want := "stdin:2097163:"; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("the error is %v, want one at %s", err, want)
	}
	got, err := manifest.Read(t.Context(), stdin(text[:len(text)-len("kind: Service\n")]), manifest.Options{})
	if err != nil || len(got.Snapshot.Services) != 1 {
		t.Errorf("%d services, %v; want 1", len(got.Snapshot.Services), err)
	}
}

func TestSeparatorsOfTextsAndCommentsStay(t *testing.T) {
	for text, want := range map[string]int{
		"---\n# a\n---\n" + service("a", "80"):                                            1,
		service("a", "80") + "---\n---\n" + service("b", "80"):                            2,
		service("a", "80") + "---\n\n---\n---":                                            1,
		"---\n" + service("a", "80") + "---\n" + service("b", "80") + "---\n":             2,
		"kind: Unknown\napiVersion: v1\ntext: |+\n  a\n\n---\n---\n" + service("a", "80"): 1,
	} {
		got, err := manifest.Read(t.Context(), stdin(text), manifest.Options{})
		if err != nil || len(got.Snapshot.Services) != want {
			t.Errorf("%q: %d services, %v; want %d", text, len(got.Snapshot.Services), err, want)
		}
	}
}

func TestReadingEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := manifest.Read(ctx, stdin(service("web", "80")), manifest.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v, want that of the context", err)
	}
}

func TestServicesOfOtherClustersAreRead(t *testing.T) {
	const text = `
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop, labels: {weir.dev/global: "true"}}
spec: {clusterIP: 10.96.0.1, ports: [{port: 80}]}
---
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceImport
metadata: {name: web, namespace: shop}
spec: {type: ClusterSetIP, ips: [10.96.0.9], ports: [{port: 80}]}
---
apiVersion: multicluster.x-k8s.io/v1alpha1
kind: ServiceImportList
items:
  - metadata: {name: db, namespace: shop}
    spec: {type: Headless, ports: [{port: 80}]}
---
apiVersion: v1
kind: List
items:
  - {apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: own, namespace: shop, labels: {kubernetes.io/service-name: web}},
     addressType: IPv4, ports: [{port: 80}], endpoints: [{addresses: [10.1.0.1], zone: a, conditions: {ready: true, serving: true, terminating: false}}]}
  - {apiVersion: discovery.k8s.io/v1, kind: EndpointSlice,
     metadata: {name: west, namespace: shop, labels: {multicluster.kubernetes.io/service-name: web, multicluster.kubernetes.io/source-cluster: west}},
     addressType: IPv4, ports: [{port: 80}], endpoints: [{addresses: [10.2.0.1], zone: a, conditions: {ready: true, serving: true, terminating: false},
     hints: {forZones: [{name: a}]}}]}
  - {apiVersion: discovery.k8s.io/v1, kind: EndpointSlice,
     metadata: {name: db-west, namespace: shop, labels: {multicluster.kubernetes.io/service-name: db, multicluster.kubernetes.io/source-cluster: west}},
     addressType: IPv4, ports: [{port: 80}], endpoints: [{addresses: [10.2.0.2], conditions: {ready: true, serving: true, terminating: false}}, {addresses: ["127.0.0.1"]}]}
  - {apiVersion: discovery.k8s.io/v1, kind: EndpointSlice,
     metadata: {name: lost, namespace: shop, labels: {multicluster.kubernetes.io/service-name: gone, multicluster.kubernetes.io/source-cluster: west}},
     addressType: IPv4, ports: [{port: 80}], endpoints: [{addresses: [10.2.0.3]}]}
`
	got, err := manifest.Read(t.Context(), stdin(text), manifest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := `service shop/db.clusterset mode=Balanced headless
endpoints 10.2.0.2=-:1{cluster=west}
service shop/web ip=10.96.0.1 mode=Balanced
endpoints 10.1.0.1=a:1 10.2.0.1=a:1{cluster=west}
service shop/web.clusterset ip=10.96.0.9 mode=Balanced
endpoints 10.2.0.1=a:1{cluster=west}`
	if text := got.Snapshot.String(); text != want {
		t.Errorf("the snapshot is\n%s\nwant\n%s", text, want)
	}
	var problems []string
	for _, p := range got.Problems {
		problems = append(problems, p.Object.String()+": "+p.Message)
	}
	wantProblems := []string{
		"EndpointSlice shop/lost: there is no ServiceImport shop/gone: left out",
		"EndpointSlice shop/db-west: 127.0.0.1 of cluster west is an address of this machine or its link: left out",
		"EndpointSlice shop/db-west: no endpoint of cluster west names its zone: they count as one place",
	}
	if strings.Join(problems, "\n") != strings.Join(wantProblems, "\n") {
		t.Errorf("problems:\n%s\nwant:\n%s", strings.Join(problems, "\n"), strings.Join(wantProblems, "\n"))
	}
	if svc := got.Snapshot.Service(topology.ServiceName{Namespace: "shop", Name: "web"}); !svc.Endpoints[1].Hints.IsZero() {
		t.Error("hints of another cluster count here")
	}
}
