package plan_test

import (
	"strings"
	"testing"

	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

func TestPolicyLocalLosesWhatStartsWhereNobodyServes(t *testing.T) {
	for _, mode := range topology.Modes() {
		in := inputOf(mode, cores(4, 4, 4), endpointsIn(2, 1, 0))
		in.Service.InternalPolicy = topology.PolicyLocal
		p := plan.Compute(in)
		var told string
		for _, r := range p.Reasons {
			if r.Code == reason.ZonesNotServed {
				told = strings.Join(r.Objects, " ")
			}
		}
		if told != "zone-c" || has(p.Reasons, reason.ZonesWithoutEndpoints) {
			t.Errorf("%s: want zone-c named as not served and nothing said to go elsewhere, got:\n%s", mode, &p)
		}
		if advice := plan.Advise(in, p); advice != nil {
			t.Errorf("%s: zones have no say under policy Local, yet the advice is %v", mode, advice)
		}
	}
}

func TestTheInternalPolicyDecidesWhichListTheClusterIPUses(t *testing.T) {
	endpoints := []topology.Endpoint{endpoint(0, "zone-a"), endpoint(1, "zone-b")}
	port := topology.Port{Name: endpoints[0].Ports[0].Name, Protocol: endpoints[0].Ports[0].Protocol}
	client := plan.Client{Node: endpoints[0].Node, Zone: "zone-a"}
	for policy, want := range map[topology.TrafficPolicy]struct {
		list int
		code reason.Code
	}{
		topology.PolicyCluster: {2, reason.NoHints},
		topology.PolicyLocal:   {1, reason.OnNode},
	} {
		// What clients outside may use is another question, which fills the other list.
		svc := &topology.Service{InternalPolicy: policy, ExternalPolicy: topology.PolicyLocal, ExternallyAccessible: true}
		choice := plan.Choose(svc, endpoints, port, client)
		if list, why := choice.Inside(svc); len(list) != want.list || why.Code != want.code {
			t.Errorf("%s: got %v because %s, want %d because %s", policy, list, why.Code, want.list, want.code)
		}
	}
}
