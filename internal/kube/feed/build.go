package feed

import (
	"net/netip"
	"reflect"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/convert"
)

// builder makes each state of the one before and of what changed. One goroutine at a time.
type builder struct {
	convert convert.Options
	costs   topology.Costs
	partial bool // only one node is watched: that another one is not known means nothing
	// hasClusters tells that services have endpoints of other clusters.
	hasClusters bool

	state        *State        // nil before the first
	zones        convert.Zones // of state's nodes
	nodeProblems []reason.Finding

	clusters  []Cluster
	addresses map[netip.Addr]bool // cluster IPs of all services: no endpoint of another cluster may have one
	areMoved  bool                // cluster IPs came or went since addresses were gathered
}

func newBuilder(o *Options) builder {
	return builder{convert: o.Convert, costs: o.Costs, partial: o.Node != "", hasClusters: o.Clusters, areMoved: true}
}

// next gives the state after c; false if it is the same as before.
func (b *builder) next(c changes) (*State, bool) {
	first := b.state == nil
	if first {
		b.state = &State{Snapshot: topology.Snapshot{Costs: b.costs}}
	}
	nodes, again := b.state.Snapshot.Nodes, []objects(nil)
	if c.hasNodes {
		nodes, again = b.survey(c.nodes)
	}
	if c.hasClusters {
		b.clusters = c.clusters
	}
	records, changed := b.records(b.state.Records, merge(c.services, again))
	if b.hasClusters && b.areMoved {
		b.gather(records)
		var isRebuilt bool
		records, isRebuilt = b.records(records, joinedObjects(records))
		changed = changed || isRebuilt
	}
	if !first && !c.hasNodes && !c.hasClusters && !changed {
		return nil, false
	}
	next := &State{Snapshot: topology.Snapshot{Nodes: nodes, Costs: b.costs, Clusters: known(b.clusters)}, Records: records}
	for _, r := range records {
		if r.Service != nil {
			next.Snapshot.Services = append(next.Snapshot.Services, r.Service)
		}
	}
	b.state = next
	return next, true
}

// survey takes new nodes, and gives the objects of those services whose endpoints they move.
func (b *builder) survey(converted []convertedNode) ([]topology.Node, []objects) {
	nodes := make([]topology.Node, 0, len(converted))
	b.nodeProblems = nil
	for i := range converted {
		nodes = append(nodes, converted[i].node)
		b.nodeProblems = append(b.nodeProblems, converted[i].problems...)
	}
	if b.partial {
		return nodes, nil
	}
	before := b.zones
	b.zones = convert.ZonesOf(nodes)
	isMoved := moved(before, b.zones)
	if isMoved == nil {
		return nodes, nil
	}
	var again []objects
	for _, r := range b.state.Records {
		if r.Object != nil && slices.ContainsFunc(r.Slices, func(s *discoveryv1.EndpointSlice) bool { return isOn(s, isMoved) }) {
			again = append(again, r.objects())
		}
	}
	return nodes, again
}

// moved gives what tells whether a node came, went or changed its zone; nil when none did. Knowing no node at all counts
// as having none that is missing, so that the step from or to that moves all.
func moved(before, now convert.Zones) func(node string) bool {
	if (len(before) == 0) != (len(now) == 0) {
		return func(string) bool { return true }
	}
	names := make(map[string]bool)
	for name, zone := range now {
		if z, ok := before[name]; !ok || z != zone {
			names[name] = true
		}
	}
	for name := range before {
		if _, ok := now[name]; !ok {
			names[name] = true
		}
	}
	if len(names) == 0 {
		return nil
	}
	return func(node string) bool { return names[node] }
}

// isOn tells whether an endpoint of a slice is on one of the nodes.
func isOn(s *discoveryv1.EndpointSlice, nodes func(string) bool) bool {
	return slices.ContainsFunc(s.Endpoints, func(e discoveryv1.Endpoint) bool { return e.NodeName != nil && nodes(*e.NodeName) })
}

// merge joins two lists that are sorted by name. What is in both is taken from the first, which is newer.
func merge(newer, older []objects) []objects {
	all := append(slices.Clip(newer), older...)
	slices.SortStableFunc(all, func(a, b objects) int { return a.name.Compare(b.name) })
	return slices.CompactFunc(all, func(a, b objects) bool { return a.name == b.name })
}

// records gives all records after some objects changed, and whether any is another than before.
func (b *builder) records(before []*Record, list []objects) (records []*Record, changed bool) {
	records = make([]*Record, 0, len(before)+len(list))
	for i := range list {
		o := &list[i]
		at, found := slices.BinarySearchFunc(before, o.name, func(r *Record, n topology.ServiceName) int { return r.Name.Compare(n) })
		records = append(records, before[:at]...)
		before = before[at:]
		var old *Record
		if found {
			old, before = before[0], before[1:]
		}
		now := b.record(o, old)
		changed = changed || now != old
		if now != nil {
			records = append(records, now)
		}
	}
	return append(records, before...), changed
}

// record makes the record of one service; nil when nothing of it is left. What is as before keeps its pointer, be it the
// whole record or the service in it.
func (b *builder) record(o *objects, before *Record) *Record {
	if o.service == nil && len(o.slices) == 0 {
		b.areMoved = b.areMoved || before != nil
		return nil
	}
	r := &Record{Name: o.name, Object: o.service, Slices: o.slices, Others: o.others}
	if o.service != nil {
		b.read(r, before)
	}
	b.areMoved = b.areMoved || before == nil || !slices.Equal(clusterIPs(before), clusterIPs(r))
	if before == nil {
		return r
	}
	if r.Service != nil && reflect.DeepEqual(before.Service, r.Service) {
		r.Service = before.Service
	}
	if isSame(before, r) {
		return before
	}
	return r
}

// read fills a record with what its objects mean.
func (b *builder) read(r, before *Record) {
	r.Asked = convert.AskedBy(r.Object, b.convert)
	r.Service, r.Problems = convert.Service(r.Object, b.convert)
	if r.Service == nil {
		return
	}
	r.Managed = b.convert.ManageAll || r.Asked != convert.AskedByNothing
	keepLastGood(r, before)
	endpoints, problems := convert.Slices(r.Slices, b.zones)
	if b.hasClusters {
		endpoints, problems = b.join(r, endpoints, problems)
	}
	r.Problems = append(r.Problems, problems...)
	r.Service.Endpoints = slices.Clip(endpoints)                                // it was grown by appending, and stays for long
	topology.NewSnapshot(nil, []*topology.Service{r.Service}, topology.Costs{}) // sorts all that is in it
}

// isSame tells whether two records of one service were made from the same objects and say the same.
func isSame(a, b *Record) bool {
	return a.Object == b.Object && a.Others.equal(&b.Others) && slices.Equal(a.Slices, b.Slices) && a.Service == b.Service &&
		a.Asked == b.Asked && a.Managed == b.Managed && reflect.DeepEqual(a.Problems, b.Problems)
}
