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
	Imports  []*ServiceImport
	Pods     []*corev1.Pod
}

// Cluster converts a whole cluster, in the order of the input. A Service has the endpoints of its EndpointSlices; one
// that has a selector and no slice at all has those of its pods. A ServiceImport is a service named by topology.ImportedName, with the
// endpoints of all clusters; a global Service has those of other clusters beside its own.
func Cluster(objects Objects, o Options) ([]topology.Node, []*topology.Service, []reason.Finding) {
	var found []reason.Finding
	var nodes []topology.Node
	for _, n := range objects.Nodes {
		node, problems := Node(n)
		nodes = append(nodes, node)
		found = append(found, problems...)
	}
	zones := ZonesOf(nodes)
	bySlice, byImport, problems := slicesByService(objects)
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
		if IsGlobal(s) {
			imported, problems := Slices(byImport[svc.ServiceName], zones)
			svc.Endpoints, found = Joined(svc.Endpoints, imported), append(found, problems...)
		}
		services = append(services, svc)
	}
	for _, i := range objects.Imports {
		svc, problems := Service(i.AsService(), o)
		found = append(found, problems...)
		name := topology.ServiceName{Namespace: svc.Namespace, Name: i.Name}
		svc.Endpoints, problems = Imported(byImport[name], bySlice[name], zones)
		found = append(found, problems...)
		services = append(services, svc)
	}
	return nodes, services, found
}

// grouped are slices by the name of what they belong to.
type grouped map[topology.ServiceName][]*discoveryv1.EndpointSlice

// slicesByService groups the slices by the Service and by the ServiceImport that they name, and reports those that name none
// that is there.
func slicesByService(objects Objects) (byService, byImport grouped, found []reason.Finding) {
	services, imports := make(map[topology.ServiceName]bool), make(map[topology.ServiceName]bool)
	for _, s := range objects.Services {
		name := topology.ServiceName{Namespace: namespace(s.Namespace), Name: s.Name}
		services[name], imports[name] = true, IsGlobal(s)
	}
	for _, i := range objects.Imports {
		imports[topology.ServiceName{Namespace: namespace(i.Namespace), Name: i.Name}] = true
	}
	byService, byImport = make(grouped), make(grouped)
	for _, s := range objects.Slices {
		p := problems{object: sliceRef(s)}
		name := sliceService(s)
		of, isImported := ImportOf(s)
		if services[name] {
			byService[name] = append(byService[name], s)
		}
		if isImported && imports[of] {
			byImport[of] = append(byImport[of], s)
		}
		switch {
		case services[name], isImported && imports[of]:
		case isImported:
			p.add(at("metadata.labels", api.LabelImportedName), "there is no ServiceImport %s: left out", of)
		case name.Name == "":
			p.add("metadata.labels", "the slice names no Service, its label %s is missing: left out", api.LabelServiceName)
		default:
			p.add(at("metadata.labels", api.LabelServiceName), "there is no Service %s: left out", name)
		}
		found = append(found, p.list...)
	}
	return byService, byImport, found
}
