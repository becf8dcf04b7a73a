package control

import (
	"reflect"
	"sync"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/hints"
)

// awaited remembers which versions of slices are known to be past, until the feed shows newer ones. Without it each check
// of a slice between a write and its return through the watch would write again, and get a conflict. It is safe for
// concurrent use.
//
// Nothing has to be asked again for a slice that is awaited: its next version makes a new decision.
type awaited struct {
	mu       sync.Mutex
	services map[topology.ServiceName]map[types.UID]past
}

// past is a version of a slice that was replaced.
type past struct {
	version string
	// ops are what replaced it; nil: another writer did, in a way that is not known yet.
	ops []hints.Op
}

// add remembers that the slice's version is past because of ops, or of another writer if ops is nil.
func (a *awaited) add(name topology.ServiceName, s *discoveryv1.EndpointSlice, ops []hints.Op) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.services == nil {
		a.services = make(map[topology.ServiceName]map[types.UID]past)
	}
	if a.services[name] == nil {
		a.services[name] = make(map[types.UID]past)
	}
	a.services[name][s.UID] = past{version: s.ResourceVersion, ops: ops}
}

// filter keeps of a service's edits those that can be written now: whose slice is not past. It counts the past slices
// that the plan would have changed in another way than the write which is on its way back.
func (a *awaited) filter(name topology.ServiceName, list []*discoveryv1.EndpointSlice, edits []edit) (now []edit, behind int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	still := make(map[types.UID]past)
	for _, s := range list {
		if p, ok := a.services[name][s.UID]; ok && p.version == s.ResourceVersion {
			still[s.UID] = p
		}
	}
	if len(still) == 0 {
		delete(a.services, name)
		return edits, 0
	}
	a.services[name] = still
	wanted := make(map[types.UID][]hints.Op, len(edits))
	for _, e := range edits {
		wanted[e.slice.UID] = e.ops
		if _, isPast := still[e.slice.UID]; !isPast {
			now = append(now, e)
		}
	}
	for uid, p := range still {
		if !reflect.DeepEqual(p.ops, wanted[uid]) {
			behind++
		}
	}
	return now, behind
}

// forget drops what is remembered of a service that is gone.
func (a *awaited) forget(name topology.ServiceName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.services, name)
}
