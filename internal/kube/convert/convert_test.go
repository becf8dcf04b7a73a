package convert_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"sigs.k8s.io/yaml"

	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// object reads a Kubernetes object from YAML.
func object[T any](t *testing.T, text string) *T {
	t.Helper()
	value := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), value); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return value
}

// lines gives the problems as a person reads them.
func lines(problems []reason.Finding) []string {
	var texts []string
	for _, p := range problems {
		texts = append(texts, p.String())
	}
	return texts
}

func equal(t *testing.T, what string, want, got any) {
	t.Helper()
	sameAddr := cmp.Comparer(func(a, b netip.Addr) bool { return a == b })
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), sameAddr); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// text gives endpoints in weir's text form.
func text(endpoints []topology.Endpoint) string {
	s := topology.NewSnapshot(nil, []*topology.Service{{Endpoints: endpoints}}, topology.Costs{})
	return topology.FormatEndpoints(s.Services[0].Endpoints)
}
