package fleet

import (
	"slices"

	"github.com/weir-lb/weir/internal/core/topology"
)

// Snapshot is what the API says: the scenario's snapshot with the nodes that are up and the endpoints of the pods that have a node and
// are not gone. It is the same value until the API says something else, and equal for equal fleets. New endpoints carry
// no hints: whoever plans writes them.
func (f *Fleet) Snapshot() topology.Snapshot {
	if f.isStale {
		f.snapshot, f.isStale = topology.NewSnapshot(f.apiNodes(), []*topology.Service{f.apiService()}, f.sc.Snapshot.Costs), false
	}
	return f.snapshot
}

func (f *Fleet) apiNodes() []topology.Node {
	var nodes []topology.Node
	for i := range f.nodes {
		n := &f.nodes[i]
		if n.isBooting || n.isGone {
			continue
		}
		said := n.Node
		said.Ready = n.Ready && !f.isKnownLost(n.Zone)
		nodes = append(nodes, said)
	}
	return nodes
}

// apiService is the scenario's service with the endpoints of now. It shares no memory that sorting might write to.
func (f *Fleet) apiService() *topology.Service {
	svc := *f.service
	svc.Ports = slices.Clone(svc.Ports)
	svc.Demand = slices.Clone(svc.Demand)
	svc.Overflow.Drains = slices.Clone(svc.Overflow.Drains)
	svc.Endpoints = nil
	for id := range f.pods {
		if f.pods[id].Phase != Gone && f.hidden[id].isScheduled {
			svc.Endpoints = append(svc.Endpoints, f.apiEndpoint(id))
		}
	}
	return &svc
}

func (f *Fleet) apiEndpoint(id int) topology.Endpoint {
	pod, s := &f.pods[id], &f.hidden[id]
	e := s.endpoint
	e.Addr, e.Zone, e.Node, e.Cluster = pod.Addr, pod.Zone, pod.Node, pod.Cluster
	e.Ports = slices.Clone(e.Ports)
	e.Hints = topology.Hints{Zones: slices.Clone(e.Hints.Zones), Nodes: slices.Clone(e.Hints.Nodes)}
	if !s.isInitial {
		e.Conditions = conditionsOf(pod.Phase)
	}
	if s.loss.isKnown {
		e.Ready, e.Serving = topology.False, topology.False
	}
	return e
}

// conditionsOf gives the conditions of a pod's endpoint.
//
// Source: Kubernetes, EndpointSlices, "Conditions": serving is the pod's readiness; ready is that, and not terminating.
func conditionsOf(phase Phase) topology.Conditions {
	switch phase {
	case Ready:
		return topology.Conditions{Ready: topology.True, Serving: topology.True, Terminating: topology.False}
	case Terminating:
		return topology.Conditions{Ready: topology.False, Serving: topology.True, Terminating: topology.True}
	default:
		return topology.Conditions{Ready: topology.False, Serving: topology.False, Terminating: topology.False}
	}
}
