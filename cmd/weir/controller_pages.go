package main

import (
	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/explain"
	"github.com/weir-lb/weir/internal/kube/control"
	"github.com/weir-lb/weir/internal/kube/plans"
)

// controlled is a service as the controller sees it. Its JSON names are promised (docs/json.md).
type controlled struct {
	Service  string   `json:"service"` // namespace/name
	Managed  bool     `json:"managed"`
	Asked    string   `json:"asked"`          // label, annotation, field; empty: nowhere
	Mode     string   `json:"mode,omitempty"` // empty: there is no Service, or one without endpoints of its own
	Slices   int      `json:"endpointSlices"`
	Problems []string `json:"problems"`
}

func controlledService(d *plans.Decision) controlled {
	r := d.Record
	c := controlled{
		Service: r.Name.String(), Managed: r.Managed, Asked: string(r.Asked), Slices: len(r.Slices), Problems: []string{},
	}
	if r.Service != nil {
		c.Mode = string(r.Service.Mode)
	}
	for _, p := range r.Problems {
		c.Problems = append(c.Problems, p.String())
	}
	return c
}

// planViews shows the plans of decisions, as weir explain -o json does.
func planViews(decisions []*plans.Decision, survey *plan.Survey) []explain.Plan {
	views := []explain.Plan{} // an empty list in JSON, not null
	for _, d := range decisions {
		for i := range d.Plans {
			views = append(views, explain.View(&d.Plans[i], survey))
		}
	}
	return views
}

// controllerPages answer the admin pages of a controller.
func controllerPages(c *control.Controller) map[string]func() (any, error) {
	return map[string]func() (any, error){
		"/services": func() (any, error) {
			services := []controlled{}
			for _, d := range c.Decisions() {
				services = append(services, controlledService(d))
			}
			return struct {
				Leader   bool         `json:"leader"` // whether this replica writes
				Services []controlled `json:"services"`
			}{c.IsLeader(), services}, c.Planned()
		},
		"/plans": func() (any, error) {
			if err := c.Planned(); err != nil {
				return nil, err
			}
			state, _ := c.States().Load()
			survey := plan.SurveyNodes(state.Snapshot.Nodes)
			return planViews(c.Decisions(), &survey), nil
		},
	}
}
