package kernel

import (
	"fmt"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weir-lb/weir/internal/kernel/bpf"
)

// Options say where programs run, what outlives the process, and for how much there is room.
type Options = bpf.Options

// Plane is what runs in the kernel. One goroutine at a time.
type Plane struct {
	kernel    *bpf.Kernel
	tables    *room
	slots     *room
	endpoints *room

	served map[bpf.VIP]uint32 // the table of each VIP in the maps
	found  map[member]uint32  // endpoints that an earlier process left and no port has claimed
	orphan map[bpf.VIP]bool   // VIPs that it left
	used   map[bpf.VIP]*Port
	leave  []leaving
}

// member is an endpoint of a VIP.
type member struct{ vip, to bpf.VIP }

// leaving is what programs may still read.
type leaving struct {
	since     time.Duration
	endpoint  uint32 // if length is 0
	isUDP     bool
	table, at uint32 // otherwise a table with its slots, if it has any
	length    uint32
}

// CapacityFor gives room for some service ports and endpoints, and for twice as many, as clusters grow.
func CapacityFor(ports, endpoints int) bpf.Capacity {
	ports, endpoints = max(512, 2*ports), max(8192, 2*endpoints)
	return bpf.Capacity{
		Services: uint32(ports), Endpoints: uint32(endpoints), //nolint:gosec // far below.
		Slots: uint32(2 * (ports*minSlots + endpoints*slotsForEach)), //nolint:gosec // the same.
	}
}

// Open attaches the programs. VIPs that an earlier process pinned are served as it left them from the first Beat on, until Sweep
// removes those that no port has claimed.
func Open(o Options) (*Plane, error) {
	k, err := bpf.Open(o)
	if err != nil {
		return nil, err
	}
	c := k.Capacity()
	p := &Plane{
		kernel: k, tables: newRoom(c.Services), slots: newRoom(c.Slots), endpoints: newRoom(c.Endpoints),
		found: make(map[member]uint32), orphan: make(map[bpf.VIP]bool), used: make(map[bpf.VIP]*Port),
	}
	if p.served, err = k.Services(); err != nil {
		return nil, fmt.Errorf("read the services in the maps: %w", err)
	}
	p.adopt()
	return p, nil
}

// adopt finds out what an earlier process has left.
func (p *Plane) adopt() {
	for vip, at := range p.served {
		p.orphan[vip] = true
		p.tables.skip(at)
		t := p.kernel.Table(at)
		for _, offset := range t.Offset {
			p.slots.skip(offset + t.Mask)
		}
	}
	for i := range p.kernel.Capacity().Endpoints {
		e := p.kernel.Endpoint(i)
		if e.To.Port == 0 {
			continue
		}
		p.endpoints.skip(i)
		if vip := p.kernel.Table(e.Table).Vip; p.orphan[vip] {
			p.found[member{vip, e.To}] = i
		} else {
			p.leave = append(p.leave, leaving{endpoint: i, isUDP: e.To.Protocol == bpf.UDP})
		}
	}
}

// Missing names what this kernel does not do, each with the reason.
func (p *Plane) Missing() []string { return p.kernel.Missing }

// Beat keeps the programs placing connections; see bpf.Kernel.Beat. It takes what programs no longer read for use again.
func (p *Plane) Beat(now time.Duration) {
	p.kernel.Beat()
	p.leave = slices.DeleteFunc(p.leave, func(l leaving) bool { return p.reuse(&l, now) })
}

func (p *Plane) reuse(l *leaving, now time.Duration) bool {
	if now-l.since < quiet {
		return false
	}
	if l.length > 0 {
		p.tables.give(l.table, 1)
		p.slots.give(l.at, l.length)
		return true
	}
	e := p.kernel.Endpoint(l.endpoint)
	if l.isUDP && now-l.since < quietUDP || !l.isUDP && read(e).inFlight() != 0 {
		return false
	}
	*e = bpf.Endpoint{}
	p.endpoints.give(l.endpoint, 1)
	return true
}

// Sweep removes the VIPs that an earlier process has left and no port has claimed.
func (p *Plane) Sweep(now time.Duration) error {
	for vip := range p.orphan {
		if err := p.forget(now, vip); err != nil {
			return err
		}
	}
	for m, at := range p.found {
		delete(p.found, m)
		p.retire(now, at)
	}
	return nil
}

// forget leaves the connections to a VIP alone.
func (p *Plane) forget(now time.Duration, vip bpf.VIP) error {
	if err := p.kernel.Remove(vip); err != nil {
		return fmt.Errorf("remove %v: %w", bpf.AddrPort(vip), err)
	}
	at := p.served[vip]
	t := p.kernel.Table(at)
	p.leave = append(p.leave, leaving{since: now, table: at, at: min(t.Offset[0], t.Offset[1]), length: 2 * (t.Mask + 1)})
	delete(p.served, vip)
	delete(p.orphan, vip)
	return nil
}

// retire has an endpoint drawn no more.
func (p *Plane) retire(now time.Duration, at uint32) {
	e := p.kernel.Endpoint(at)
	atomic.StoreUint32(&e.Flags, 0)
	p.leave = append(p.leave, leaving{since: now, endpoint: at, isUDP: e.To.Protocol == bpf.UDP})
}

// Close leaves every socket alone from now on. What is pinned stays, and counts.
func (p *Plane) Close() error { return p.kernel.Close() }

// Detach removes what processes pinned in a folder; it tells how many hooks it freed.
func Detach(pins string) (int, error) { return bpf.Detach(pins) }

// IsPinned tells whether a process has left something in a folder of pins.
func IsPinned(pins string) bool { return bpf.IsPinned(pins) }

// Spec says what a service port is made of.
type Spec struct {
	Address   netip.AddrPort
	IsUDP     bool
	Endpoints []netip.AddrPort // each once
}

func (s *Spec) vip(a netip.AddrPort) bpf.VIP {
	if s.IsUDP {
		return bpf.NewVIP(a, bpf.UDP)
	}
	return bpf.NewVIP(a, bpf.TCP)
}
