package demo

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/sim/scenario"
)

// The shape of the world. Three zones are what clouds offer; three endpoints each let one fail and two remain.
const (
	zoneCount        = 3
	endpointsPerZone = 3
	region           = "demo"
	namespace        = "shop"
	serviceName      = "web"
)

// Ports from which a free one is sought: below the range that kernels hand out to clients (32768 on Linux, 49152
// elsewhere), so that nobody takes an endpoint's port while it is gone.
const (
	firstPort = 18080
	lastPort  = 18980
	portStep  = 20 // more than the listeners of a world that has one address only
)

// zoneNames lists the zones, in the order of all tables.
func zoneNames() [zoneCount]topology.Zone {
	return [zoneCount]topology.Zone{"zone-a", "zone-b", "zone-c"}
}

// place is a listening address in a zone.
type place struct {
	zone int // index into zoneNames
	name string
	addr netip.AddrPort
}

// layout says who listens where.
type layout struct {
	service   netip.AddrPort   // the Service's cluster IP and port
	agents    [zoneCount]place // the zone's node; the address at which its agent serves the service
	endpoints []place          // by zone, then number
	mode      topology.Mode
}

// newLayout finds free addresses: one for each listener in 127.77.0.0/16 where the system has all of 127.0.0.0/8 (Linux),
// so that the world looks like a cluster; else one port for each on 127.0.0.1.
func newLayout(mode topology.Mode) (layout, error) {
	var err error
	for port := uint16(firstPort); port <= lastPort; port += portStep {
		for _, try := range []layout{manyAddresses(port), oneAddress(port)} {
			try.mode = mode
			if err = try.free(); err == nil {
				return try, nil
			}
		}
	}
	return layout{}, fmt.Errorf("find free loopback ports from %d to %d: %w", firstPort, lastPort, err)
}

// manyAddresses gives each listener its own address and all the same port.
func manyAddresses(port uint16) layout {
	at := func(zone, host byte) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 77, zone, host}), port)
	}
	l := layout{service: at(0, 80)}
	for zone := range zoneCount {
		l.agents[zone] = place{zone, nodeName(zone), at(byte(zone+1), 1)}
		for i := range endpointsPerZone {
			l.endpoints = append(l.endpoints, place{zone, endpointName(zone, i), at(byte(zone+1), byte(11+i))})
		}
	}
	return l
}

// oneAddress gives each listener its own port of 127.0.0.1.
func oneAddress(port uint16) layout {
	next := func() netip.AddrPort {
		port++
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port-1)
	}
	l := layout{service: next()}
	for zone := range zoneCount {
		l.agents[zone] = place{zone, nodeName(zone), next()}
		for i := range endpointsPerZone {
			l.endpoints = append(l.endpoints, place{zone, endpointName(zone, i), next()})
		}
	}
	return l
}

func nodeName(zone int) string { return "node-" + string(rune('a'+zone)) }

func endpointName(zone, i int) string { return fmt.Sprintf("%s-%c%d", serviceName, 'a'+zone, i+1) }

// free tells whether every address can be listened on now.
func (l *layout) free() error {
	addrs := []netip.AddrPort{l.service}
	for _, p := range l.agents {
		addrs = append(addrs, p.addr)
	}
	for _, p := range l.endpoints {
		addrs = append(addrs, p.addr)
	}
	for _, addr := range addrs {
		listener, err := net.Listen("tcp", addr.String())
		if err != nil {
			return err
		}
		_ = listener.Close() // it accepted nothing
	}
	return nil
}

// world is the running endpoints.
type world struct {
	endpoints []*endpoint // in the order of layout.endpoints
}

// apply makes the endpoints behave as the phase wants; all others are well.
func (w *world) apply(p Phase) error {
	for i, e := range w.endpoints {
		var next scenario.Condition
		if e.zone == p.Zone {
			next = conditionIn(p.Event, i%endpointsPerZone)
		}
		if err := e.set(next); err != nil {
			return err
		}
	}
	return nil
}

// conditionIn gives the condition of endpoint number i of the zone that the event hits.
func conditionIn(e Event, i int) scenario.Condition {
	switch e {
	case Slow:
		return scenario.Condition{Slow: slowFactor}
	case Failing:
		if i < (endpointsPerZone+1)/2 {
			return scenario.Condition{Fail: 1}
		}
		return scenario.Condition{}
	case Gone:
		return scenario.Condition{Refuse: true}
	case Hanging:
		return scenario.Condition{Hang: true}
	default:
		return scenario.Condition{}
	}
}

func (w *world) close() error {
	var first error
	for _, e := range w.endpoints {
		if err := e.close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}
