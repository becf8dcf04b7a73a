package fleet

import (
	"net/netip"

	"github.com/weir-lb/weir/internal/core/topology"
)

// addresses hands out addresses that were never in use: by family, upwards from the scenario's highest.
type addresses struct {
	last  map[topology.Family]netip.Addr
	taken map[netip.Addr]bool
}

func newAddresses(endpoints []topology.Endpoint) addresses {
	a := addresses{
		last: map[topology.Family]netip.Addr{
			topology.IPv4: firstAddr(topology.IPv4),
			topology.IPv6: firstAddr(topology.IPv6),
		},
		taken: make(map[netip.Addr]bool, len(endpoints)),
	}
	for i := range endpoints {
		e := &endpoints[i]
		a.taken[e.Addr] = true
		if a.last[e.Family()].Less(e.Addr) {
			a.last[e.Family()] = e.Addr
		}
	}
	return a
}

// firstAddr is below the addresses that are given to pods where the scenario has none, and where the highest is used up.
func firstAddr(family topology.Family) netip.Addr {
	if family == topology.IPv6 {
		return netip.AddrFrom16([16]byte{0: 0xfd})
	}
	return netip.AddrFrom4([4]byte{10})
}

func (a *addresses) take(family topology.Family) netip.Addr {
	addr := a.last[family].Next()
	for !addr.IsValid() || a.taken[addr] || topology.FamilyOf(addr) != family {
		if !addr.IsValid() {
			addr = firstAddr(family)
		}
		addr = addr.Next()
	}
	a.last[family], a.taken[addr] = addr, true
	return addr
}
