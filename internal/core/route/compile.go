package route

import (
	"maps"
	"net/netip"
	"reflect"
	"slices"

	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// Options are what an operator decides for all tables.
type Options struct {
	Defaults
	Mappings []Mapping
	// OneNode tells that snapshots know no node but the client's, and Partial that they hold only some services: what
	// policies name and a snapshot does not have is not reported then.
	OneNode, Partial bool
	// NativeHints tells that the hints which endpoints carry decide, whatever plans want.
	NativeHints bool
	// Check tells what a data plane cannot do of an entry. Nil: it can do everything.
	Check func(*Entry) []reason.Reason
}

// Input is what a table is compiled from. What it points at must not change.
type Input struct {
	Snapshot *topology.Snapshot
	// Plans are those of Snapshot.Services, in the same order. Nil: the hints that the endpoints carry decide.
	Plans    []Plans
	Policies *policy.Set   // nil: none
	Client   policy.Client // a node; a pod, if its namespace or labels are given; or all in a zone, without a node
}

// Plans are a service's plans by topology.Family; nil where there is none.
type Plans [2]*plan.Plan

// Compile gives the table of one input.
func Compile(in Input, o Options) *Table { return NewCompiler(o).Compile(in) }

// Compiler compiles tables one after the other and compiles again only what may have changed: the services that are
// another pointer or have another plan, or all if something changed that they share, as policies, costs, or the regions of
// zones. Its tables are equal to those of Compile. One goroutine at a time.
type Compiler struct {
	options  Options
	mappings map[topology.ServiceName][]Mapping
	none     *policy.Set // stands for no policies

	in    Input   // of the last table
	units []*unit // in the order of its services
	table *Table  // nil: there is none yet
	stale bool    // all services are to be compiled again
	// areClustersNew tells that the followed clusters are others, or in another state, than for the last table.
	areClustersNew bool

	// What services share.
	regions   map[topology.Zone]string
	zones     map[topology.Zone]bool     // of the nodes
	wide      map[author]bool            // rules about many services
	pods      map[netip.Addr]*policy.Pod // of the node; nil without policies
	known     []knownClient              // on the node, by address
	conflicts map[socket]Key             // addresses that several ports ask for, and the first that does
	unknown   []Problem                  // what policies name and the cluster does not have
	silent    *policy.Settings           // what holds without policies; nil: not asked yet
}

// unit is what is compiled of one service.
type unit struct {
	service  *topology.Service
	plans    Plans
	isNative bool
	bindings []binding
	serving  []servingClient // nil without policies
	zones    []topology.Zone // of its endpoints, sorted, each once; nil without policies

	entries    []*Entry // sorted by key
	problems   []Problem
	isCompiled bool
	hasClasses bool // the known clients have a part in its entries
}

// binding is an address that a service port is to be served on.
type binding struct {
	address netip.AddrPort
	key     Key // of the base
}

// socket is an address and port of a protocol.
type socket struct {
	address  netip.AddrPort
	protocol topology.Protocol
}

func (b *binding) socket() socket { return socket{b.address, b.key.Protocol} }

// NewCompiler makes a compiler that has compiled nothing yet.
func NewCompiler(o Options) *Compiler {
	c := &Compiler{options: o, none: policy.NewSet(policy.Set{}), mappings: make(map[topology.ServiceName][]Mapping)}
	for _, m := range o.Mappings {
		c.mappings[m.Service] = append(c.mappings[m.Service], m)
	}
	return c
}

// Compile gives the table of an input. It takes time in proportion to what changed, and looks at each service once.
func (c *Compiler) Compile(in Input) *Table {
	c.take(in)
	changed := c.read()
	if changed.bindings && c.findConflicts() {
		c.stale = true
	}
	hasOtherClients := changed.serving && c.listClients()
	isChanged := c.stale || changed.names || c.areClustersNew
	for _, u := range c.units {
		if c.stale || !u.isCompiled || hasOtherClients && u.hasClasses {
			c.compile(u)
			isChanged = true
		}
	}
	if c.stale || changed.names {
		c.unknown = c.checkPolicies()
	}
	if isChanged {
		c.table = c.assemble()
	}
	return c.table
}

// take remembers an input and finds out whether something changed that all services share.
func (c *Compiler) take(in Input) {
	if in.Policies == nil {
		in.Policies = c.none
	}
	before, isFirst := c.in, c.table == nil
	c.in = in
	c.areClustersNew = isFirst || !slices.Equal(before.Snapshot.Clusters, in.Snapshot.Clusters)
	isSame := !isFirst && before.Policies == in.Policies && reflect.DeepEqual(before.Client, in.Client) &&
		reflect.DeepEqual(before.Snapshot.Costs, in.Snapshot.Costs)
	if isFirst || !slices.Equal(before.Snapshot.Nodes, in.Snapshot.Nodes) || c.areClustersNew {
		regions, zones := in.Snapshot.Regions(), make(map[topology.Zone]bool)
		for i := range in.Snapshot.Nodes {
			zones[in.Snapshot.Nodes[i].Zone] = true
		}
		isSame = isSame && maps.Equal(regions, c.regions) && maps.Equal(zones, c.zones)
		c.regions, c.zones = regions, zones
	}
	if c.stale = !isSame; c.stale {
		c.wide, c.pods, c.silent = wideRules(in.Policies), c.podClients(), nil
	}
}

// changes tells what changed of the services beside their own entries.
type changes struct {
	bindings bool
	serving  bool // clients that are endpoints
	names    bool // services, ports and zones
}

// note compares a service with what it was; nil: it is not there.
func (d *changes) note(before, now *unit) {
	if before == nil || now == nil {
		*d = changes{bindings: true, serving: true, names: true}
		return
	}
	d.bindings = d.bindings || !slices.Equal(before.bindings, now.bindings)
	d.serving = d.serving || !slices.Equal(before.serving, now.serving)
	d.names = d.names || !slices.Equal(before.zones, now.zones) || !slices.Equal(before.service.Ports, now.service.Ports)
}

// read makes the units those of the input: the ones before for services that did not change, unless all did.
func (c *Compiler) read() changes {
	services, before := c.in.Snapshot.Services, c.units
	c.units = make([]*unit, len(services))
	var d changes
	for i, svc := range services {
		for len(before) > 0 && before[0].service != svc && before[0].service.Compare(svc.ServiceName) < 0 {
			d.note(before[0], nil)
			before = before[1:]
		}
		var old *unit
		if len(before) > 0 && (before[0].service == svc || before[0].service.ServiceName == svc.ServiceName) {
			old, before = before[0], before[1:]
		}
		var plans Plans
		if c.in.Plans != nil {
			plans = c.in.Plans[i]
		}
		if !c.stale && old != nil && old.service == svc && old.plans == plans {
			c.units[i] = old
			continue
		}
		c.units[i] = c.newUnit(svc, plans)
		if old != nil {
			c.units[i].entries = old.entries
		}
		d.note(old, c.units[i])
	}
	if c.stale || len(before) > 0 {
		d.note(nil, nil)
	}
	return d
}

// newUnit makes the unit of a service, not compiled yet.
func (c *Compiler) newUnit(svc *topology.Service, plans Plans) *unit {
	u := &unit{service: svc, plans: plans, isNative: c.options.NativeHints, bindings: c.bindings(svc)}
	if len(c.in.Policies.Rules) == 0 {
		return u
	}
	for i := range svc.Endpoints {
		u.zones = append(u.zones, svc.Endpoints[i].Zone)
	}
	slices.Sort(u.zones)
	u.zones = slices.Compact(u.zones)
	u.serving = c.servingClients(svc)
	return u
}

// findConflicts finds the addresses that several ports ask for, and tells whether they are others than before.
func (c *Compiler) findConflicts() bool {
	before := c.conflicts
	first := make(map[socket]Key, len(c.units))
	c.conflicts = make(map[socket]Key)
	for _, u := range c.units {
		for _, binding := range u.bindings {
			if holder, ok := first[binding.socket()]; ok {
				c.conflicts[binding.socket()] = holder
				continue
			}
			first[binding.socket()] = binding.key
		}
	}
	return !maps.Equal(before, c.conflicts)
}

// assemble joins what the units have, with each problem once, however many ports, classes, endpoints or services have it.
func (c *Compiler) assemble() *Table {
	t := &Table{Client: c.in.Client, Entries: make([]*Entry, 0, len(c.units))}
	seen := make(map[string]bool)
	add := func(problems ...Problem) {
		for i := range problems {
			if id := problems[i].Identity(); !seen[id] {
				seen[id] = true
				t.Problems = append(t.Problems, problems[i])
			}
		}
	}
	for _, m := range c.options.Mappings {
		if c.in.Snapshot.Service(m.Service) == nil {
			add(Problem{m.Service.String(), reason.New(reason.MappedServiceAbsent, m.String())})
		}
	}
	for _, cluster := range c.in.Snapshot.Clusters {
		if cluster.Stale {
			add(Problem{Reason: reason.New(reason.ClusterStale, cluster.Name)})
		}
	}
	for _, u := range c.units {
		t.Entries = append(t.Entries, u.entries...)
		add(u.problems...)
	}
	add(c.unknown...)
	return t
}
