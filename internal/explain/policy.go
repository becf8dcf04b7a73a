package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/grid"
)

// Policy is what load-balancing policies say of a service to one client.
type Policy struct {
	Client string       `json:"client"` // for people
	Ports  []PolicyPort `json:"ports"`  // of TCP
}

// PolicyPort is what policies say of one port of a service.
type PolicyPort struct {
	Name      string  `json:"name,omitempty"`
	Port      uint16  `json:"port"`
	Protocol  string  `json:"protocol"`
	Algorithm string  `json:"algorithm,omitempty"` // empty: no policy chose one, the agent's own holds
	Fields    []Field `json:"fields"`              // that a policy has set, in the order of the CRD's
	Notes     []Note  `json:"notes,omitempty"`     // what was said and has no effect
}

// Field is a field that holds, and where it was written.
type Field struct {
	Path   string `json:"path"` // below spec of a LoadBalancingPolicy
	Value  string `json:"value"`
	Route  string `json:"route,omitempty"`  // kind namespace/name and rule: it holds for the requests of that; empty: for all
	Policy string `json:"policy"`           // kind and name of the document
	Source string `json:"source,omitempty"` // file:line; empty: from an API server
}

// Note is something that a policy says and that has no effect, and why.
type Note struct {
	Path    string `json:"path"`
	Message string `json:"message"`
	Policy  string `json:"policy"`
	Source  string `json:"source,omitempty"`
}

// PolicyName names a policy document, and which of a mesh document's destinations, for people.
func PolicyName(document reason.Object, entry int) string {
	if policy.Dialect(document.Kind).IsMesh() {
		return document.String() + " to[" + strconv.Itoa(entry) + "]"
	}
	return document.String()
}

// Fields shows the fields that policies have set.
func Fields(s *policy.Settings) []Field {
	fields := make([]Field, 0, len(s.Fields))
	for i := range s.Fields {
		f := &s.Fields[i]
		fields = append(fields, Field{Path: f.Path, Value: f.Value, Policy: PolicyName(f.Origin.Object(), f.Origin.Entry), Source: f.Origin.Source.String()})
	}
	return fields
}

// routeFields shows what policies have set for the requests of routes, each rule once.
func routeFields(s *policy.Settings) []Field {
	var fields []Field
	told := make(map[string]bool)
	for i := range s.Routes {
		r := &s.Routes[i]
		if r.Origin == nil || told[r.Route] {
			continue
		}
		told[r.Route] = true
		texts := make([]string, 0, len(r.HashPolicies))
		for _, h := range r.HashPolicies {
			texts = append(texts, h.String())
		}
		fields = append(fields, Field{
			Path: "hashPolicies", Value: cmp.Or(strings.Join(texts, ", "), "none"), Route: r.Route,
			Policy: PolicyName(r.Origin.Object(), r.Origin.Entry), Source: r.Origin.Source.String(),
		})
	}
	return fields
}

// Notes shows what policies say without effect.
func Notes(s *policy.Settings) []Note {
	notes := make([]Note, 0, len(s.Notes))
	for i := range s.Notes {
		n := &s.Notes[i]
		notes = append(notes, Note{n.Field, n.Message, PolicyName(n.Object, n.Entry), n.Position.String()})
	}
	return notes
}

// policy shows what policies say of a service; nil where there are none.
func (o *Options) policy(svc *topology.Service) *Policy {
	if o.Policies == nil || len(o.Policies.Rules) == 0 {
		return nil
	}
	p := &Policy{Client: o.ClientName, Ports: []PolicyPort{}}
	for _, port := range svc.Ports {
		if port.Protocol != topology.TCP {
			continue // policies balance TCP alone
		}
		s := o.Policies.Resolve(o.Client, policy.Destination{Service: svc.ServiceName, Port: port})
		p.Ports = append(p.Ports, PolicyPort{
			Name: port.Name, Port: port.Port, Protocol: string(port.Protocol), Algorithm: string(s.LoadBalancer.Type),
			Fields: append(Fields(&s), routeFields(&s)...), Notes: Notes(&s),
		})
	}
	return p
}

// policy writes which policies hold, field by field. Ports of which the same is said share a table.
func (p *printer) policy(v *Policy) {
	if v == nil {
		return
	}
	p.print("\n" + p.bold("POLICY") + " for " + v.Client + "\n")
	rows := [][]grid.Cell{head("PORT", "FIELD", "VALUE", "FROM")}
	var notes []string
	for i := range v.Ports {
		port := &v.Ports[i]
		name := grid.Text(fmt.Sprintf("%d/%s", port.Port, port.Protocol))
		if len(port.Fields) == 0 {
			rows = append(rows, []grid.Cell{name, grid.Text("-"), grid.Text("-"), grid.Text("no policy: the agent's flags and the service's annotations hold")})
		}
		for _, f := range port.Fields {
			path := f.Path
			if f.Route != "" {
				path += " for " + f.Route
			}
			rows = append(rows, []grid.Cell{name, grid.Text(path), grid.Text(f.Value), grid.Text(from(f.Policy, f.Source))})
		}
		for _, n := range port.Notes {
			notes = append(notes, fmt.Sprintf("%s of %s: %s", n.Path, from(n.Policy, n.Source), n.Message))
		}
	}
	p.table(rows)
	slices.Sort(notes)
	p.lines("WITHOUT EFFECT", slices.Compact(notes))
}

// from names a document and where it is.
func from(policy, source string) string {
	if source == "" {
		return policy
	}
	return policy + " (" + source + ")"
}
