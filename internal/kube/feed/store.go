package feed

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/convert"
)

// slicesOf are EndpointSlices by their service or import, and by their own name.
type slicesOf map[topology.ServiceName]map[string]*discoveryv1.EndpointSlice

// store holds the objects as the informers last reported them, and what changed since that was last taken. The objects are
// the informers' own and never written to. It is safe for concurrent use.
type store struct {
	changed chan struct{} // has a value when there is something to take

	mu         sync.Mutex
	services   map[topology.ServiceName]*corev1.Service
	slices     map[objectName]*discoveryv1.EndpointSlice
	owned      slicesOf // the slices again, by service and name
	nodes      map[string]convertedNode
	dirty      map[topology.ServiceName]bool
	dirtyNodes bool

	// Of other clusters; empty unless Options.Clusters.
	hasClusters   bool
	imports       map[topology.ServiceName]*corev1.Service // by topology.ImportedName
	imported      slicesOf                                 // slices by the name of their import
	clusters      []Cluster
	dirtyClusters bool
}

// objectName identifies an object of one kind.
type objectName struct{ namespace, name string }

// convertedNode is a node with what is wrong with it. The node's object is not kept: heartbeats replace it all the time,
// and hardly ever change what is read of it.
type convertedNode struct {
	node     topology.Node
	problems []reason.Finding
}

// changes are what changed since the last time, with the objects as they are now.
type changes struct {
	services []objects // sorted by name
	nodes    []convertedNode
	hasNodes bool // nodes are new; else there is no difference
	clusters []Cluster
	// hasClusters tells that clusters are new, or in another state.
	hasClusters bool
}

// objects are what a Record is made from.
type objects struct {
	name    topology.ServiceName
	service *corev1.Service
	slices  []*discoveryv1.EndpointSlice // sorted by name
	others  Others
}

func newStore() *store {
	return &store{
		changed:    make(chan struct{}, 1),
		services:   make(map[topology.ServiceName]*corev1.Service),
		slices:     make(map[objectName]*discoveryv1.EndpointSlice),
		owned:      make(slicesOf),
		nodes:      make(map[string]convertedNode),
		dirty:      make(map[topology.ServiceName]bool),
		imports:    make(map[topology.ServiceName]*corev1.Service),
		imported:   make(slicesOf),
		dirtyNodes: true, // so that the first state has nodes, be it none
	}
}

// signal says that there is something to take.
func (s *store) signal() {
	select {
	case s.changed <- struct{}{}:
	default: // it was said already
	}
}

func (s *store) setNode(n *corev1.Node) {
	node, problems := convert.Node(n)
	now := convertedNode{node, problems}
	s.mu.Lock()
	defer s.mu.Unlock()
	if before, ok := s.nodes[n.Name]; ok && reflect.DeepEqual(before, now) {
		return
	}
	s.nodes[n.Name] = now
	s.dirtyNodes = true
	s.signal()
}

func (s *store) dropNode(n *corev1.Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.nodes, n.Name)
	s.dirtyNodes = true
	s.signal()
}

func (s *store) setService(svc *corev1.Service) {
	name := topology.ServiceName{Namespace: svc.Namespace, Name: svc.Name}
	s.mu.Lock()
	defer s.mu.Unlock()
	if before := s.services[name]; before != nil && isRepeated(before.ResourceVersion, svc.ResourceVersion) {
		return
	}
	s.services[name] = svc
	s.touchLocked(name)
}

func (s *store) dropService(svc *corev1.Service) {
	name := topology.ServiceName{Namespace: svc.Namespace, Name: svc.Name}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.services, name)
	s.touchLocked(name)
}

func (s *store) setSlice(slice *discoveryv1.EndpointSlice) {
	key := objectName{slice.Namespace, slice.Name}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.slices[key]
	if before != nil && isRepeated(before.ResourceVersion, slice.ResourceVersion) {
		return
	}
	if before != nil {
		s.listLocked(before, remove)
	}
	s.slices[key] = slice
	s.listLocked(slice, put)
}

// put adds a slice to those of a name.
func put(to slicesOf, name topology.ServiceName, slice *discoveryv1.EndpointSlice) {
	if to[name] == nil {
		to[name] = make(map[string]*discoveryv1.EndpointSlice)
	}
	to[name][slice.Name] = slice
}

// remove takes a slice from those of a name.
func remove(from slicesOf, name topology.ServiceName, slice *discoveryv1.EndpointSlice) {
	delete(from[name], slice.Name)
	if len(from[name]) == 0 {
		delete(from, name)
	}
}

func (s *store) dropSlice(slice *discoveryv1.EndpointSlice) {
	key := objectName{slice.Namespace, slice.Name}
	s.mu.Lock()
	defer s.mu.Unlock()
	if before := s.slices[key]; before != nil {
		s.listLocked(before, remove)
		delete(s.slices, key)
	}
}

// listLocked changes the slices of the service and of the import that a slice names.
func (s *store) listLocked(slice *discoveryv1.EndpointSlice, change func(slicesOf, topology.ServiceName, *discoveryv1.EndpointSlice)) {
	if owner, ok := ownerOf(slice); ok {
		change(s.owned, owner, slice)
		s.touchLocked(owner)
		s.touchImportLocked(owner)
	}
	if of, ok := convert.ImportOf(slice); ok && s.hasClusters {
		change(s.imported, of, slice)
		s.touchLocked(of)
		s.touchImportLocked(of)
	}
}

func (s *store) touchLocked(name topology.ServiceName) {
	s.dirty[name] = true
	s.signal()
}

// take gives what changed and forgets that it did.
func (s *store) take() changes {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := changes{hasNodes: s.dirtyNodes, clusters: s.clusters, hasClusters: s.dirtyClusters}
	for name := range s.dirty {
		c.services = append(c.services, s.objectsLocked(name))
	}
	slices.SortFunc(c.services, func(a, b objects) int { return a.name.Compare(b.name) })
	if s.dirtyNodes {
		c.nodes = slices.SortedFunc(maps.Values(s.nodes), func(a, b convertedNode) int {
			return strings.Compare(a.node.Name, b.node.Name)
		})
	}
	s.dirty, s.dirtyNodes, s.dirtyClusters = make(map[topology.ServiceName]bool), false, false
	return c
}

func sortedSlices(byName map[string]*discoveryv1.EndpointSlice) []*discoveryv1.EndpointSlice {
	return slices.SortedFunc(maps.Values(byName), func(a, b *discoveryv1.EndpointSlice) int {
		return cmp.Compare(a.Name, b.Name)
	})
}

// ownerOf names the Service that a slice belongs to; false when it does not say.
func ownerOf(slice *discoveryv1.EndpointSlice) (topology.ServiceName, bool) {
	name := slice.Labels[api.LabelServiceName]
	return topology.ServiceName{Namespace: slice.Namespace, Name: name}, name != ""
}

// isRepeated tells whether an object is reported again, as by a resync.
func isRepeated(before, now string) bool { return before == now && now != "" }
