package convert

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// Objects are the Kubernetes objects of one instant, each name once.
type Objects struct {
	Nodes    []*corev1.Node
	Services []*corev1.Service
	Slices   []*discoveryv1.EndpointSlice
	Pods     []*corev1.Pod
}

// Cluster converts a whole cluster, in the order of the input. A Service has the endpoints of its EndpointSlices; one
// that has a selector and no slice at all has those of its pods.
func Cluster(objects Objects, o Options) ([]topology.Node, []*topology.Service, []reason.Finding) {
	var found []reason.Finding
	var nodes []topology.Node
	for _, n := range objects.Nodes {
		node, problems := Node(n)
		nodes = append(nodes, node)
		found = append(found, problems...)
	}
	zones := ZonesOf(nodes)
	bySlice, problems := slicesByService(objects)
	found = append(found, problems...)
	var services []*topology.Service
	for _, s := range objects.Services {
		svc, problems := Service(s, o)
		found = append(found, problems...)
		if svc == nil {
			continue
		}
		if list, ok := bySlice[svc.ServiceName]; ok {
			svc.Endpoints, problems = Slices(list, zones)
		} else {
			svc.Endpoints, problems = Pods(s, objects.Pods, zones)
		}
		found = append(found, problems...)
		services = append(services, svc)
	}
	return nodes, services, found
}

// slicesByService groups the slices by the Service they name, and reports those that name none that is there.
func slicesByService(objects Objects) (map[topology.ServiceName][]*discoveryv1.EndpointSlice, []reason.Finding) {
	known := make(map[topology.ServiceName]bool, len(objects.Services))
	for _, s := range objects.Services {
		known[topology.ServiceName{Namespace: namespace(s.Namespace), Name: s.Name}] = true
	}
	grouped := make(map[topology.ServiceName][]*discoveryv1.EndpointSlice)
	var found []reason.Finding
	for _, s := range objects.Slices {
		p := problems{object: sliceRef(s)}
		name := sliceService(s)
		switch {
		case name.Name == "":
			p.add("metadata.labels", "the slice names no Service, its label %s is missing: left out", api.LabelServiceName)
		case !known[name]:
			p.add(at("metadata.labels", api.LabelServiceName), "there is no Service %s: left out", name)
		default:
			grouped[name] = append(grouped[name], s)
		}
		found = append(found, p.list...)
	}
	return grouped, found
}
