package attach

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/kube/policies"
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
	text, err := json.Marshal(policies.SpecOf(c))
	if err != nil {
		panic("attach: a policy that was read cannot be written: " + err.Error())
	}
	var tree map[string]json.RawMessage
	if err := json.Unmarshal(text, &tree); err != nil {
		panic("attach: JSON of our own: " + err.Error())
	}
	delete(tree, "targetRefs")
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

// compare finds which fields of a rule are not in force anywhere: those that a stronger rule about at least the same clients
// and destinations says otherwise. It gives how many fields the rule says, and those that are lost, by path.
func (j *judge) compare(r *policy.Rule) (said int, lost []loss) {
	var covering []*ruling // weakest first, r's own among them
	var own *ruling
	for _, o := range j.rules {
		switch {
		case o.rule == r:
			own = o
			covering = append(covering, o)
		case o.rule.Origin.Namespace == r.Origin.Namespace && o.rule.Origin.Name == r.Origin.Name: // another target of its own
		case coversTarget(o.rule.Target, r.Target) && coversClients(&o.rule.Clients, &r.Clients):
			covering = append(covering, o)
		}
	}
	var merged policy.Conf
	for _, o := range covering {
		merged = policy.Merge(merged, o.rule.Conf)
	}
	holds := fields(&merged)
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
	return len(own.said), lost
}

// loss finds who said by another field, or the same, that a field does not count.
func (*judge) loss(own *ruling, covering []*ruling, path, by string) loss {
	block, _, _ := strings.Cut(by, ".")
	says := func(o *ruling) bool {
		_, ok := o.said[by]
		return ok
	}
	replaces := func(o *ruling) bool {
		for p := range o.said {
			if p == block || strings.HasPrefix(p, block+".") {
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
	for _, p := range []string{"locality.affinity", "locality.weights", "locality.failover", "locality.failoverThreshold", "locality.overflow"} {
		if path == p || strings.HasPrefix(path, p+".") {
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

// coversClients tells whether a surely selects all whom b selects.
func coversClients(a, b *policy.Clients) bool {
	return (a.Namespace == "" || a.Namespace == b.Namespace) &&
		(len(a.Zones) == 0 || slices.Equal(a.Zones, b.Zones)) &&
		(len(a.Pods) == 0 || reflect.DeepEqual(a.Pods, b.Pods)) &&
		(len(a.Namespaces) == 0 || reflect.DeepEqual(a.Namespaces, b.Namespaces)) &&
		(a.Service == nil || b.Service != nil && *a.Service == *b.Service)
}
