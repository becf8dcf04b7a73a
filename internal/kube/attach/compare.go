package attach

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// ruling is a rule and what it says, field by field.
type ruling struct {
	rule *policy.Rule
	said map[string]string // the JSON of each field that is a value or a list, by path below spec
}

func newRuling(r *policy.Rule) *ruling { return &ruling{rule: r, said: fields(&r.Conf)} }

// fields gives what a Conf says, field by field.
func fields(c *policy.Conf) map[string]string {
	said := make(map[string]string)
	text, err := json.Marshal(c)
	if err != nil {
		panic("attach: a policy that was read cannot be written: " + err.Error())
	}
	var tree map[string]json.RawMessage
	if err := json.Unmarshal(text, &tree); err != nil {
		panic("attach: JSON of our own: " + err.Error())
	}
	flatten("", tree, said)
	return said
}

func flatten(path string, tree map[string]json.RawMessage, into map[string]string) {
	for key, value := range tree {
		var below map[string]json.RawMessage
		if value[0] != '{' || json.Unmarshal(value, &below) != nil {
			into[path+key] = string(value)
			continue
		}
		flatten(path+key+".", below, into) // an empty block says nothing
	}
}

// loss is a field that a policy says and that is not in force.
type loss struct {
	path, why string
	byEqual   bool // the winner is only older, or first in the alphabet
}

// comparison is what comes of a rule among the others.
type comparison struct {
	own    *ruling
	lost   []loss      // by path
	merged policy.Conf // with the rules about at least the same clients and destinations
	// isOpen: others choose a load balancer for some of the clients or destinations.
	isOpen bool
}

// compare finds which fields of a rule are not in force anywhere: those that a stronger rule about at least the same clients
// and destinations says otherwise.
func (j *judge) compare(r *policy.Rule) comparison {
	var covering []*ruling // weakest first, r's own among them
	var c comparison
	for _, o := range j.rules {
		switch {
		case o.rule == r:
			c.own = o
			covering = append(covering, o)
		case o.rule.Origin.Namespace == r.Origin.Namespace && o.rule.Origin.Name == r.Origin.Name: // another target of its own
		case coversTarget(o.rule.Target, r.Target) && coversClients(&o.rule.Clients, &r.Clients):
			covering = append(covering, o)
		case coversTarget(o.rule.Target, r.Target) || coversTarget(r.Target, o.rule.Target):
			c.isOpen = c.isOpen || o.rule.Conf.LoadBalancer != nil
		}
	}
	for _, o := range covering {
		c.merged = policy.Merge(c.merged, o.rule.Conf)
	}
	c.lost = j.losses(c.own, covering, &c.merged)
	return c
}

// losses finds which fields of a rule are not among those of the merged rules that cover it.
func (j *judge) losses(own *ruling, covering []*ruling, merged *policy.Conf) []loss {
	var lost []loss
	holds := fields(merged)
	isFlat := merged.Locality.Disabled != nil && *merged.Locality.Disabled
	for path, value := range own.said {
		switch {
		case isFlat && isForNearness(path):
			lost = append(lost, j.loss(own, covering, path, "locality.disabled"))
		case holds[path] != value:
			lost = append(lost, j.loss(own, covering, path, path))
		}
	}
	slices.SortFunc(lost, func(a, b loss) int { return strings.Compare(a.path, b.path) })
	return lost
}

// idle tells which fields that a rule says have no effect beside what holds with them, as what requests are hashed by has none
// where the load balancer does not hash. Only the rules of a service are asked about: those of a namespace or of the mesh
// hold for services of many kinds, and those of a route for whatever it leads to, so that data planes tell it there.
func (c *comparison) idle() []reason.Finding {
	r := c.own.rule
	if c.isOpen || r.Target.Kind != policy.TargetService && r.Target.Kind != policy.TargetServiceImport {
		return nil
	}
	whole := policy.NewSet(policy.Set{Rules: []policy.Rule{{Origin: r.Origin, Target: r.Target, Conf: c.merged}}})
	to := policy.Destination{Service: serviceName(r.Target), Port: topology.Port{Name: r.Target.Section}}
	var idle []reason.Finding
	for _, n := range whole.Resolve(policy.Client{}, to).Notes {
		field, _, _ := strings.Cut(n.Field, "[")
		isLost := slices.ContainsFunc(c.lost, func(l loss) bool { return isWithin(l.path, field) })
		if !isLost && slices.ContainsFunc(slices.Collect(maps.Keys(c.own.said)), func(path string) bool { return isWithin(path, field) }) {
			n.Field, n.Position = "spec."+n.Field, reason.Position{}
			idle = append(idle, n)
		}
	}
	return idle
}

// isWithin tells whether a path is a field, or within it.
func isWithin(path, field string) bool { return path == field || strings.HasPrefix(path, field+".") }

// loss finds the rule that leaves a field without effect, by another field or the same.
func (*judge) loss(own *ruling, covering []*ruling, path, by string) loss {
	block, _, _ := strings.Cut(by, ".")
	says := func(o *ruling) bool {
		_, ok := o.said[by]
		return ok
	}
	replaces := func(o *ruling) bool {
		for p := range o.said {
			if isWithin(p, block) {
				return true
			}
		}
		return false
	}
	for _, match := range []func(*ruling) bool{says, replaces} {
		for _, o := range slices.Backward(covering) {
			if o == own || !match(o) {
				continue
			}
			why := o.rule.Origin.Namespace + "/" + o.rule.Origin.Name + " says "
			if by == path {
				why += "otherwise"
			} else {
				why += by
			}
			return loss{path: path, why: why, byEqual: isEqual(o.rule, own.rule) && policy.Compare(o.rule, own.rule) > 0}
		}
	}
	return loss{path: path, why: "has no effect beside the policy's other fields"}
}

// isForNearness tells whether a field means nothing where all endpoints are equally near.
func isForNearness(path string) bool {
	for _, p := range []string{"locality.affinity", "locality.weights", "locality.failover", "locality.failoverThreshold", "locality.maxSkew", "locality.overflow"} {
		if isWithin(path, p) {
			return true
		}
	}
	return false
}

// isEqual tells whether only age and name decide between two rules.
func isEqual(a, b *policy.Rule) bool {
	return coversTarget(a.Target, b.Target) && coversTarget(b.Target, a.Target) &&
		coversClients(&a.Clients, &b.Clients) && coversClients(&b.Clients, &a.Clients) &&
		(a.Origin.Namespace == policy.RootNamespace) == (b.Origin.Namespace == policy.RootNamespace)
}

// coversTarget tells whether every request to b is one to a.
func coversTarget(a, b policy.Target) bool {
	isRoute := func(t policy.Target) bool {
		return t.Kind == policy.TargetHTTPRoute || t.Kind == policy.TargetGRPCRoute
	}
	isSection := a.Section == "" || a.Section == b.Section
	switch {
	case a.Kind == policy.TargetMesh:
		return true
	case b.Kind == policy.TargetMesh || a.Namespace != b.Namespace:
		return false
	case isRoute(a) || isRoute(b): // services say what their requests are, and routes of any namespace may name them
		return a.Kind == b.Kind && a.Name == b.Name && isSection
	case a.Kind == policy.TargetNamespace:
		return true
	case b.Kind == policy.TargetNamespace:
		return false
	default: // a ServiceImport is the Service of its name
		return a.Name == b.Name && isSection
	}
}

// coversClients tells whether a surely selects all clients that b selects.
func coversClients(a, b *policy.Clients) bool {
	return (a.Namespace == "" || a.Namespace == b.Namespace) &&
		(len(a.Zones) == 0 || slices.Equal(a.Zones, b.Zones)) &&
		(len(a.Pods) == 0 || reflect.DeepEqual(a.Pods, b.Pods)) &&
		(len(a.Namespaces) == 0 || reflect.DeepEqual(a.Namespaces, b.Namespaces)) &&
		(a.Service == nil || b.Service != nil && *a.Service == *b.Service)
}
