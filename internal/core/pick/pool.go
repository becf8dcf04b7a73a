package pick

import (
	"maps"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-lb/weir/internal/core/health"
	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/topology"
)

// Pool is safe for concurrent use. Requests only call Pick and never wait; Update, Tick, Drain and Status wait for each
// other.
type Pool struct {
	// What requests read; written when something changes.
	view   atomic.Pointer[view]
	awake  atomic.Bool // ticks are needed
	random func() uint64
	_      [64]byte // keeps what is below off the line that all requests read

	sequence turn // positions of requests, while there is a choice between routes and they are few
	numbers  turn // state of the pool's own random numbers

	mu        sync.Mutex // guards what is below
	options   Options
	shards    int // of an age set; a power of two
	ward      ward
	at        time.Duration // of the last step
	busy      time.Duration // when a request was last under way
	members   []*member     // as in the last Update
	groups    []*group      // in waterfall order, home first
	lastID    uint32
	drains    map[topology.Zone]time.Duration
	counters  overflow.Counters // reused from step to step
	decision  overflow.Decision
	reference reference
	sampled   bool
	draft     view // of the next view; reused, as are the four below
	inGroup   []*member
	serving   []*endpoint
	due       []*endpoint
	everyone  []*endpoint
}

// NewPool makes an empty pool.
func NewPool(o Options) *Pool {
	p := &Pool{options: o, random: o.Random, shards: 4, drains: make(map[topology.Zone]time.Duration)}
	if p.random == nil {
		p.random = func() uint64 { return scatter(p.numbers.n.Add(golden)) }
	}
	if p.options.Strategy == nil {
		p.options.Strategy = &homeOnly{}
	}
	// Two for each processor: chance seldom brings two of them to the same one.
	for p.shards < min(2*o.Parallel, maxShards) {
		p.shards *= 2
	}
	p.ward.rules = o.Config.Health.WithDefaults()
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
	if !v.split {
		c.route = &v.routes[0]
	} else if c.route = v.at(p.position(v, random, r)); c.route == nil {
		return Ticket{}, Shed
	}
	if len(c.route.due) == 0 && len(r.Avoid) == 0 && c.route.picker != nil {
		c.endpoint = c.route.picker.pick(random, key)
	}
	if c.endpoint == nil || c.endpoint.standing.Load() != serving {
		var ok bool
		if c, ok = v.search(c.route, query{random: random, key: key, avoid: r.Avoid}); !ok {
			return Ticket{}, NoEndpoint
		}
	}
	c.endpoint.flow.Add(startOne)
	slot, tag := c.route.ring.enter(now, random)
	// After the count: either Tick, on its way to sleep, sees the request, or the request sees that Tick sleeps.
	if !p.awake.Load() {
		p.awake.Store(true)
	}
	return Ticket{
		endpoint: c.endpoint, group: c.route.group, slot: slot, start: now, tag: tag, trial: c.trial,
	}, Picked
}

// position places a request on [0, 2^32), where the routes have their parts. With a key it is the key's place, so that
// a change of shares moves keys, not requests. Few requests walk in steps of the golden ratio, so that three of ten go
// abroad when three of ten should. Many are spread by chance: their number evens them out, and the walk is a word that
// all processors write.
func (p *Pool) position(v *view, random uint64, r Request) uint64 {
	switch {
	case r.HasKey:
		return upper(scatter(r.Key))
	case v.sampled:
		return upper(scatter(random))
	default:
		return upper(p.sequence.n.Add(golden))
	}
}

// Update replaces the endpoints. Those that stay, by address, zone, cluster and cost, keep what is known of them.
func (p *Pool) Update(now time.Duration, targets []Target) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := make(map[netip.AddrPort]*member, len(p.members))
	for _, m := range p.members {
		before[m.target.Addr] = m
	}
	joined := now
	if len(p.members) == 0 {
		joined = now - slowStart // nobody is new among the first
	}
	members := make([]*member, 0, len(targets))
	seen := make(map[netip.AddrPort]bool, len(targets))
	for _, t := range targets {
		if seen[t.Addr] {
			continue // an endpoint that two slices name is one endpoint
		}
		seen[t.Addr] = true
		m := before[t.Addr]
		if m == nil || !m.is(t) {
			m = p.newMember(t, joined)
		} else {
			delete(before, t.Addr)
		}
		m.home = t.Home
		members = append(members, m)
	}
	for _, m := range before {
		m.remove()
	}
	p.members = members
	p.groups = regroup(p.members, p.groups, p.options.Rotate)
	p.ward.allowed.Store(int64(p.ward.rules.Allowed(len(p.members))))
	p.options.Strategy.Reset(now, scene(p.groups, p.options.Zone, len(p.members)))
	p.step(now)
}

func (p *Pool) newMember(t Target, joined time.Duration) *member {
	p.lastID++
	e := &endpoint{id: p.lastID, ward: &p.ward, target: t}
	e.weight.Store(weightOne)
	return &member{endpoint: e, joined: joined}
}

// Tick folds what was counted and publishes the next view. Call it every 100 ms while Active.
func (p *Pool) Tick(now time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.step(now)
}

// Active tells whether the pool needs ticks: requests are under way or were a short while ago, or something is still
// unwinding.
func (p *Pool) Active(time.Duration) bool { return p.awake.Load() }

// Drain asks that nothing be sent to a zone until then; a time that has passed ends the drain. It takes effect with the
// next Tick. A drain that would leave nobody is not followed.
func (p *Pool) Drain(zone topology.Zone, until time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drains[zone] = until
	p.awake.Store(true)
}

// lift forgets drains whose time has passed and tells whether any is left.
func (p *Pool) lift(now time.Duration) bool {
	maps.DeleteFunc(p.drains, func(_ topology.Zone, until time.Duration) bool { return until <= now })
	return len(p.drains) > 0
}

// member is an endpoint as the loop knows it.
type member struct {
	*endpoint
	home   bool
	group  int // index into Pool.groups
	joined time.Duration
	health health.Record

	seen    reading // at the last step
	did     did     // since the step before
	recent  recent
	drained bool
}

// is tells whether the member is the endpoint that t describes; Home may differ.
func (m *member) is(t Target) bool {
	t.Home = m.target.Home
	return m.target == t
}
