package plans_test

import (
	"encoding/json"
	"fmt"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/weir-lb/weir/internal/kube/hints"
	"github.com/weir-lb/weir/internal/kube/plans"
)

// written gives the slice as the API server would hold it after the decision was written to it. It panics where the
// patch does not apply.
func written(s *discoveryv1.EndpointSlice, d *plans.Decision) *discoveryv1.EndpointSlice {
	ops := hints.Edit(s, d)
	if len(ops) == 0 {
		return s
	}
	raw, err := json.Marshal(ops)
	if err != nil {
		panic(err)
	}
	patch, err := jsonpatch.DecodePatch(raw)
	if err != nil {
		panic(err)
	}
	object, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	if object, err = patch.Apply(object); err != nil {
		panic(fmt.Sprintf("%v: %s", err, raw))
	}
	result := new(discoveryv1.EndpointSlice)
	if err := json.Unmarshal(object, result); err != nil {
		panic(err)
	}
	return result
}

// hintsOf gives the hints of all planned endpoints as text.
func hintsOf(d *plans.Decision) []string {
	var lines []string
	for _, p := range d.Plans {
		for _, e := range p.Endpoints {
			var zones []string
			for _, z := range e.Hints.Zones {
				zones = append(zones, string(z))
			}
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Addr, strings.Join(zones, ","), strings.Join(e.Hints.Nodes, ","))))
		}
	}
	return lines
}
