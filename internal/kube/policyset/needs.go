package policyset

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
)

// Needs reports the rules of a set that ask for labels or annotations of objects that o does not follow, and names the
// agent's flag that would follow them. Such a rule stays, and finds nothing.
//
// Shape: a problem for each field, in the order of the rules; none for a nil set.
func Needs(s *policy.Set, o Options) []reason.Finding {
	if s == nil {
		return nil
	}
	o = o.withDefaults()
	n := needs{set: s, options: &o, onPods: make(map[string]bool), told: make(map[reason.Finding]bool)}
	for i := range s.Rules {
		n.rule(&s.Rules[i])
	}
	return n.found
}

// needs gathers what one set needs.
type needs struct {
	set     *policy.Set
	options *Options
	origin  *policy.Origin
	onPods  map[string]bool // whether pods have a label, as far as it was asked for
	told    map[reason.Finding]bool
	found   []reason.Finding
}

func (n *needs) add(field, format string, args ...any) {
	p := n.origin.Finding("spec."+field, reason.NotWatched, fmt.Sprintf(format, args...))
	p.Entry = 0 // the rules of a policy share most of what they say
	if !n.told[p] {
		n.told[p] = true
		n.found = append(n.found, p)
	}
}

func (n *needs) rule(r *policy.Rule) {
	n.origin = &r.Origin
	n.clients(&r.Clients)
	if key := r.Conf.EndpointHashKey; key != nil && n.options.Pods != All {
		switch key.Type {
		case policy.HashKeyLabel, policy.HashKeyAnnotation:
			n.add("endpointHashKey", "pods of other nodes are not followed, their endpoints are hashed by address: want --pods=all")
		case policy.HashKeyAddress, policy.HashKeyPodName:
		}
	}
	l := &r.Conf.Locality
	if l.ZoneKey != nil {
		n.key("locality.zoneKey", *l.ZoneKey)
	}
	for i := range l.Affinity {
		n.key(fmt.Sprintf("locality.affinity[%d].key", i), l.Affinity[i].Key)
	}
	for i := range l.Weights {
		n.key(fmt.Sprintf("locality.weights[%d].key", i), l.Weights[i].Key)
	}
}

// clients says which clients are not told apart. The pods of the own node are all that its agent serves.
func (n *needs) clients(c *policy.Clients) {
	if n.options.Pods != None {
		return
	}
	const why = "pods are not followed, so that no client is known by its pod: want --pods=own"
	if len(c.Pods) > 0 {
		n.add("clients.podSelector", why)
	}
	if len(c.Namespaces) > 0 {
		n.add("clients.namespaceSelector", why)
	}
	if c.Namespace != "" {
		n.add("targetRefs", "it is about the clients of namespace %q, and "+why, c.Namespace)
	}
}

// key says that the label of a key is not known of all endpoints. A host name and a zone are known without labels.
//
// A label may be a pod's or a node's, and no key tells which: where one of both is followed whole and has the key, that is
// what was meant.
func (n *needs) key(field, key string) {
	if key == corev1.LabelHostname || key == corev1.LabelTopologyZone {
		return
	}
	allPods, allNodes := n.options.Pods == All, n.options.Nodes == All
	switch {
	case allPods && allNodes:
	case allPods && !n.isOnPods(key):
		n.add(field, "no pod has the label %q, and other nodes are not followed: want --nodes=all", key)
	case allNodes && !n.isOnNodes(key):
		n.add(field, "no node has the label %q, and pods of other nodes are not followed: want --pods=all", key)
	case !allPods && !allNodes:
		n.add(field, "the label %q is not known of endpoints on other nodes: want --nodes=all, or --pods=all if pods have it", key)
	}
}

// isOnPods goes through the pods once for each key: many rules may name it, and there may be very many pods.
func (n *needs) isOnPods(key string) bool {
	is, known := n.onPods[key]
	if !known {
		is = slices.ContainsFunc(n.set.Pods, func(p policy.Pod) bool {
			_, ok := p.Labels[key]
			return ok
		})
		n.onPods[key] = is
	}
	return is
}

func (n *needs) isOnNodes(key string) bool {
	for _, labels := range n.set.Nodes {
		if _, ok := labels[key]; ok {
			return true
		}
	}
	return false
}
