package feed

import (
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-lb/weir/api"
)

// trimmer cuts objects down to what weir reads of them, and lets those parts that thousands of endpoints have in common
// be in memory once: nothing that an informer keeps is ever written to. It is safe for concurrent use.
type trimmer struct {
	yes, no *bool

	mu      sync.Mutex
	strings map[string]*string
	hints   map[string]*discoveryv1.EndpointHints
}

// maxShared bounds how many different strings are remembered to be shared: more than the nodes, zones and namespaces of
// the largest clusters. When they are more, as after years of nodes that come and go, remembering begins anew.
const maxShared = 1 << 16

func newTrimmer() *trimmer {
	t := &trimmer{yes: new(true), no: new(false)}
	t.forgetLocked()
	return t
}

func (t *trimmer) forgetLocked() {
	t.strings = make(map[string]*string)
	t.hints = make(map[string]*discoveryv1.EndpointHints)
}

// lastApplied is where kubectl keeps a second copy of an object.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

func (t *trimmer) node(n *corev1.Node) {
	labels := make(map[string]string)
	for _, key := range []string{api.LabelZone, api.LabelRegion, api.LabelControlPlane, api.LabelMaster} {
		if value, ok := n.Labels[key]; ok {
			labels[key] = value
		}
	}
	trimmed := corev1.Node{TypeMeta: n.TypeMeta, ObjectMeta: identity(&n.ObjectMeta)}
	trimmed.Labels = labels
	if cpu, ok := n.Status.Allocatable[corev1.ResourceCPU]; ok {
		trimmed.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: cpu}
	}
	for i := range n.Status.Conditions {
		if c := &n.Status.Conditions[i]; c.Type == corev1.NodeReady {
			trimmed.Status.Conditions = append(trimmed.Status.Conditions, corev1.NodeCondition{Type: c.Type, Status: c.Status})
		}
	}
	*n = trimmed
}

func (*trimmer) service(s *corev1.Service) {
	meta := identity(&s.ObjectMeta)
	meta.Labels, meta.Annotations = s.Labels, s.Annotations
	delete(meta.Annotations, lastApplied)
	s.ObjectMeta = meta
}

// slice keeps every endpoint in its place: a JSON patch names endpoints by their index. It keeps every annotation too,
// and whether there are any: a patch tells an empty list from none.
func (t *trimmer) slice(s *discoveryv1.EndpointSlice) {
	meta := identity(&s.ObjectMeta)
	meta.Labels, meta.Annotations = s.Labels, s.Annotations
	s.ObjectMeta = meta
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range s.Endpoints {
		s.Endpoints[i] = t.endpointLocked(&s.Endpoints[i])
	}
}

func (t *trimmer) endpointLocked(e *discoveryv1.Endpoint) discoveryv1.Endpoint {
	trimmed := discoveryv1.Endpoint{
		Addresses: e.Addresses,
		Conditions: discoveryv1.EndpointConditions{
			Ready: t.bool(e.Conditions.Ready), Serving: t.bool(e.Conditions.Serving), Terminating: t.bool(e.Conditions.Terminating),
		},
		NodeName: t.stringLocked(e.NodeName),
		Zone:     t.stringLocked(e.Zone),
		Hints:    t.hintsLocked(e.Hints),
	}
	if len(e.Addresses) > 1 {
		trimmed.Addresses = []string{e.Addresses[0]} // the only one that counts; those after it would keep their memory
	}
	if ref := e.TargetRef; ref != nil {
		trimmed.TargetRef = &corev1.ObjectReference{
			Kind: *t.stringLocked(&ref.Kind), Namespace: *t.stringLocked(&ref.Namespace), Name: ref.Name,
		}
	}
	return trimmed
}

// identity keeps of an object's metadata what names it and its version.
func identity(m *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: m.Name, Namespace: m.Namespace, UID: m.UID, ResourceVersion: m.ResourceVersion, Generation: m.Generation,
		DeletionTimestamp: m.DeletionTimestamp,
	}
}

// bool gives the shared pointer to a truth value.
func (t *trimmer) bool(b *bool) *bool {
	switch {
	case b == nil:
		return nil
	case *b:
		return t.yes
	default:
		return t.no
	}
}

// stringLocked gives the shared pointer to a string.
func (t *trimmer) stringLocked(s *string) *string {
	if s == nil {
		return nil
	}
	if shared, ok := t.strings[*s]; ok {
		return shared
	}
	if len(t.strings)+len(t.hints) >= maxShared {
		t.forgetLocked()
	}
	own := strings.Clone(*s) // the decoder's may be a part of something larger
	t.strings[own] = &own
	return &own
}

// hintsLocked gives the shared hints that say the same.
func (t *trimmer) hintsLocked(h *discoveryv1.EndpointHints) *discoveryv1.EndpointHints {
	if h == nil {
		return nil
	}
	var key strings.Builder
	for _, z := range h.ForZones {
		key.WriteString(z.Name + ",") // no name of a zone or node has these signs
	}
	key.WriteByte('/')
	for _, n := range h.ForNodes {
		key.WriteString(n.Name + ",")
	}
	if h.ForZones != nil {
		key.WriteByte('z') // an empty list is not none
	}
	if h.ForNodes != nil {
		key.WriteByte('n')
	}
	if shared, ok := t.hints[key.String()]; ok {
		return shared
	}
	if len(t.strings)+len(t.hints) >= maxShared {
		t.forgetLocked()
	}
	t.hints[key.String()] = h
	return h
}
