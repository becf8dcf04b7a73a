package kernel

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weir-lb/weir/internal/core/balance"
	"github.com/weir-lb/weir/internal/kernel/bpf"
)

// Port is a service port in the maps. It places nothing before the first Follow.
type Port struct {
	plane   *Plane
	vip     bpf.VIP
	isUDP   bool
	members []endpoint // as in the Spec
	table   uint32
	slots   uint32          // of both sets together; 0: there is no table yet
	at      uint32          // of the first slot
	counts  []int           // slots of each member, as written; nil: to be written
	groups  []time.Duration // how long connecting takes
}

// endpoint is an endpoint of a port.
type endpoint struct {
	to   bpf.VIP
	at   uint32
	seen counters
}

// counters are what programs counted of an endpoint.
type counters struct {
	started, established, refused, timedOut, abandoned, reset, closed, nanos uint64
	isUDP                                                                    bool
}

func read(e *bpf.Endpoint) counters {
	return counters{
		started: atomic.LoadUint64(&e.Started), established: atomic.LoadUint64(&e.Established),
		refused: atomic.LoadUint64(&e.Refused), timedOut: atomic.LoadUint64(&e.TimedOut),
		abandoned: atomic.LoadUint64(&e.Abandoned), reset: atomic.LoadUint64(&e.Reset),
		closed: atomic.LoadUint64(&e.Closed), nanos: atomic.LoadUint64(&e.ConnectNanos),
		isUDP: e.To.Protocol == bpf.UDP,
	}
}

// unanswered are the connections that wait to be established.
func (c *counters) unanswered() int64 {
	if c.isUDP {
		return 0
	}
	return int64(c.started - c.established - c.refused - c.timedOut - c.abandoned) //nolint:gosec // wraps back.
}

// inFlight are the connections that occupy the endpoint; of UDP nothing ends.
func (c counters) inFlight() int64 {
	if c.isUDP {
		return 0
	}
	return c.unanswered() + int64(c.established-c.closed) //nolint:gosec // wraps back.
}

// Totals are what a port's present endpoints counted since they are known to the kernel.
type Totals struct {
	Established, Refused, TimedOut, Abandoned, Reset uint64 // connections, by what became of them
	Flows                                            uint64 // of UDP
	Open                                             int64
}

// Add gives the sum of two.
func (t Totals) Add(o Totals) Totals {
	return Totals{
		Established: t.Established + o.Established, Refused: t.Refused + o.Refused, TimedOut: t.TimedOut + o.TimedOut,
		Abandoned: t.Abandoned + o.Abandoned, Reset: t.Reset + o.Reset, Flows: t.Flows + o.Flows, Open: t.Open + o.Open,
	}
}

// Port makes the port of an address, or changes its endpoints. Errors: no room; the port is then as before, or does not exist.
func (p *Plane) Port(now time.Duration, s Spec) (*Port, error) {
	vip := s.vip(s.Address)
	port := p.used[vip]
	if port == nil {
		port = &Port{plane: p, vip: vip, isUDP: s.IsUDP}
	}
	members := make([]endpoint, 0, len(s.Endpoints))
	var fresh []uint32
	for _, a := range s.Endpoints {
		e, isFresh, err := port.member(s.vip(a))
		if err != nil {
			for _, at := range fresh {
				p.endpoints.give(at, 1)
			}
			return nil, err
		}
		if isFresh {
			fresh = append(fresh, e.at)
		}
		members = append(members, e)
	}
	gone := slices.DeleteFunc(slices.Clone(port.members), func(e endpoint) bool {
		return slices.ContainsFunc(members, func(o endpoint) bool { return o.at == e.at })
	})
	port.members, port.counts = members, nil
	for _, e := range gone {
		p.retire(now, e.at)
	}
	p.used[vip] = port
	return port, nil
}

// member gives an endpoint of the port: the one it has, the one that an earlier process left, or a new one.
func (t *Port) member(to bpf.VIP) (endpoint, bool, error) {
	for _, e := range t.members {
		if e.to == to {
			return e, false, nil
		}
	}
	p := t.plane
	if at, ok := p.found[member{t.vip, to}]; ok {
		delete(p.found, member{t.vip, to})
		return endpoint{to: to, at: at, seen: read(p.kernel.Endpoint(at))}, false, nil
	}
	at, err := p.endpoints.take(1)
	if err != nil {
		return endpoint{}, false, err
	}
	*p.kernel.Endpoint(at) = bpf.Endpoint{To: to}
	return endpoint{to: to, at: at}, true, nil
}

// Follow has connections placed by a decision about the endpoints of the Spec, in that order. Programs see the slots of before
// or those of now.
func (t *Port) Follow(now time.Duration, d *balance.Decision) error {
	all := weights(d)
	length := slotsFor(len(t.members))
	counts := apportion(all, int(length))
	if slices.Equal(counts, t.counts) && t.slots == 2*length {
		return nil
	}
	k, isNew := t.plane.kernel, t.slots != 2*length
	table, at := t.table, t.at
	if isNew {
		var err error
		if table, err = t.plane.tables.take(1); err != nil {
			return err
		}
		if at, err = t.plane.slots.take(2 * length); err != nil {
			t.plane.tables.give(table, 1)
			return err
		}
		*k.Table(table) = bpf.Table{Vip: t.vip, Mask: length - 1, Offset: [2]uint32{at, at + length}}
	}
	to := k.Table(table)
	next := 1 - atomic.LoadUint32(&to.Active)
	t.fill(k.Slots()[to.Offset[next]:][:length], counts)
	for i, e := range t.members {
		element, flags := k.Endpoint(e.at), uint32(0)
		if counts[i] > 0 {
			flags = bpf.EndpointUp
		}
		atomic.StoreUint32(&element.Table, table)
		atomic.StoreUint32(&element.Flags, flags)
	}
	atomic.StoreUint32(&to.Active, next)
	t.counts = counts
	if !isNew {
		return nil
	}
	return t.serve(now, table, at, 2*length)
}

// fill writes slots; without any usable endpoint they stay as they are, as no endpoint is up.
func (t *Port) fill(slots []uint32, counts []int) {
	n := 0
	for i, count := range counts {
		for range count {
			slots[n] = t.members[i].at
			n++
		}
	}
}

// serve has programs read another table for the port.
func (t *Port) serve(now time.Duration, table, at, length uint32) error {
	p := t.plane
	if err := p.kernel.Put(t.vip, table); err != nil {
		p.tables.give(table, 1)
		p.slots.give(at, length)
		t.counts = nil
		return fmt.Errorf("serve %v: %w", bpf.AddrPort(t.vip), err)
	}
	if old, ok := p.served[t.vip]; ok {
		was := p.kernel.Table(old)
		p.leave = append(p.leave, leaving{since: now, table: old, at: min(was.Offset[0], was.Offset[1]), length: 2 * (was.Mask + 1)})
	}
	delete(p.orphan, t.vip)
	p.served[t.vip], t.table, t.at, t.slots = table, table, at, length
	return nil
}

// Close leaves the connections to the port alone from now on; those that were placed stay.
func (t *Port) Close(now time.Duration) error {
	p := t.plane
	delete(p.used, t.vip)
	for _, e := range t.members {
		p.retire(now, e.at)
	}
	if t.slots == 0 {
		return nil
	}
	return p.forget(now, t.vip)
}

// Totals sums up what programs counted.
func (t *Port) Totals() Totals {
	var sum Totals
	for _, e := range t.members {
		c := read(t.plane.kernel.Endpoint(e.at))
		if t.isUDP {
			sum.Flows += c.started
			continue
		}
		sum.Established += c.established
		sum.Refused += c.refused
		sum.TimedOut += c.timedOut
		sum.Abandoned += c.abandoned
		sum.Reset += c.reset
		sum.Open += c.inFlight()
	}
	return sum
}

// Placed changes when a program places a connection, or finds no endpoint for one.
func (t *Port) Placed() uint64 {
	if t.slots == 0 {
		return 0
	}
	table := t.plane.kernel.Table(t.table)
	return atomic.LoadUint64(&table.Placed) + atomic.LoadUint64(&table.Unplaced)
}

// Count gives what programs counted since the last call of the ports of one loop, which have the endpoints of its decision.
//
// A connection is a request that is answered when it is established: connecting takes longer where an endpoint accepts too
// slowly. Resets are not failures of the endpoint, as a client that aborts is counted among them. Of a UDP flow no failure is
// known.
func Count(d *balance.Decision, ports []*Port) *balance.Counters {
	sum := &balance.Counters{
		Groups: make([]balance.GroupCounters, len(d.Groups)), Endpoints: make([]balance.EndpointCounters, len(d.Endpoints)),
	}
	for _, t := range ports {
		t.add(sum, d)
	}
	return sum
}

// add adds what one port counted.
func (t *Port) add(sum *balance.Counters, d *balance.Decision) {
	if len(t.groups) != len(d.Groups) {
		t.groups = make([]time.Duration, len(d.Groups))
	}
	for g := range d.Groups {
		var unanswered, ok int64
		var latency time.Duration
		for _, i := range d.Groups[g].Members {
			c, waiting := t.count(i)
			unanswered += waiting
			ok += c.OK
			latency += c.Latency
			to := &sum.Endpoints[i]
			to.Started += c.Started
			to.OK += c.OK
			to.Failed += c.Failed
			to.Latency += c.Latency
			to.InFlight += c.InFlight
		}
		if ok > 0 && latency > 0 {
			t.groups[g] = nearest(t.groups[g], latency/time.Duration(ok))
		}
		sum.Groups[g].Unanswered += unanswered
		sum.Groups[g].RTT = max(sum.Groups[g].RTT, t.groups[g])
	}
}

// nearest follows the shortest time of connecting: what is longer than usual is the endpoints' load and not the distance.
func nearest(before, now time.Duration) time.Duration {
	if before == 0 || now < before {
		return now
	}
	return before + (now-before)/64
}

// count reads the counters of one endpoint, and how many connections wait.
func (t *Port) count(i int) (balance.EndpointCounters, int64) {
	e := &t.members[i]
	now := read(t.plane.kernel.Endpoint(e.at))
	c := balance.EndpointCounters{
		Started: int64(now.started - e.seen.started), OK: int64(now.established - e.seen.established), //nolint:gosec // differences.
		Failed:  int64(now.refused - e.seen.refused + now.timedOut - e.seen.timedOut), //nolint:gosec // the same.
		Latency: time.Duration(now.nanos - e.seen.nanos), InFlight: now.inFlight(),    //nolint:gosec // the same.
	}
	if t.isUDP {
		c.OK = c.Started
	}
	e.seen = now
	return c, now.unanswered()
}
