package policyset

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"unique"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/kube/policies"
)

// The bounds of what is kept of one pod's annotations. What is longer is not there for policies: an endpoint is not hashed by
// it. They leave room for the names, numbers and checksums that endpoints may be told apart by, and not for the documents that
// other programs keep there.
const (
	maxAnnotations      = 64
	maxAnnotationLength = 256
)

// maxSharedLabels bounds how many sets of labels are remembered to be shared: more than the workloads of the largest
// clusters. When they are more, as where each pod has labels of its own, remembering begins anew.
const maxSharedLabels = 1 << 13

// sharer lets equal labels of many pods be in memory once. What it gives must not be written to. The zero value works; it is
// safe for concurrent use.
type sharer struct {
	mu  sync.Mutex
	all map[string]policy.Labels // by what labelsKey makes of them
}

// labels gives the shared labels that say the same; nil for none.
func (s *sharer) labels(labels map[string]string) policy.Labels {
	if len(labels) == 0 {
		return nil
	}
	key := labelsKey(labels)
	s.mu.Lock()
	defer s.mu.Unlock()
	if shared, ok := s.all[key]; ok {
		return shared
	}
	if s.all == nil || len(s.all) >= maxSharedLabels {
		s.all = make(map[string]policy.Labels)
	}
	own := make(policy.Labels, len(labels))
	for k, v := range labels {
		own[shared(k)] = shared(v)
	}
	s.all[key] = own
	return own
}

// labelsKey is a text that only equal labels have in common: no key or value of the API has a zero byte.
func labelsKey(labels map[string]string) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		b.WriteString(k)
		b.WriteByte(0)
		b.WriteString(labels[k])
		b.WriteByte(0)
	}
	return b.String()
}

// shared gives the one copy of a text, which goes with its last user.
func shared(text string) string { return unique.Make(text).Value() }

// annotations keeps what is within the bounds. Of too many, those that come first by name are kept, after weir's own.
func (s *sharer) annotations(all map[string]string) policy.Labels {
	kept := make(map[string]string, min(len(all), maxAnnotations))
	for _, own := range []bool{true, false} {
		for _, k := range slices.Sorted(maps.Keys(all)) {
			isOwn := strings.HasPrefix(k, "weir.dev/")
			if isOwn == own && len(all[k]) <= maxAnnotationLength && len(kept) < maxAnnotations {
				kept[k] = all[k]
			}
		}
	}
	return s.labels(kept)
}

// pod gives what policies know of a pod; false for one that is finished, whose address may be another's by now.
func (s *sharer) pod(p *corev1.Pod) (policy.Pod, bool) {
	pod := policies.Pod(p)
	pod.Namespace, pod.Name, pod.Node = shared(pod.Namespace), strings.Clone(pod.Name), shared(pod.Node)
	pod.Labels, pod.Annotations = s.labels(p.Labels), s.annotations(p.Annotations)
	for i := range pod.IPs {
		pod.IPs[i] = strings.Clone(pod.IPs[i])
	}
	return pod, !policies.IsFinished(p)
}

// comparePods orders pods as a policy.Set has them.
func comparePods(a, b *policy.Pod) int {
	if c := strings.Compare(a.Namespace, b.Namespace); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}

// isSamePod tells whether policies cannot tell two pods apart. Equal labels are mostly the same map.
func isSamePod(a, b *policy.Pod) bool {
	return a.Namespace == b.Namespace && a.Name == b.Name && a.Node == b.Node && slices.Equal(a.IPs, b.IPs) &&
		maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations)
}
