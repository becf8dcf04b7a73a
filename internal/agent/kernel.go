package agent

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-lb/weir/internal/core/balance"
	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/route"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kernel"
)

// Kernel says where the kernel data plane runs.
type Kernel struct {
	// Cgroup is the folder of the cgroup whose processes are served; empty: the root of the cgroup2 file system.
	Cgroup string
	// Pins is a folder in a bpf file system, in which programs and counters outlive the process; empty: they do not.
	Pins string
}

// kernelPlane serves the entries of a table in the kernel, from the first entry on that asks for it. Everything is under the
// lock but what Read gives.
type kernelPlane struct {
	config *Config
	logger *slog.Logger
	clock  func() time.Duration
	last   atomic.Pointer[reading]
	log    problemLog

	mu        sync.Mutex
	isStopped bool
	table     *route.Table
	plane     *kernel.Plane // nil: nothing asks for it yet, or it cannot be had
	failing   *failing      // why it cannot be had
	pools     map[route.Key]*kernelPool
	order     []*kernelPool // of pools, as in the table
}

// kernelPool is the control loop of an entry and its ports in the kernel.
type kernelPool struct {
	plane    *kernelPlane
	entry    *route.Entry
	loop     *balance.Loop
	strategy *replaceable
	capped   *overflow.Capped
	ports    map[netip.AddrPort]*kernel.Port
	isStale  bool   // the ports have other endpoints than the loop
	placed   uint64 // connections, at the last step
	err      error  // why it is not in the kernel, or not as it should be
	told     told
}

func newKernelPlane(c *Config, logger *slog.Logger, clock func() time.Duration) *kernelPlane {
	return &kernelPlane{
		config: c, logger: logger, clock: clock, log: problemLog{logger: logger}, pools: make(map[route.Key]*kernelPool),
	}
}

// checkKernel tells what of an entry's settings the kernel does not do.
func checkKernel(e *route.Entry) []reason.Reason {
	switch t := e.Settings.Policy.LoadBalancer.Type; t {
	case "", policy.RoundRobin, policy.Random:
		return nil
	default:
		return []reason.Reason{reason.New(reason.KernelNoAlgorithm, string(t), e.PortName())}
	}
}

// Read implements dataPlane.
func (p *kernelPlane) Read() *reading { return p.last.Load() }

// Status tells how the pool stands.
func (k *kernelPool) Status() balance.Status {
	k.plane.mu.Lock()
	defer k.plane.mu.Unlock()
	return k.loop.Status()
}

// Totals tells what the kernel counted of the pool's connections.
func (k *kernelPool) Totals() kernel.Totals {
	k.plane.mu.Lock()
	defer k.plane.mu.Unlock()
	var sum kernel.Totals
	for _, port := range k.ports {
		sum = sum.Add(port.Totals())
	}
	return sum
}

// Apply implements dataPlane.
func (p *kernelPlane) Apply(t *route.Table) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t == p.table || p.isStopped {
		return
	}
	p.table = t
	before := p.pools
	p.pools, p.order = make(map[route.Key]*kernelPool, len(t.Entries)), make([]*kernelPool, 0, len(t.Entries))
	for _, e := range t.Entries {
		pool := before[e.Key]
		if pool == nil {
			pool = p.newPool(e)
		}
		delete(before, e.Key)
		p.pools[e.Key], p.order = pool, append(p.order, pool)
		pool.follow(p.clock(), e)
	}
	for _, gone := range before {
		gone.close(p.clock(), nil)
	}
	if p.plane == nil {
		p.open()
	} else {
		p.write()
	}
	p.publish()
	if len(t.Entries) > 0 {
		p.logger.Info("placing in the kernel", "zone", t.Client.Zone, "pools", len(p.pools))
	}
}

func (p *kernelPlane) newPool(e *route.Entry) *kernelPool {
	strategy := &replaceable{}
	capped := &overflow.Capped{Strategy: strategy}
	return &kernelPool{
		plane: p, entry: &route.Entry{}, strategy: strategy, capped: capped, ports: make(map[netip.AddrPort]*kernel.Port),
		loop: balance.New(balance.Options{
			Zone: e.Key.Zone, Strategy: capped, Random: rand.Uint64, Rotate: e.Settings.Rotate,
		}, balance.Config{}),
	}
}

// follow makes the pool's loop that of an entry. What it has learned stays.
func (k *kernelPool) follow(now time.Duration, e *route.Entry) {
	before := k.entry
	if before == e {
		return
	}
	k.entry, k.capped.Skew = e, e.Settings.Skew
	if before.Settings.Overflow != e.Settings.Overflow {
		k.strategy.replace(now, e.Settings.Overflow)
	}
	k.loop.Configure(balance.ConfigFor(e.Settings.Policy))
	k.loop.Apply(now, route.Distinct(e.Endpoints))
	if !slices.Equal(before.Drains, e.Drains) {
		drain(k.loop, before.Drains, e.Drains, now)
	}
	k.isStale = true
}

// open loads the programs if an entry asks for them, and writes all ports. A failure is kept, to be tried again.
func (p *kernelPlane) open() {
	if len(p.table.Entries) == 0 {
		return
	}
	endpoints := 0
	for _, e := range p.table.Entries {
		endpoints += len(e.Endpoints) * len(e.Addresses)
	}
	plane, err := kernel.Open(kernel.Options{
		Cgroup: p.config.Kernel.Cgroup, Pins: p.config.Kernel.Pins, Capacity: kernel.CapacityFor(len(p.table.Entries), endpoints),
	})
	if err != nil {
		if p.failing == nil {
			p.failing = &failing{}
		}
		p.failing.again(p.clock(), err)
		return
	}
	p.plane, p.failing = plane, nil
	p.write()
	if err := plane.Sweep(p.clock()); err != nil {
		p.logger.Warn("services that an earlier agent left in the kernel stay there", "error", err)
	}
	p.logger.Info("programs attached", "cgroup", cmp.Or(p.config.Kernel.Cgroup, "all"), "pins", p.config.Kernel.Pins)
}

// beatEach is after how many ports the heartbeat is written while many are: a hundred take a few milliseconds.
const beatEach = 100

// write writes all pools that are not in the kernel as they should be.
func (p *kernelPlane) write() {
	for _, pool := range p.order { // first, as an address may go from one pool to another
		pool.close(p.clock(), pool.entry.Addresses)
	}
	for i, pool := range p.order {
		if i%beatEach == 0 {
			p.plane.Beat(p.clock())
		}
		if pool.isStale || pool.err != nil {
			pool.err = pool.write(p.clock())
		}
	}
}

// write makes the pool's ports those of its entry, and steps the loop.
func (k *kernelPool) write(now time.Duration) error {
	var all []netip.AddrPort
	for i := range k.loop.Decision().Endpoints {
		all = append(all, k.loop.Decision().Endpoints[i].Addr)
	}
	for _, a := range k.entry.Addresses {
		port, err := k.plane.plane.Port(now, kernel.Spec{
			Address: a, IsUDP: k.entry.Key.Protocol == topology.UDP, Endpoints: all,
		})
		if err != nil {
			return err
		}
		k.ports[a] = port
	}
	k.isStale = false
	return k.step(now)
}

// close takes ports out of the kernel whose address is none of these.
func (k *kernelPool) close(now time.Duration, but []netip.AddrPort) {
	for a, port := range k.ports {
		if slices.Contains(but, a) {
			continue
		}
		delete(k.ports, a)
		if err := port.Close(now); err != nil {
			k.plane.logger.Error("a port stays in the kernel", "address", a, "error", err)
		}
	}
}

// step takes counters in and has the kernel follow the decision.
func (k *kernelPool) step(now time.Duration) error {
	d := k.loop.Step(now, kernel.Count(k.loop.Decision(), slices.Collect(maps.Values(k.ports))))
	for _, port := range k.ports {
		if err := port.Follow(now, d); err != nil {
			return err
		}
	}
	return nil
}

// isActive tells whether the loop needs a step: it says so, or a connection was placed since the last one.
func (k *kernelPool) isActive() bool {
	var placed uint64
	for _, port := range k.ports {
		placed += port.Placed()
	}
	isNew := placed != k.placed
	k.placed = placed
	return isNew || k.loop.Decision().Active
}

// Tick implements dataPlane: the heartbeat, a step of each pool that is in use, and another try of what failed.
func (p *kernelPlane) Tick() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock()
	switch {
	case p.isStopped || p.table == nil:
	case p.plane != nil:
		p.plane.Beat(now)
		changed := false
		for _, pool := range p.order {
			if pool.err == nil && !pool.isActive() {
				continue
			}
			err := pool.err
			if pool.err != nil {
				pool.err = pool.write(now)
			} else {
				pool.err = pool.step(now)
			}
			changed = changed || (err == nil) != (pool.err == nil)
			pool.tell()
		}
		if changed {
			p.publish()
		}
	case p.failing != nil && now >= p.failing.next:
		p.open()
		p.publish()
	}
}

// tell writes to the log what the last step changed.
func (k *kernelPool) tell() {
	k.told.tell(k.plane.logger, k.entry.Key, k.loop)
}

// publish makes what runs visible.
func (p *kernelPlane) publish() {
	r := &reading{table: p.table, open: make(map[netip.AddrPort]bool), problems: slices.Clone(p.table.Problems)}
	for _, pool := range p.order {
		r.pools = append(r.pools, pool)
		for a := range pool.ports {
			r.open[a] = pool.err == nil
		}
		if pool.err != nil {
			why := reason.New(reason.KernelFull, pool.entry.PortName()+": "+pool.err.Error())
			r.problems = append(r.problems, route.Problem{Service: pool.entry.Key.Service.String(), Reason: why})
		}
	}
	if p.failing != nil {
		why := reason.New(reason.KernelUnavailable, p.failing.err.Error()).With("retry", p.failing.pause.Seconds(), reason.Seconds)
		r.problems = append(r.problems, route.Problem{Reason: why})
	}
	if p.plane != nil {
		for _, m := range p.plane.Missing() {
			r.problems = append(r.problems, route.Problem{Reason: reason.New(reason.KernelIncomplete, m)})
		}
	}
	p.log.report(context.Background(), r.problems)
	p.last.Store(r)
}

// Stop leaves new connections to the cluster's own proxy. Established ones go on.
func (p *kernelPlane) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isStopped = true
	if p.plane == nil {
		return
	}
	if err := p.plane.Close(); err != nil {
		p.logger.Warn("the kernel data plane was not closed whole", "error", err)
	}
}

// DetachKernel removes what agents have pinned in a folder, and tells how many hooks it freed.
func DetachKernel(pins string) (int, error) { return kernel.Detach(pins) }
