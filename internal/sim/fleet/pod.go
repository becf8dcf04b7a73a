package fleet

import (
	"slices"
	"strconv"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/sim/scenario"
)

// adopt takes over an endpoint of the scenario, as its conditions say: a terminating one goes when Server.Drain is over, one
// that is not ready stays so, for what keeps it is not known.
func (f *Fleet) adopt(e *topology.Endpoint) {
	pod := Pod{ID: len(f.pods), Addr: e.Addr, Zone: e.Zone, Cluster: e.Cluster, Node: e.Node, Place: 1}
	for i := range f.pods {
		if f.pods[i].Zone == e.Zone && f.pods[i].Cluster == e.Cluster {
			pod.Place++
		}
	}
	s := state{endpoint: *e, isInitial: true, isScheduled: true, start: never, end: never, replaces: none, replacement: none}
	switch {
	case e.IsTerminating():
		pod.Phase = Terminating
		if e.Cluster == "" {
			s.end = f.sc.Server.Drain
		}
	case e.IsReady():
		pod.Phase = Ready
	}
	f.pods = append(f.pods, pod)
	f.hidden = append(f.hidden, s)
}

// create makes a pod; it starts when it is scheduled. The state says which pod it replaces and whether its zone matters.
func (f *Fleet) create(pod Pod, s state) int {
	template := f.template(pod.Zone, s.replaces)
	pod.ID, pod.Phase, pod.Since, pod.Cold = len(f.pods), Pending, f.now, true
	pod.Addr = f.addrs.take(topology.FamilyOf(template.Addr))
	s.endpoint = topology.Endpoint{Ports: template.Ports}
	if template.Pod != "" {
		s.endpoint.Pod = template.Pod + "-" + strconv.Itoa(pod.ID)
	}
	s.start, s.end, s.replacement = never, never, none
	f.pods = append(f.pods, pod)
	f.hidden = append(f.hidden, s)
	f.waiting = append(f.waiting, pod.ID)
	f.changed()
	return pod.ID
}

// template finds the endpoint of the scenario that a new one is like: that of the pod it replaces, or the first of its zone,
// or of the cluster.
func (f *Fleet) template(zone topology.Zone, replaces int) *topology.Endpoint {
	if replaces != none {
		if e := &f.hidden[replaces].endpoint; f.hidden[replaces].isInitial {
			return e
		}
		zone = f.pods[replaces].Zone
	}
	var found *topology.Endpoint
	for i := range f.service.Endpoints {
		switch e := &f.service.Endpoints[i]; {
		case e.Cluster != "":
		case e.Zone == zone:
			return e
		case found == nil:
			found = e
		}
	}
	if found == nil {
		found = &topology.Endpoint{Addr: firstAddr(topology.IPv4), Ports: portsOf(f.service)}
		if families := f.service.Families(); len(families) > 0 {
			found.Addr = firstAddr(families[0])
		}
	}
	return found
}

// portsOf makes the ports of a service's first endpoint: it answers where the service does.
func portsOf(svc *topology.Service) []topology.EndpointPort {
	ports := make([]topology.EndpointPort, 0, len(svc.Ports))
	for _, p := range svc.Ports {
		ports = append(ports, topology.EndpointPort{Name: p.Name, Protocol: p.Protocol, AppProtocol: p.AppProtocol, Port: p.Port})
	}
	return ports
}

// age makes pods ready whose start is over, and ends those that have drained. A pod of a lost node starts on, but
// is not seen to be ready before the node is back.
func (f *Fleet) age() {
	for id := range f.pods {
		pod, s := &f.pods[id], &f.hidden[id]
		switch {
		case pod.Phase == Pending && s.isScheduled && !s.loss.isLost && s.start <= f.now:
			pod.ReadyAt = f.now
			f.enter(id, Ready)
		case pod.Phase == Terminating && s.end <= f.now:
			f.bury(id)
		}
	}
}

func (f *Fleet) enter(id int, phase Phase) {
	f.pods[id].Phase, f.pods[id].Since = phase, f.now
	f.hidden[id].isInitial = false
	f.told()
}

// terminate asks a pod to go. One that was never ready has nothing to finish.
func (f *Fleet) terminate(id int) {
	s := &f.hidden[id]
	if s.replacement != none {
		f.hidden[s.replacement].replaces = none
		s.replacement = none
	}
	if s.replaces != none {
		f.hidden[s.replaces].replacement = none
		s.replaces = none
	}
	if f.pods[id].Phase == Pending || f.sc.Server.Drain <= 0 {
		f.bury(id)
		return
	}
	s.end = f.now + f.sc.Server.Drain
	f.enter(id, Terminating)
}

func (f *Fleet) bury(id int) {
	f.waiting = slices.DeleteFunc(f.waiting, func(waiting int) bool { return waiting == id })
	f.leaveNode(id)
	f.hidden[id].usage = usage{}
	f.enter(id, Gone)
}

// isSlot tells whether the pod is one of those that the Deployment is to have: it is of the own cluster, does not go, and
// is not there beside the one that it is to replace.
func (f *Fleet) isSlot(id int) bool {
	return f.isActive(id) && f.pods[id].Cluster == "" && f.hidden[id].replaces == none
}

func (f *Fleet) isActive(id int) bool {
	return f.pods[id].Phase == Pending || f.pods[id].Phase == Ready
}

// isIn tells whether the pod is in the zone, or will be in no other.
func (f *Fleet) isIn(id int, zone topology.Zone) bool {
	return f.pods[id].Zone == zone && (f.hidden[id].isScheduled || f.hidden[id].isPinned)
}

// slots counts the Deployment's pods.
func (f *Fleet) slots() int {
	count := 0
	for id := range f.pods {
		if f.isSlot(id) {
			count++
		}
	}
	return count
}

// slotsIn counts the Deployment's pods that are in a zone.
func (f *Fleet) slotsIn(zone topology.Zone) int {
	count := 0
	for id := range f.pods {
		if f.isSlot(id) && f.isIn(id, zone) {
			count++
		}
	}
	return count
}

// scale sets the number of pods of each zone that is meant.
func (f *Fleet) scale(where scenario.Where, count int) {
	if where.Cluster != "" {
		return
	}
	for i := range f.zones {
		zone := f.zones[i].name
		if where.Zone != "" && where.Zone != zone {
			continue
		}
		has := f.slotsIn(zone)
		for range count - has {
			f.create(Pod{Zone: zone, Place: f.freePlace(zone)}, state{isPinned: true, replaces: none})
		}
		f.remove(has-count, func(id int) bool { return f.isIn(id, zone) })
	}
}

// freePlace finds the lowest place of a zone that no pod has that stays.
func (f *Fleet) freePlace(zone topology.Zone) int {
	taken := make(map[int]bool)
	for id := range f.pods {
		if f.isActive(id) && f.pods[id].Cluster == "" && f.isIn(id, zone) {
			taken[f.pods[id].Place] = true
		}
	}
	place := 1
	for taken[place] {
		place++
	}
	return place
}

// remove terminates count of the Deployment's pods among those that may go: as a ReplicaSet, first those without a node,
// then those that start, then those that the API says are not ready; among equals one of the zone with most pods (of
// equal zones the last by name), the youngest first. A pod that is being replaced takes its replacement along.
//
// Source: Kubernetes, ReplicaSet, "Scaling a ReplicaSet". It looks at pods per node where this looks at pods per zone.
func (f *Fleet) remove(count int, mayGo func(id int) bool) {
	for range count {
		in := make(map[topology.Zone]int, len(f.zones))
		for i := range f.zones {
			in[f.zones[i].name] = f.slotsIn(f.zones[i].name)
		}
		victim := none
		for id := range f.pods {
			if f.isSlot(id) && mayGo(id) && (victim == none || f.goesBefore(id, victim, in)) {
				victim = id
			}
		}
		if victim == none {
			return
		}
		if replacement := f.hidden[victim].replacement; replacement != none {
			f.terminate(replacement)
		}
		f.terminate(victim)
	}
}

// goesBefore compares a pod with an older one; in says how many pods there are in each zone.
func (f *Fleet) goesBefore(id, older int, in map[topology.Zone]int) bool {
	if a, b := f.standing(id), f.standing(older); a != b {
		return a < b
	}
	a, b := f.pods[id].Zone, f.pods[older].Zone
	return in[a] > in[b] || in[a] == in[b] && a >= b
}

// standing ranks pods by how much is lost with them.
func (f *Fleet) standing(id int) int {
	switch s := &f.hidden[id]; {
	case !s.isScheduled:
		return 0
	case f.pods[id].Phase == Pending:
		return 1
	case s.loss.isKnown:
		return 2
	default:
		return 3
	}
}
