package route

import (
	"cmp"
	"net/netip"
	"reflect"
	"slices"
	"strconv"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// unserved says why a service is not served at all; a zero reason: it is.
func (c *Compiler) unserved(svc *topology.Service) reason.Reason {
	switch {
	case svc.Proxy != "" && svc.Proxy != topology.ProxyWeir:
		return reason.New(reason.OtherProxy, svc.String(), svc.Proxy)
	case len(svc.ClusterIPs) == 0 && len(c.mappings[svc.ServiceName]) == 0:
		return reason.New(reason.NoClusterIP, svc.String())
	case svc.DataPlane == topology.DataPlaneKernel && svc.Sticky:
		return reason.New(reason.KernelNoAffinity, svc.String())
	case len(svc.Ports) == 0:
		return reason.New(reason.NoPorts, svc.String())
	default:
		return reason.Reason{}
	}
}

// isServed tells whether a port's protocol is served: UDP by the kernel alone.
func isServed(svc *topology.Service, port topology.Port) bool {
	return port.Protocol == topology.TCP || port.Protocol == topology.UDP && svc.DataPlane == topology.DataPlaneKernel
}

// bindings lists the addresses that a service is to be served on, by port and family.
func (c *Compiler) bindings(svc *topology.Service) []binding {
	if c.unserved(svc).Code != "" {
		return nil
	}
	var all []binding
	for _, port := range svc.Ports {
		if !isServed(svc, port) {
			continue
		}
		addresses := c.addresses(svc, port)
		for _, family := range topology.Families() {
			key := Key{Service: svc.ServiceName, Port: port.Port, Protocol: port.Protocol, Family: family, Zone: c.in.Client.Zone}
			for _, a := range addresses {
				if familyOf(svc, a.Addr()) == family {
					all = append(all, binding{a, key})
				}
			}
		}
	}
	return all
}

// addresses lists where a service port is served: where it is mapped to, else on the cluster IPs.
func (c *Compiler) addresses(svc *topology.Service, port topology.Port) []netip.AddrPort {
	var addresses []netip.AddrPort
	for _, m := range c.mappings[svc.ServiceName] {
		if m.Port == 0 || m.Port == port.Port {
			addresses = append(addresses, netip.AddrPortFrom(m.To.Addr(), cmp.Or(m.To.Port(), port.Port)))
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
func familyOf(svc *topology.Service, addr netip.Addr) topology.Family {
	family := topology.FamilyOf(addr)
	has := slices.ContainsFunc(svc.Endpoints, func(e topology.Endpoint) bool { return e.Family() == family })
	if has || len(svc.ClusterIPs) == 0 {
		return family
	}
	return topology.FamilyOf(svc.ClusterIPs[0])
}

func (u *unit) problem(r reason.Reason) {
	u.problems = append(u.problems, Problem{u.service.String(), r})
}

// compile makes the entries of a service. One that is as before is the one before.
func (c *Compiler) compile(u *unit) {
	svc, before := u.service, u.entries
	u.entries, u.problems, u.isCompiled, u.hasClasses = nil, nil, true, false
	if why := c.unserved(svc); why.Code != "" {
		u.problem(why)
		return
	}
	if svc.Proxy == topology.ProxyWeir && svc.ExternallyAccessible {
		u.problem(reason.New(reason.OutsideNotServed, svc.String()))
	}
	for _, m := range c.mappings[svc.ServiceName] {
		if m.Port != 0 && !slices.ContainsFunc(svc.Ports, func(p topology.Port) bool { return p.Port == m.Port }) {
			u.problem(reason.New(reason.MappedPortAbsent, m.String()))
		}
	}
	for _, d := range svc.Overflow.Drains { // a name that was mistyped drains nothing
		if !c.zones[d.Zone] && !slices.ContainsFunc(svc.Endpoints, func(e topology.Endpoint) bool { return e.Zone == d.Zone }) {
			u.problem(reason.New(reason.DrainOfNoZone, string(d.Zone)))
		}
	}
	for _, port := range svc.Ports {
		if !isServed(svc, port) {
			u.problem(reason.New(reason.ProtocolNotServed, portName(svc.ServiceName, port)))
			continue
		}
		for _, family := range topology.Families() {
			c.compilePort(u, port, family)
		}
	}
	for i, e := range u.entries {
		if at := slices.IndexFunc(before, func(o *Entry) bool { return o.Key == e.Key }); at >= 0 && reflect.DeepEqual(before[at], e) {
			u.entries[i] = before[at]
		}
	}
}

// compilePort makes the entries of a service port in one family: that of all clients, then those of each class.
func (c *Compiler) compilePort(u *unit, port topology.Port, family topology.Family) {
	key := Key{
		Service: u.service.ServiceName, Port: port.Port, Protocol: port.Protocol, Family: family, Zone: c.in.Client.Zone,
	}
	addresses := c.served(u, key)
	if len(addresses) == 0 {
		return
	}
	classes := c.classes(u, port)
	if u.service.DataPlane == topology.DataPlaneKernel && len(classes) > 1 {
		u.problem(reason.New(reason.KernelNoClasses, portName(u.service.ServiceName, port)))
		classes = classes[:1]
	}
	for _, class := range classes {
		key.Class = class.id
		e := &Entry{
			Key: key, Port: port, DataPlane: u.service.DataPlane, Mode: cmp.Or(u.service.Mode, c.options.Mode), Drains: u.service.Overflow.Drains,
			Clients: class.addrs, Settings: c.settings(u, class.settings),
		}
		if class.id == "" {
			e.Addresses = addresses
		}
		e.Selection = Select(Query{
			Service: u.service, Endpoints: u.endpoints(family), Port: port, Client: class.client,
			Costs: c.in.Snapshot.Costs, Regions: c.regions, Settings: class.settings, Policies: c.in.Policies,
			KeepsHome: e.Settings.Overflow.KeepsHome(), Mode: e.Mode,
		})
		if most := class.settings.Locality.MaxSkew; most != nil {
			e.Settings.Skew = overflow.Skew{Max: float64(*most), Demand: u.plans[family].DemandByZone()}
		}
		c.check(u, e)
		u.entries = append(u.entries, e)
	}
}

// served lists the addresses that a port is served on: those that no port before it is served on.
func (c *Compiler) served(u *unit, key Key) []netip.AddrPort {
	var addresses []netip.AddrPort
	for _, binding := range u.bindings {
		if binding.key != key {
			continue
		}
		holder, isConflict := c.conflicts[binding.socket()]
		if isConflict && (holder != key || slices.Contains(addresses, binding.address)) {
			u.problem(reason.New(reason.AddressTaken, binding.address.String(), holder.Service.String()))
			continue
		}
		addresses = append(addresses, binding.address)
	}
	return addresses
}

// endpoints gives the endpoints of one family with the hints that count.
func (u *unit) endpoints(f topology.Family) []topology.Endpoint {
	if p := u.plans[f]; p != nil && !u.isNative {
		return p.Endpoints
	}
	isOther := func(e topology.Endpoint) bool { return e.Family() != f }
	if !slices.ContainsFunc(u.service.Endpoints, isOther) {
		return u.service.Endpoints
	}
	return slices.DeleteFunc(slices.Clone(u.service.Endpoints), isOther)
}

// settings gives what holds for a service under some policies; what is asked of overflow and cannot be had is reported and
// left out.
func (c *Compiler) settings(u *unit, s *policy.Settings) Settings {
	strategy := c.options.Strategy
	if u.service.Sticky {
		s, strategy = sticky(s), OverflowDisabled // load moves no session, unless the service or a policy wants that
	}
	o := overflowOf(u.service.Overflow, s, strategy)
	usual := Overflow{Strategy: c.options.Strategy}
	usual.Shed = o.Shed
	if o != usual { // the defaults were checked before
		if _, err := o.New(); err != nil {
			u.problem(reason.New(reason.StrategyRefused, err.Error()))
			o = usual
		}
	}
	return Settings{Policy: s, Algorithm: cmp.Or(s.LoadBalancer.Type, c.options.Algorithm), Overflow: o, Rotate: Rotate(c.in.Client)}
}

// portName names a service port for people.
func portName(service topology.ServiceName, p topology.Port) string {
	name := service.String()
	if p.Name != "" {
		name += ":" + p.Name
	}
	return name + " " + number(p.Port) + "/" + string(p.Protocol)
}

func number(port uint16) string { return strconv.Itoa(int(port)) }
