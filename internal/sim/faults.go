package sim

import (
	"math"
	"time"

	"github.com/weir-lb/weir/internal/sim/fleet"
	"github.com/weir-lb/weir/internal/sim/scenario"
)

// play lets a step of the scenario happen.
func (s *Simulation) play(number int) {
	st := &s.sc.Steps[number]
	switch st.Verb {
	case scenario.Rate: // demand has it
	case scenario.Lose, scenario.Return, scenario.Rollout, scenario.Scale:
		s.cluster.Command(s.now, *st)
		s.follow()
	case scenario.Drain:
		s.drain(number)
	case scenario.Slow, scenario.Delay, scenario.Fail, scenario.Hang, scenario.Refuse, scenario.Heal:
		for id := range s.servers {
			if s.concerns(&s.servers[id], &st.Where) {
				s.applyFault(id, st)
			}
		}
	}
}

// concerns tells whether the step is about this endpoint, which is there.
func (s *Simulation) concerns(v *server, w *scenario.Where) bool {
	if v.pod.Phase == fleet.Gone {
		return false
	}
	return w.Has(v.pod.Zone, v.pod.Cluster, v.pod.Place, s.places(v))
}

// places gives the number of places in the endpoint's zone.
func (s *Simulation) places(v *server) int {
	n := 0
	for i := range s.servers {
		o := &s.servers[i].pod
		if o.Phase != fleet.Gone && o.Zone == v.pod.Zone && o.Cluster == v.pod.Cluster {
			n = max(n, o.Place)
		}
	}
	return n
}

// applyFault lets a fault begin or end at an endpoint.
func (s *Simulation) applyFault(id int, st *scenario.Step) {
	v := &s.servers[id]
	v.fault.Apply(st)
	if st.Verb == scenario.Refuse {
		s.reset(id)
	}
	v.grade(&s.sc.Server)
	s.examine(id)
}

// drain lets clients that follow drains hear of one, as late as of anything else.
func (s *Simulation) drain(number int) {
	if !s.options.Strategy.Drains {
		return
	}
	d := &s.sc.Discovery
	for i := range s.clients {
		at := s.now + s.clients[i].delayed(d.Delay, d.Jitter)
		s.agenda.add(at, evDrain, uint32(i), uint32(number)) //nolint:gosec // indexes.
	}
}

// scheduleFleet makes the event of the fleet's next step, in place of the one before.
func (s *Simulation) scheduleFleet() {
	s.fleetEvent++
	if at := s.cluster.Next(); at <= s.sc.Length {
		s.agenda.add(max(at, s.now), evFleet, 0, s.fleetEvent)
	}
}

// stepFleet lets the fleet step.
func (s *Simulation) stepFleet() {
	elapsed := (s.now - s.stepped).Seconds()
	s.cluster.Step(s.now, func(id int) float64 {
		if id >= len(s.servers) || elapsed <= 0 {
			return 0
		}
		v := &s.servers[id]
		s.use(v)
		return (v.used - v.counted) / elapsed / float64(s.sc.Server.Workers)
	})
	s.stepped = s.now
	for i := range s.servers {
		s.use(&s.servers[i])
		s.servers[i].counted = s.servers[i].used
	}
	s.follow()
}

// follow takes over what has changed in the fleet.
func (s *Simulation) follow() {
	s.sync()
	if s.observe() {
		s.announce()
	}
	s.scheduleFleet()
}

// sync makes the servers those of the fleet's pods.
func (s *Simulation) sync() {
	pods := s.cluster.Pods()
	for id := range pods {
		if id == len(s.servers) {
			s.servers = append(s.servers, server{speed: 1, pod: fleet.Pod{Phase: pods[id].Phase}})
			s.byAddr[pods[id].Addr] = int32(id) //nolint:gosec // an index.
			s.place(id, &pods[id])
			s.inherit(id)
		}
		s.change(id, &pods[id])
	}
}

// change takes over what has changed of a pod.
func (s *Simulation) change(id int, pod *fleet.Pod) {
	v := &s.servers[id]
	before := v.pod
	if before.Zone != pod.Zone || before.Place != pod.Place {
		s.place(id, pod)
	}
	v.pod = *pod
	if before.Zone != pod.Zone {
		s.inherit(id) // it waited for a node of any zone
	}
	v.lost = s.cluster.Lost(id)
	if before.Phase != fleet.Gone && pod.Phase == fleet.Gone {
		s.reset(id)
	}
	v.grade(&s.sc.Server)
	s.examine(id)
}

// place puts a server where its pod is.
func (s *Simulation) place(id int, pod *fleet.Pod) {
	v := &s.servers[id]
	v.pod = *pod
	v.paths = make([]path, len(s.zones))
	for z := range s.zones {
		switch {
		case pod.Cluster != "":
			v.paths[z] = acrossClusters
		case pod.Zone != s.zones[z].Zone || pod.Zone == "":
			v.paths[z] = acrossZones
		}
	}
	v.speed = 1
	if len(s.sc.Server.Speeds) > 0 { // speeds count the places of all endpoints
		v.speed = s.sc.Server.Speed(pod.Zone, pod.Cluster, pod.Place, max(s.places(v), pod.Place))
	}
}

// inherit lets the faults that whole zones have also meet a pod that comes later. Those of single endpoints went with
// them.
func (s *Simulation) inherit(id int) {
	for i := range s.sc.Steps {
		st := &s.sc.Steps[i]
		if st.At > s.now || st.At == s.now && s.now == 0 {
			break
		}
		if st.Where.IsWhole() && st.Verb != scenario.Rate && st.Verb != scenario.Drain &&
			s.concerns(&s.servers[id], &st.Where) {
			s.applyFault(id, st)
		}
	}
}

// second is the end of a second of the run.
func (s *Simulation) second() {
	ready := 0
	length := int(s.now / time.Second)
	under := s.recorder.covers(s.now)
	for id := range s.servers {
		v := &s.servers[id]
		for len(v.line) < length-1 {
			v.line = append(v.line, 0)
		}
		s.use(v)
		v.utilisation, v.usedBefore = (v.used-v.usedBefore)/float64(s.sc.Server.Workers), v.used
		load := v.arrived / float64(s.sc.Server.Workers)
		v.line = append(v.line, float32(load))
		v.arrived = 0
		if v.pod.Phase == fleet.Ready && !v.lost {
			ready++
		}
		if under && v.serves() {
			v.peak = math.Max(v.peak, load)
			v.sum += load
			v.seconds++
		}
	}
	s.recorder.second(s.now, ready)
}

// serves tells whether requests that arrive are answered, as far as the pod's life is concerned.
func (v *server) serves() bool {
	return !v.lost && (v.pod.Phase == fleet.Ready || v.pod.Phase == fleet.Terminating)
}
