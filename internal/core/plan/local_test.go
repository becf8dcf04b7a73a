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
