package agent

import (
	"slices"
	"strings"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/route"
	"github.com/weir-lb/weir/internal/explain"
)

// PolicyStatus is what a policy document sets for one destination. Its JSON names are promised (docs/json.md).
type PolicyStatus struct {
	Policy  string   `json:"policy"`           // kind namespace/name, and which destination of the document
	Source  string   `json:"source,omitempty"` // file:line; empty: from the API server
	Target  string   `json:"target"`           // kind namespace/name, and the port or rule of a route
	Serving []string `json:"serving"`          // the served ports that it has a part in, sorted
}

// PoliciesStatus is what the page /policies shows.
type PoliciesStatus struct {
	Policies []PolicyStatus `json:"policies"` // by kind, namespace and name
	Problems []Problem      `json:"problems"` // that policies have
}

// policyPage shows all policies.
func (r *reading) policyPage(rules []policy.Rule) PoliciesStatus {
	page := PoliciesStatus{Policies: []PolicyStatus{}, Problems: []Problem{}}
	for _, p := range r.problems {
		if isPolicyCode(p.Reason.Code) {
			page.Problems = append(page.Problems, p)
		}
	}
	serving := make(map[policy.Origin][]string)
	for _, e := range r.table.Entries {
		for _, f := range e.Settings.Policy.Fields {
			serving[f.Origin] = append(serving[f.Origin], e.PortName())
		}
	}
	for i := range rules {
		rule := &rules[i]
		ports := append([]string{}, serving[rule.Origin]...)
		slices.Sort(ports)
		page.Policies = append(page.Policies, PolicyStatus{
			Policy: explain.PolicyName(rule.Origin.Object(), rule.Origin.Entry), Source: rule.Origin.Source.String(), Target: route.TargetName(&rule.Target),
			Serving: slices.Compact(ports),
		})
	}
	slices.SortStableFunc(page.Policies, func(a, b PolicyStatus) int { return strings.Compare(a.Policy, b.Policy) })
	return page
}

func isPolicyCode(c reason.Code) bool {
	switch c {
	case reason.PolicyWithoutEffect, reason.HashNeedsHTTP, reason.FilterNotTrusted, reason.HashRefused, reason.PolicyNamesNoZone, reason.PolicyNamesNoLabel,
		reason.PolicyForNoService, reason.PolicyForNoPort, reason.PolicyRefused, reason.PolicyLastGood, reason.WeightRefused:
		return true
	default:
		return false
	}
}
