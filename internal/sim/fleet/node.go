package fleet

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/weir-lb/weir/internal/core/topology"
)

// node is a machine that pods may be on.
type node struct {
	topology.Node
	isBooting bool
	isGone    bool
	up        time.Duration // when it has booted
	pods      int           // that are on it, terminating ones included
	isOurs    bool          // it has had pods of the service, or was made for them: it goes when it is empty for long
	empty     time.Duration // since when it has no pod
}

// isWorker tells whether the node takes pods at all.
func (n *node) isWorker() bool { return !n.ControlPlane && !n.isGone }

// zonesOf lists the zones of a snapshot's workers and own endpoints.
func zonesOf(snapshot *topology.Snapshot) []zone {
	var names []topology.Zone
	for i := range snapshot.Nodes {
		if !snapshot.Nodes[i].ControlPlane {
			names = append(names, snapshot.Nodes[i].Zone)
		}
	}
	for i := range snapshot.Services[0].Endpoints {
		if e := &snapshot.Services[0].Endpoints[i]; e.Cluster == "" {
			names = append(names, e.Zone)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	zones := make([]zone, 0, len(names))
	for _, name := range names {
		zones = append(zones, zone{name: name})
	}
	return zones
}

func nodesOf(snapshot *topology.Snapshot) []node {
	nodes := make([]node, 0, len(snapshot.Nodes))
	for _, n := range snapshot.Nodes {
		nodes = append(nodes, node{Node: n})
	}
	return nodes
}

// placeInitial puts the scenario's pods on the nodes that they name. With node pools each pod needs one: those that name none
// get the first of their zone that has room, and where there is no room, the one with the fewest pods.
func (f *Fleet) placeInitial() {
	for id := range f.pods {
		f.joinNode(id)
	}
	if f.sc.NodePools == nil {
		return
	}
	for id := range f.pods {
		pod := &f.pods[id]
		if pod.Cluster != "" || pod.Node != "" {
			continue
		}
		n, ok := f.roomIn(pod.Zone)
		if !ok {
			n, ok = f.emptiest(pod.Zone)
		}
		if ok {
			pod.Node = f.nodes[n].Name
			f.joinNode(id)
		}
	}
}

// nodeOf finds the node that a pod is on.
func (f *Fleet) nodeOf(id int) *node {
	if pod := &f.pods[id]; pod.Cluster == "" && pod.Node != "" {
		for i := range f.nodes {
			if f.nodes[i].Name == pod.Node && !f.nodes[i].isGone {
				return &f.nodes[i]
			}
		}
	}
	return nil
}

func (f *Fleet) joinNode(id int) {
	if n := f.nodeOf(id); n != nil {
		n.pods++
		n.isOurs = true
	}
}

func (f *Fleet) leaveNode(id int) {
	if n := f.nodeOf(id); n != nil && f.hidden[id].isScheduled {
		n.pods--
		if n.pods == 0 {
			n.empty = f.now
		}
	}
}

// takes tells whether the API would put a pod on the node.
func (f *Fleet) takes(n *node) bool {
	return n.isWorker() && !n.isBooting && n.Ready && !f.isKnownLost(n.Zone)
}

// roomIn finds the first node of a zone that has room for a pod.
func (f *Fleet) roomIn(zone topology.Zone) (int, bool) {
	for i := range f.nodes {
		if n := &f.nodes[i]; n.Zone == zone && f.takes(n) && n.pods < f.podsPerNode() {
			return i, true
		}
	}
	return 0, false
}

// emptiest finds the node of a zone with the fewest pods, the first of equal ones.
func (f *Fleet) emptiest(zone topology.Zone) (int, bool) {
	best := none
	for i := range f.nodes {
		if n := &f.nodes[i]; n.Zone == zone && f.takes(n) && (best == none || n.pods < f.nodes[best].pods) {
			best = i
		}
	}
	return best, best != none
}

func (f *Fleet) podsPerNode() int { return max(f.sc.NodePools.PodsPerNode, 1) }

// schedule gives the waiting pods nodes where there is room, oldest first, and asks for nodes for the others.
func (f *Fleet) schedule() {
	if len(f.waiting) == 0 {
		return
	}
	var still []int
	for _, id := range f.waiting {
		if !f.bind(id) {
			still = append(still, id)
		}
	}
	f.waiting = still
	f.request()
}

// bind schedules one pod: in its own zone if it is pinned to one, otherwise where the fewest pods are among the zones with
// room (ties by name), as a topologySpreadConstraint with maxSkew 1 and ScheduleAnyway prefers.
//
// Source: Kubernetes, Pod Topology Spread Constraints. With DoNotSchedule a pod would wait for the right zone.
func (f *Fleet) bind(id int) bool {
	zone, node, ok := f.placement(id)
	if !ok {
		return false
	}
	pod, s := &f.pods[id], &f.hidden[id]
	if !s.isPinned && pod.Place == 0 {
		pod.Place = f.freePlace(zone)
	}
	pod.Zone, pod.Node = zone, node
	s.isScheduled, s.start = true, f.now+f.sc.Server.Start
	if z := f.zoneNamed(zone); z != nil {
		s.loss = z.loss // a node that is lost and not known to be takes the pod, which never starts
	}
	f.joinNode(id)
	f.told()
	return true
}

// placement finds the zone and the node for a pod.
func (f *Fleet) placement(id int) (topology.Zone, string, bool) {
	var zone topology.Zone
	var name string
	best := none
	for i := range f.zones {
		z := f.zones[i].name
		if !f.mayBeIn(id, z) || f.zones[i].loss.isKnown {
			continue
		}
		node, ok := f.nodeFor(id, z)
		if !ok {
			continue
		}
		if has := f.slotsIn(z); best == none || has < best {
			zone, name, best = z, node, has
		}
	}
	return zone, name, best != none
}

// mayBeIn tells whether a waiting pod may be in the zone: its own, if it is pinned to one, or else any; the one that has no
// name only if there is no other.
func (f *Fleet) mayBeIn(id int, zone topology.Zone) bool {
	if f.hidden[id].isPinned {
		return zone == f.pods[id].Zone
	}
	return zone != "" || len(f.zones) == 1
}

// nodeFor finds the node of a zone for a pod. Without node pools there is always room: on the node of the pod that it
// replaces, or on the emptiest of the zone; and where the scenario's endpoints name no nodes, new ones do not.
func (f *Fleet) nodeFor(id int, zone topology.Zone) (string, bool) {
	if f.sc.NodePools != nil {
		n, ok := f.roomIn(zone)
		if !ok {
			return "", false
		}
		return f.nodes[n].Name, true
	}
	if old := f.hidden[id].replaces; old != none {
		return f.pods[old].Node, true
	}
	n, ok := f.emptiest(zone)
	if !ok || !f.namesNodes() {
		return "", true
	}
	return f.nodes[n].Name, true
}

// namesNodes tells whether any endpoint of the own cluster in the scenario says on which node it is.
func (f *Fleet) namesNodes() bool {
	return slices.ContainsFunc(f.service.Endpoints, func(e topology.Endpoint) bool { return e.Cluster == "" && e.Node != "" })
}

// request asks for nodes until each waiting pod will have room, or no zone may grow. Pods take the room of nodes that are
// that are starting first, as the cluster autoscaler, which simulates the scheduler, has them.
func (f *Fleet) request() {
	if f.sc.NodePools == nil {
		return
	}
	room := make([]int, len(f.zones)) // on nodes that boot
	for i := range f.nodes {
		if n := &f.nodes[i]; n.isBooting && !f.isKnownLost(n.Zone) {
			room[f.zoneIndex(n.Zone)] += f.podsPerNode()
		}
	}
	will := make([]int, len(f.zones)) // take so many of those that wait
	for _, id := range f.waiting {
		z := f.fewest(id, will, func(z int) bool { return room[z] > 0 })
		if z == none {
			if z = f.fewest(id, will, f.mayGrow); z == none {
				continue
			}
			f.order(z)
			room[z] += f.podsPerNode()
		}
		room[z]--
		will[z]++
	}
}

// fewest finds the zone with the fewest pods, those that it will take included, among the zones that will do for the pod;
// the first of equal ones.
func (f *Fleet) fewest(id int, will []int, willDo func(z int) bool) int {
	best, least := none, 0
	for z := range f.zones {
		if !f.mayBeIn(id, f.zones[z].name) || !willDo(z) {
			continue
		}
		if has := f.slotsIn(f.zones[z].name) + will[z]; best == none || has < least {
			best, least = z, has
		}
	}
	return best
}

func (f *Fleet) zoneIndex(name topology.Zone) int {
	return slices.IndexFunc(f.zones, func(z zone) bool { return z.name == name })
}

// mayGrow tells whether a node may be added to a zone.
func (f *Fleet) mayGrow(z int) bool {
	return !f.zones[z].loss.isKnown && f.workers(f.zones[z].name) < f.sc.NodePools.Max
}

// workers counts the nodes of a zone that take pods, or will.
func (f *Fleet) workers(zone topology.Zone) int {
	count := 0
	for i := range f.nodes {
		if f.nodes[i].Zone == zone && f.nodes[i].isWorker() {
			count++
		}
	}
	return count
}

// order asks for a node. It is like the first worker of its zone, or of the scenario when the zone has none.
func (f *Fleet) order(z int) {
	n := node{isBooting: true, isOurs: true, up: f.now + f.sc.NodePools.Boot}
	n.Zone, n.Ready = f.zones[z].name, true
	for i := range f.sc.Snapshot.Nodes {
		like := &f.sc.Snapshot.Nodes[i]
		if like.ControlPlane || n.CPU != 0 && like.Zone != n.Zone {
			continue
		}
		n.CPU, n.Region = like.CPU, like.Region
		if like.Zone == n.Zone {
			break
		}
		n.Region = ""
	}
	for ordinal := 1; n.Name == "" || f.isNodeName(n.Name); ordinal++ {
		n.Name = cmp.Or(string(n.Zone), "node") + "-" + strconv.Itoa(ordinal)
	}
	f.nodes = append(f.nodes, n)
	f.changed()
}

// isNodeName tells whether a node has, or had, the name.
func (f *Fleet) isNodeName(name string) bool {
	return slices.ContainsFunc(f.nodes, func(n node) bool { return n.Name == name })
}

// boot brings nodes up whose time has come. In a lost zone none comes.
func (f *Fleet) boot() {
	for i := range f.nodes {
		if n := &f.nodes[i]; f.bootsAt(n) <= f.now {
			n.isBooting, n.empty = false, f.now
			f.told()
		}
	}
}

func (f *Fleet) bootsAt(n *node) time.Duration {
	if !n.isBooting {
		return never
	}
	if z := f.zoneNamed(n.Zone); z != nil && z.loss.isLost {
		return never
	}
	return n.up
}

// retire lets nodes go that have been empty for long. The last of a zone stays, for others live there, too, and so do the
// scenario's that never had a pod of the service.
func (f *Fleet) retire() {
	for i := range f.nodes {
		if n := &f.nodes[i]; f.retiresAt(n) <= f.now {
			n.isGone = true
			f.told()
		}
	}
}

func (f *Fleet) retiresAt(n *node) time.Duration {
	if f.sc.NodePools == nil || f.sc.NodePools.Idle <= 0 || !n.isOurs || !n.isWorker() || n.isBooting || n.pods > 0 {
		return never
	}
	if z := f.zoneNamed(n.Zone); z != nil && z.loss.isLost || f.upWorkers(n.Zone) <= 1 {
		return never
	}
	return n.empty + f.sc.NodePools.Idle
}

// upWorkers counts the nodes of a zone that have booted and take pods.
func (f *Fleet) upWorkers(zone topology.Zone) int {
	count := 0
	for i := range f.nodes {
		if n := &f.nodes[i]; n.Zone == zone && n.isWorker() && !n.isBooting {
			count++
		}
	}
	return count
}

// nextNode is when a node comes or goes.
func (f *Fleet) nextNode() time.Duration {
	next := never
	for i := range f.nodes {
		next = min(next, f.bootsAt(&f.nodes[i]), f.retiresAt(&f.nodes[i]))
	}
	return next
}
