package fleet

import (
	"math"

	"github.com/weir-lb/weir/internal/sim/scenario"
)

// isMeant tells whether where names the pod; places count among the pods of its zone that do not go.
func (f *Fleet) isMeant(id int, where scenario.Where) bool {
	pod := &f.pods[id]
	if where.Zone != "" && where.Zone != pod.Zone || (where.Zone != "" || where.Cluster != "") && where.Cluster != pod.Cluster {
		return false
	}
	if where.Part <= 0 {
		return where.First <= 0 || pod.Place >= where.First && pod.Place <= where.Last
	}
	count := 0
	for other := range f.pods {
		p := &f.pods[other]
		if f.isActive(other) && f.hidden[other].replaces == none && p.Zone == pod.Zone && p.Cluster == pod.Cluster {
			count++
		}
	}
	return float64(pod.Place) <= math.Ceil(where.Part*float64(count)-roundingSlack)
}
