package policy

import (
	"slices"

	"github.com/weir-lb/weir/internal/core/topology"
)

// Matches tells whether every requirement holds for labels.
func (s Selector) Matches(labels Labels) bool {
	for i := range s {
		if !s[i].Matches(labels) {
			return false
		}
	}
	return true
}

// Matches tells whether the requirement holds for labels. NotIn holds for a label that is missing, as it does in Kubernetes.
// An operator that is not known holds for no labels.
func (r *Requirement) Matches(labels Labels) bool {
	value, ok := labels[r.Key]
	switch r.Operator {
	case In:
		return ok && slices.Contains(r.Values, value)
	case NotIn:
		return !ok || !slices.Contains(r.Values, value)
	case Exists:
		return ok
	case DoesNotExist:
		return !ok
	default:
		return false
	}
}

// selects tells whether the client is among c, its zone aside.
func (c *Clients) selects(s *Set, client *Client) bool {
	if c.Namespace != "" && c.Namespace != client.Namespace {
		return false
	}
	if c.Service != nil && !slices.Contains(client.Serves, *c.Service) {
		return false
	}
	if len(c.Pods) > 0 && (client.Namespace == "" || !c.Pods.Matches(client.Pod)) {
		return false
	}
	return len(c.Namespaces) == 0 || client.Namespace != "" && c.Namespaces.Matches(s.namespace(client.Namespace))
}

// selectsZone tells whether clients in a zone are among c; one that is not known never is, unless any is.
func (c *Clients) selectsZone(z topology.Zone) bool {
	return len(c.Zones) == 0 || z != "" && slices.Contains(c.Zones, z)
}

// tellsApart tells whether c selects by more than the zone.
func (c *Clients) tellsApart() bool {
	return c.Namespace != "" || c.Service != nil || len(c.Pods) > 0 || len(c.Namespaces) > 0
}

// The well-known labels that weir can give where they are missing.
const (
	labelNamespaceName = "kubernetes.io/metadata.name"
	labelHostname      = "kubernetes.io/hostname"
	labelZone          = "topology.kubernetes.io/zone"
)

// namespace gives a namespace's labels; one that is not known has its name as a label, as the API server would see to.
func (s *Set) namespace(name string) Labels {
	if labels, ok := s.Namespaces[name]; ok {
		return labels
	}
	return Labels{labelNamespaceName: name}
}
