package feed

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/convert"
)

// State is a cluster at one instant, as planned for and as its objects stand. It is immutable, what it points at too.
type State struct {
	Snapshot topology.Snapshot
	// Records are sorted by name. A record whose service did not change is the same pointer as in the state before.
	Records []*Record
}

// Record is one service with the objects that it was made from. One value of it never changes.
type Record struct {
	Name topology.ServiceName
	// Object is the Service, trimmed; nil: there is none, and its slices were left behind.
	Object *corev1.Service
	// Slices are the EndpointSlices that name the service, trimmed, sorted by name, of all managers.
	Slices []*discoveryv1.EndpointSlice
	// Service is what the objects mean: an element of Snapshot.Services. Nil without an Object and for ExternalName.
	Service *topology.Service
	// Asked says where the service chose its mode.
	Asked convert.Asked
	// Managed tells whether weir writes this service's hints.
	Managed bool
	// Problems are what is wrong with the objects. Those that are Refused are settings for which Service has the last
	// good ones.
	Problems []reason.Finding
	// Others are the slices of other clusters.
	Others Others
}

// Record finds a record by name; nil when there is none.
func (s *State) Record(name topology.ServiceName) *Record {
	i, ok := slices.BinarySearchFunc(s.Records, name, func(r *Record, n topology.ServiceName) int { return r.Name.Compare(n) })
	if !ok {
		return nil
	}
	return s.Records[i]
}

// Refused lists the settings that are not followed.
func (r *Record) Refused() []reason.Finding {
	var refused []reason.Finding
	for _, p := range r.Problems {
		if p.IsRefused() {
			refused = append(refused, p)
		}
	}
	return refused
}
