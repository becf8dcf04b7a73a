package agent

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// world is what the node should serve, as a value: nothing in it is written to once it is made.
type world struct {
	client   plan.Client
	survey   plan.Survey
	services []plannedService // sorted by name and family
	policies *policy.Set
	pools    []wantedPool // sorted by key
	problems []Problem    // in the order found
}

// plannedService is a service in one family with its plan.
type plannedService struct {
	service *topology.Service
	plan    plan.Plan
}

// poolKey identifies a pool: a service port's endpoints of one family, as clients of one zone and class see them.
type poolKey struct {
	service topology.ServiceName
	port    uint16
	family  topology.Family
	client  topology.Zone
	class   string // empty: everybody that no policy tells apart
}

// base is the key of the pool whose addresses the pool of a class answers on, too.
func (k poolKey) base() poolKey {
	k.class = ""
	return k
}

func (k poolKey) compare(o poolKey) int {
	return cmp.Or(
		k.service.Compare(o.service),
		cmp.Compare(k.port, o.port),
		cmp.Compare(k.family, o.family),
		cmp.Compare(k.client, o.client),
		cmp.Compare(k.class, o.class),
	)
}

// wantedPool is a pool that should run, and the addresses it should answer on.
type wantedPool struct {
	key       poolKey
	port      topology.Port
	mode      topology.Mode
	clients   []netip.Addr // of the class, sorted; nil for the class without a name
	policy    policy.Settings
	tuning    pick.Config
	spilling  spilling
	drains    []topology.Drain
	targets   []pick.Target
	chosen    []netip.AddrPort // what the consumer rules give the node, sorted
	choice    reason.Reason    // why that is so
	home      reason.Reason    // why other endpoints than the chosen ones are home; zero: they are not
	addresses []netip.AddrPort // none for a class: it is told apart on those of its base

	mixture *mixture
	hashing *hashing // nil: requests are not hashed
}

// Problem is something that the agent was asked to serve and cannot, or not as asked.
type Problem struct {
	Service string        `json:"service,omitempty"` // namespace/name; empty: the agent as a whole
	Reason  reason.Reason `json:"reason"`
}

// build finds out what the node should serve of planned services, and by which policies.
func (c *Config) build(s *topology.Snapshot, policies *policy.Set, client plan.Client, planned []plannedService) *world {
	// As a rule a service has one port; a pool is large, and a slice that grows is copied again and again.
	pools := make([]wantedPool, 0, len(planned))
	w := &world{client: client, services: planned, policies: policies, pools: pools}
	b := builder{
		world:    w,
		config:   c,
		snapshot: s,
		policies: policies,
		wide:     wideRules(policies),
		notes:    make(map[string]bool),
		costs:    s.Costs,
		client:   client,
		regions:  s.Regions(),
		taken:    make(map[netip.AddrPort]poolKey),
		planned:  make(map[planKey]*plan.Plan, len(planned)),
		mappings: make(map[topology.ServiceName][]Mapping),
		zones:    make(map[topology.Zone]bool),
		refused:  make(map[topology.ServiceName]bool),
	}
	for i := range s.Nodes {
		b.zones[s.Nodes[i].Zone] = true
	}
	for i := range planned {
		b.planned[keyOf(&planned[i])] = &planned[i].plan
	}
	for _, m := range c.Map {
		b.mappings[m.Service] = append(b.mappings[m.Service], m)
		if s.Service(m.Service) == nil {
			b.problem(m.Service, reason.New(reason.MappedServiceAbsent, m.String()))
		}
	}
	for _, svc := range s.Services {
		b.service(svc)
	}
	b.checkPolicies()
	slices.SortFunc(w.pools, func(a, b wantedPool) int { return a.key.compare(b.key) })
	return w
}

// builder carries what build looks up again and again.
type builder struct {
	world    *world
	config   *Config
	snapshot *topology.Snapshot
	policies *policy.Set
	locals   []local                // nil: not listed yet
	wide     map[policy.Origin]bool // rules about many services
	notes    map[string]bool        // what was reported of policies
	costs    topology.Costs
	client   plan.Client
	regions  map[topology.Zone]string
	taken    map[netip.AddrPort]poolKey
	planned  map[planKey]*plan.Plan
	mappings map[topology.ServiceName][]Mapping
	zones    map[topology.Zone]bool        // of the nodes
	refused  map[topology.ServiceName]bool // services whose settings were reported
}

func (b *builder) problem(service topology.ServiceName, r reason.Reason) {
	b.world.problems = append(b.world.problems, Problem{Service: service.String(), Reason: r})
}

// service adds the pools of one service.
func (b *builder) service(svc *topology.Service) {
	mappings := b.mappings[svc.ServiceName]
	switch {
	case svc.Proxy != "" && svc.Proxy != topology.ProxyWeir:
		b.problem(svc.ServiceName, reason.New(reason.OtherProxy, svc.String(), svc.Proxy))
		return
	case len(svc.ClusterIPs) == 0 && len(mappings) == 0:
		b.problem(svc.ServiceName, reason.New(reason.NoClusterIP, svc.String()))
		return
	case len(svc.Ports) == 0:
		b.problem(svc.ServiceName, reason.New(reason.NoPorts, svc.String()))
		return
	}
	for _, m := range mappings {
		if m.Port != 0 && !slices.ContainsFunc(svc.Ports, func(p topology.Port) bool { return p.Port == m.Port }) {
			b.problem(svc.ServiceName, reason.New(reason.MappedPortAbsent, m.String()))
		}
	}
	b.drains(svc)
	for _, port := range svc.Ports {
		if port.Protocol != topology.TCP {
			b.problem(svc.ServiceName, reason.New(reason.ProtocolNotServed, portName(svc.ServiceName, port)))
			continue
		}
		b.port(svc, port)
	}
}

// drains reports zones that are to be drained and that nothing is in: a name that was mistyped drains nobody.
func (b *builder) drains(svc *topology.Service) {
	for _, d := range svc.Overflow.Drains {
		isThere := b.zones[d.Zone] ||
			slices.ContainsFunc(svc.Endpoints, func(e topology.Endpoint) bool { return e.Zone == d.Zone })
		if !isThere {
			b.problem(svc.ServiceName, reason.New(reason.DrainOfNoZone, string(d.Zone)))
		}
	}
}

// port adds the pools of one service port: one for each family that it listens in.
func (b *builder) port(svc *topology.Service, port topology.Port) {
	for _, family := range topology.Families() {
		var addresses []netip.AddrPort
		key := poolKey{svc.ServiceName, port.Port, family, b.client.Zone, ""}
		for _, a := range b.addresses(svc, port) {
			if b.familyOf(svc, a.Addr()) != family {
				continue
			}
			if holder, ok := b.taken[a]; ok {
				b.problem(svc.ServiceName, reason.New(reason.AddressTaken, a.String(), holder.service.String()))
				continue
			}
			b.taken[a] = key
			addresses = append(addresses, a)
		}
		if len(addresses) == 0 {
			continue
		}
		for _, c := range b.classes(svc, port) {
			w := wantedPool{
				key:       key,
				port:      port,
				mode:      cmp.Or(svc.Mode, b.config.Mode),
				clients:   c.addrs,
				policy:    c.settings,
				tuning:    b.config.tuning(&c.settings),
				spilling:  b.spilling(svc, &c.settings),
				drains:    svc.Overflow.Drains,
				addresses: addresses,
			}
			if c.id != "" {
				w.key.class, w.addresses = c.id, nil
			}
			b.choose(svc, &w, c.client)
			b.checkSettings(&w)
			b.world.pools = append(b.world.pools, w)
		}
	}
}

// spilling gives the wishes for overflow; what is asked for and cannot be had is reported once and left out.
func (b *builder) spilling(svc *topology.Service, s *policy.Settings) spilling {
	how := spillingOf(svc.Overflow, s)
	if how == (spilling{shed: how.shed}) {
		return how // as most: the defaults were checked with the config
	}
	if _, err := b.config.strategy(how); err != nil {
		if !b.refused[svc.ServiceName] {
			b.refused[svc.ServiceName] = true
			b.problem(svc.ServiceName, reason.New(reason.StrategyRefused, err.Error()))
		}
		how = spilling{shed: how.shed}
	}
	return how
}

// addresses lists where a service port listens: where it is mapped to, else on the cluster IPs.
func (b *builder) addresses(svc *topology.Service, port topology.Port) []netip.AddrPort {
	var addresses []netip.AddrPort
	for _, m := range b.mappings[svc.ServiceName] {
		switch {
		case m.Port != 0 && m.Port != port.Port:
		case m.To.Port() != 0:
			addresses = append(addresses, m.To)
		default:
			addresses = append(addresses, netip.AddrPortFrom(m.To.Addr(), port.Port))
		}
	}
	if len(addresses) > 0 {
		return addresses
	}
	for _, ip := range svc.ClusterIPs {
		addresses = append(addresses, netip.AddrPortFrom(ip.Unmap(), port.Port))
	}
	return addresses
}

// familyOf tells which endpoints answer on an address: those of its family. A mapped address of a family that the
// service does not have stands in for its first cluster IP.
func (b *builder) familyOf(svc *topology.Service, addr netip.Addr) topology.Family {
	family := topology.FamilyOf(addr)
	has := slices.ContainsFunc(svc.Endpoints, func(e topology.Endpoint) bool { return e.Family() == family })
	if has || len(svc.ClusterIPs) == 0 {
		return family
	}
	return topology.FamilyOf(svc.ClusterIPs[0])
}

// portName names a service port for people.
func portName(service topology.ServiceName, p topology.Port) string {
	name := service.String() + ":" + p.Name
	if p.Name == "" {
		name = service.String()
	}
	return name + " " + portNumber(p)
}
