package fleet

import (
	"math"

	"github.com/weir-lb/weir/internal/sim/scenario"
)

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
	return has(where, pod, count)
}

// has tells whether where names a pod that has count pods in its zone and cluster.
func has(where scenario.Where, pod *Pod, count int) bool {
	switch {
	case where.Zone != "" && where.Zone != pod.Zone:
		return false
	case where.Cluster != pod.Cluster && (where.Zone != "" || where.Cluster != ""):
		return false
	case where.Part > 0:
		return float64(pod.Place) <= math.Ceil(where.Part*float64(count)-roundingSlack)
	case where.First > 0:
		return pod.Place >= where.First && pod.Place <= where.Last
	default:
		return true
	}
}
