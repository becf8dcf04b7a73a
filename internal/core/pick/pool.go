package pick

import (
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-lb/weir/internal/core/balance"
	"github.com/weir-lb/weir/internal/core/topology"
)

// Pool is safe for concurrent use. Requests only call Pick and never wait; Update, Configure, Apply, Tick, Drain and Status
// wait for each other.
type Pool struct {
	// What requests read; written when something changes.
	view   atomic.Pointer[view]
	awake  atomic.Bool // ticks are needed
	random func() uint64
	_      [64]byte // keeps what is below off the line that all requests read

	sequence counter // positions of requests, while there is a choice between routes and they are few
	numbers  counter // state of the pool's own random numbers
	detector detector

	mu        sync.Mutex // guards what is below
	loop      *balance.Loop
	decision  *balance.Decision // of the loop
	prepared  *Prepared         // what was applied last
	endpoints []*endpoint       // as in decision
	groups    []*group          // as in decision
	lastID    uint32
	shards    int // of an age set; a power of two
	counters  balance.Counters
	at        time.Duration // of the last step
	sampled   bool          // requests are many
	inputs    inputs        // of the last view
}

// NewPool makes an empty pool.
func NewPool(o Options) *Pool {
	p := &Pool{random: o.Random, shards: 4}
	if p.random == nil {
		p.random = func() uint64 { return scatter(p.numbers.n.Add(golden)) }
	}
	if o.Parallel == 1 {
		p.shards = 1 // there are no others to keep off
	}
	// Two for each processor: chance seldom brings two of them to the same one.
	for o.Parallel > 1 && p.shards < min(2*o.Parallel, maxShards) {
		p.shards *= 2
	}
	p.loop = balance.New(balance.Options{Zone: o.Zone, Strategy: o.Strategy, Random: p.random, Rotate: o.Rotate}, balance.Config{})
	p.decision = p.loop.Decision()
	p.configure(Prepare(o.Config, nil))
	p.view.Store(new(view))
	return p
}

// Pick chooses an endpoint. now is monotonic, since an origin that all calls share. The Ticket counts only if the
// verdict is Picked.
func (p *Pool) Pick(now time.Duration, r Request) (Ticket, Verdict) {
	v := p.view.Load()
	if len(v.routes) == 0 && !v.shed {
		return Ticket{}, NoEndpoint
	}
	random := p.random()
	key := random
	if r.HasKey {
		key = r.Key
	}
	var c choice
	if c.route = p.route(v, random, r); c.route == nil {
		return Ticket{}, Shed
	}
	if len(r.Avoid) == 0 && c.route.picker != nil && (len(c.route.due) == 0 || v.hashes) {
		c.endpoint = c.route.picker.pick(random, key)
	}
	if c.endpoint == nil || !c.route.takes(c.endpoint) {
		var ok bool
		if c, ok = v.search(c.route, query{random: random, key: key, avoid: r.Avoid}); !ok {
			return Ticket{}, NoEndpoint
		}
	}
	c.endpoint.flow.Add(startOne)
	slot, tag := c.route.ages.enter(now, random)
	// After the count: either Tick, on its way to sleep, sees the request, or the request sees that Tick sleeps.
	if !p.awake.Load() {
		p.awake.Store(true)
	}
	return Ticket{
		endpoint: c.endpoint, group: c.route.group, slot: slot, start: now, tag: tag, trial: c.trial,
	}, Picked
}

// route gives the route of a request by a position in [0, 2^32), of which each route has a part; nil where requests are to be
// shed. With a key the position depends on the key alone, so that a change of shares moves keys, not requests. Few requests
// have positions in steps of the golden ratio, so that of ten requests three leave the zone when three of ten should. Many
// have random ones: their number evens them out, and a sequence is a word that all processors write.
func (p *Pool) route(v *view, random uint64, r Request) *groupView {
	switch {
	case len(v.routes) == 1 && !v.shed:
		return &v.routes[0]
	case r.HasKey:
		return v.keyed(upper(scatter(r.Key)))
	case v.sampled:
		return v.at(upper(scatter(random)))
	default:
		return v.at(upper(p.sequence.n.Add(golden)))
	}
}

// Update replaces the endpoints. Those that stay, by address, zone, cluster and cost, keep what is known of them. For an
// algorithm with large tables Apply does the same without making requests of status wait.
func (p *Pool) Update(now time.Duration, targets []Target) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.configure(prepare(p.prepared.config, targets, p.prepared.make))
	p.replace(now)
	p.step(now)
}

// Configure replaces the Config. Endpoints and groups keep all that is known of them, and requests under way go on.
func (p *Pool) Configure(now time.Duration, c Config) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.configure(Prepare(c, p.prepared.targets))
	p.step(now)
}

// Apply replaces both the Config and the endpoints, as Configure and Update would.
func (p *Pool) Apply(now time.Duration, x *Prepared) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.configure(x)
	p.replace(now)
	p.step(now)
}

// configure takes over what does not depend on what is known of the endpoints.
func (p *Pool) configure(x *Prepared) {
	if p.prepared == nil || !reflect.DeepEqual(p.prepared.config, x.config) {
		p.loop.Configure(x.config.Config)
		rules := x.config.Health.WithDefaults()
		p.detector.rules.Store(&rules)
		asked := rules
		asked.Failures = -1
		p.detector.asked.Store(&asked)
		p.inputs.renew()
	} else if !slices.Equal(p.prepared.targets, x.targets) {
		p.inputs.renew()
	}
	p.prepared = x
}

// replace makes the endpoints and groups those of what is prepared.
func (p *Pool) replace(now time.Duration) {
	kept := p.loop.Apply(now, p.prepared.targets)
	before, groups := p.endpoints, p.groups
	p.endpoints, p.groups = make([]*endpoint, len(kept.Endpoints)), make([]*group, len(kept.Groups))
	for i, at := range kept.Endpoints {
		if at < 0 {
			p.lastID++
			p.endpoints[i] = newEndpoint(p.lastID, p.prepared.targets[i], &p.detector)
			continue
		}
		p.endpoints[i], before[at] = before[at], nil
		p.endpoints[i].change(&p.prepared.targets[i])
	}
	for _, e := range before {
		if e != nil {
			e.remove()
		}
	}
	for i, at := range kept.Groups {
		if at < 0 {
			p.groups[i] = newGroup()
			continue
		}
		p.groups[i] = groups[at]
		p.groups[i].past.empty = false // endpoints that are gone may have left requests in it
	}
}

// Tick reads what was counted and publishes the next view. Call it every 100 ms while Active.
func (p *Pool) Tick(now time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.step(now)
}

func (p *Pool) step(now time.Duration) {
	p.read(now)
	p.loop.Step(now, &p.counters)
	p.follow(now)
	p.publish()
	p.rest()
}

// rest lets the pool sleep when the loop needs no steps and no request came in meanwhile.
func (p *Pool) rest() {
	if p.decision.Active {
		if !p.awake.Load() {
			p.awake.Store(true)
		}
		return
	}
	p.awake.Store(false)
	for _, e := range p.endpoints {
		if e.flow.Load()>>32 != e.seen.flow>>32 {
			p.awake.Store(true)
			return
		}
	}
}

// Active tells whether the pool needs ticks: requests are under way or were a short while ago, or something is still
// unwinding.
func (p *Pool) Active(time.Duration) bool { return p.awake.Load() }

// Drain asks that nothing be sent to a zone until then; a time that has passed ends the drain. It takes effect with the
// next Tick. A drain that would leave no endpoint is not followed.
func (p *Pool) Drain(zone topology.Zone, until time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.loop.Drain(zone, until)
	p.awake.Store(true)
}

type (
	// Status is the state of a pool, for people and metrics.
	Status = balance.Status
	// GroupStatus is the state of one of its groups.
	GroupStatus = balance.Group
	// EndpointStatus is the state of one of its endpoints.
	EndpointStatus = balance.Endpoint
	// Brief is the part of the state that shows whether something happened.
	Brief = balance.Brief
)

// Brief tells the little that changes seldom. It is safe for concurrent use and allocates nothing.
func (p *Pool) Brief() Brief {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.loop.Brief()
}

// Status tells how the pool stands. It is safe for concurrent use.
func (p *Pool) Status() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.loop.Status()
	for i, g := range p.groups {
		s.Groups[i].RTT = time.Duration(g.rtt.Load())
	}
	for i, e := range p.endpoints { // requests go on between two ticks
		to := &s.Endpoints[i]
		to.InFlight, to.Out, to.Slowdown = e.inFlight(), e.standing.Load() != serving, float64(e.weight.Load())/weightOne
	}
	return s
}
