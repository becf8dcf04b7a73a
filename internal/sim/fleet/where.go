package fleet

import "github.com/weir-lb/weir/internal/sim/scenario"

// isMeant tells whether where names the pod; it counts among the pods of its zone that do not go.
func (f *Fleet) isMeant(id int, where scenario.Where) bool {
	pod := &f.pods[id]
	count := 0
	for other := range f.pods {
		p := &f.pods[other]
		if f.isActive(other) && f.hidden[other].replaces == none && p.Zone == pod.Zone && p.Cluster == pod.Cluster {
			count++
		}
	}
	return where.Has(pod.Zone, pod.Cluster, pod.Place, count)
}
