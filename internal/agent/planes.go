package agent

import (
	"maps"
	"net/netip"
	"slices"
	"sync"

	"github.com/weir-lb/weir/internal/core/balance"
	"github.com/weir-lb/weir/internal/core/route"
	"github.com/weir-lb/weir/internal/core/topology"
)

// livePool is a pool that a data plane runs.
type livePool interface{ Status() balance.Status }

// planes gives each entry of a table to the data plane that its service asks for.
type planes struct {
	proxy, kernel dataPlane
	table         *route.Table // that was applied last

	mu     sync.Mutex
	halves [2]*reading // that joined is made of
	joined *reading
}

// Apply implements dataPlane. What the table cannot have is reported by the proxy's half.
func (p *planes) Apply(t *route.Table) {
	if t == p.table {
		return
	}
	p.table = t
	proxy, kernel := *t, route.Table{Client: t.Client}
	proxy.Entries = nil
	for _, e := range t.Entries {
		if e.DataPlane == topology.DataPlaneKernel {
			kernel.Entries = append(kernel.Entries, e)
		} else {
			proxy.Entries = append(proxy.Entries, e)
		}
	}
	p.kernel.Apply(&kernel)
	p.proxy.Apply(&proxy)
}

// Tick implements dataPlane. The kernel's heartbeat comes first.
func (p *planes) Tick() {
	p.kernel.Tick()
	p.proxy.Tick()
}

// Stop implements dataPlane: new connections of the kernel's go elsewhere while the proxy drains.
func (p *planes) Stop() {
	p.kernel.Stop()
	p.proxy.Stop()
}

// Read implements dataPlane.
func (p *planes) Read() *reading {
	proxy, kernel := p.proxy.Read(), p.kernel.Read()
	if proxy == nil || kernel == nil || len(kernel.table.Entries)+len(kernel.problems) == 0 {
		return proxy
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := [2]*reading{proxy, kernel}; p.halves != now {
		p.halves, p.joined = now, join(proxy, kernel)
	}
	return p.joined
}

// join makes one reading of two, with the entries in order.
func join(a, b *reading) *reading {
	all := &reading{
		table:    &route.Table{Client: a.table.Client},
		open:     make(map[netip.AddrPort]bool, len(a.open)+len(b.open)),
		problems: slices.Concat(a.problems, b.problems),
	}
	maps.Copy(all.open, a.open)
	maps.Copy(all.open, b.open)
	i, j := 0, 0
	for i < len(a.pools) || j < len(b.pools) {
		from, at := a, &i
		if i == len(a.pools) || j < len(b.pools) && b.table.Entries[j].Key.Compare(a.table.Entries[i].Key) < 0 {
			from, at = b, &j
		}
		all.table.Entries = append(all.table.Entries, from.table.Entries[*at])
		all.pools = append(all.pools, from.pools[*at])
		*at++
	}
	all.table.Problems = all.problems
	return all
}
