package pick

import (
	"maps"
	"math"
	"net/netip"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-lb/weir/internal/core/health"
	"github.com/weir-lb/weir/internal/core/overflow"
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

	sequence turn // positions of requests, while there is a choice between routes and they are few
	numbers  turn // state of the pool's own random numbers

	mu        sync.Mutex // guards what is below
	options   Options
	prepared  *Prepared // what was applied last
	revision  int       // of what pickers are made of, but for who serves
	shards    int       // of an age set; a power of two
	ward      ward
	detected  time.Duration // when outliers were last looked for
	warming   bool          // an endpoint starts slowly
	at        time.Duration // of the last step
	busy      time.Duration // when a request was last under way
	members   []*member     // as in the last Update
	groups    []*group      // in waterfall order, home first
	lastID    uint32
	drains    map[topology.Zone]time.Duration
	draining  bool // at the last step
	stale     bool // something that a view is made of has changed since the last one was drafted
	basis     basis
	counters  overflow.Counters // reused from step to step
	decision  overflow.Decision
	reference reference
	left      left
	sampled   bool
	keys      []stretch // where keys lie; see apportion
	draft     view      // of the next view; reused, as are the ones below
	inGroup   []*member
	serving   []*endpoint
	due       []*endpoint
	everyone  []*endpoint
	whole     []*endpoint
	covered   []*endpoint
	indexes   []int // of covered, among the members
	tallies   []health.Tally
	levels    []level
	shares    []float64
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
	if o.Parallel == 1 {
		p.shards = 1 // nobody to keep off
	}
	// Two for each processor: chance seldom brings two of them to the same one.
	for o.Parallel > 1 && p.shards < min(2*o.Parallel, maxShards) {
		p.shards *= 2
	}
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
	if c.route = p.course(v, random, r); c.route == nil {
		return Ticket{}, Shed
	}
	if len(r.Avoid) == 0 && c.route.picker != nil && (len(c.route.due) == 0 || c.route.hashes) {
		c.endpoint = c.route.picker.pick(random, key)
	}
	if c.endpoint == nil || !c.route.takes(c.endpoint) {
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

// course places a request on [0, 2^32), where the routes have their parts; nil where requests are to be shed. With a key
// it is the key's place, so that a change of shares moves keys, not requests. Few requests walk in steps of the golden
// ratio, so that three of ten go abroad when three of ten should. Many are spread by chance: their number evens them out,
// and the walk is a word that all processors write.
func (p *Pool) course(v *view, random uint64, r Request) *groupView {
	switch {
	case !v.split:
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
// algorithm with large tables Apply does the same and keeps nobody waiting.
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
		rules := x.config.Health.WithDefaults()
		p.ward.rules.Store(&rules)
		p.revision++
		if rules.Outliers == nil {
			for _, m := range p.members { // what was counted for a policy that is gone does not count for the next
				m.interval = health.Tally{}
			}
		}
	}
	p.prepared, p.stale = x, true
	p.limit()
}

// limit tells the ward how many may sit out.
func (p *Pool) limit() {
	ready := 0
	for _, g := range p.groups {
		ready += len(g.Ready)
	}
	p.ward.allowed.Store(int64(p.ward.rules.Load().Allowed(ready)))
}

// replace makes the members those of the targets, and tells the strategy, though it may be the same ones: then the caller
// has another strategy behind the one that the pool knows.
func (p *Pool) replace(now time.Duration) {
	targets := p.prepared.targets
	before := make(map[netip.AddrPort]*member, len(p.members))
	for _, m := range p.members {
		before[m.target.Addr] = m
	}
	joined := now
	if len(p.members) == 0 {
		joined = longAgo // nobody is new among the first
	}
	members := make([]*member, 0, len(targets))
	for _, t := range targets {
		m := before[t.Addr]
		if m == nil || !m.is(t) {
			m = p.newMember(t, joined)
		} else {
			delete(before, t.Addr)
			p.adopt(m, t, now)
		}
		members = append(members, m)
	}
	for _, m := range before {
		m.remove()
	}
	p.members = members
	p.groups = regroup(p.members, p.groups, p.options.Rotate)
	if slices.ContainsFunc(p.groups, func(g *group) bool { return g.Parted }) {
		p.revision++ // a part's pickers count who is not ready, too
	}
	for _, g := range p.groups {
		g.past.empty = false // who has gone may have left requests in it
	}
	p.stale = true
	p.limit()
	p.options.Strategy.Reset(now, scene(p.groups, p.options.Zone, len(p.members)))
}

// adopt takes over what may change of an endpoint while it stays the same.
func (p *Pool) adopt(m *member, t Target, now time.Duration) {
	was := &m.target
	if was.Weight != t.Weight || was.HashKey != t.HashKey ||
		was.Affinity != t.Affinity || was.AffinityWeight != t.AffinityWeight {
		p.revision++
	}
	switch {
	case was.Unready && !t.Unready:
		m.joined = now
	case t.Unready && !was.Unready: // it need not hold a place among those who sit out
		m.restore()
		p.settle(m, now)
	}
	// One by one: requests read the others.
	was.Home, was.Tier, was.Unready = t.Home, t.Tier, t.Unready
	was.Weight, was.HashKey, was.Affinity, was.AffinityWeight = t.Weight, t.HashKey, t.Affinity, t.AffinityWeight
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
	if len(p.drains) == 0 {
		return false
	}
	maps.DeleteFunc(p.drains, func(_ topology.Zone, until time.Duration) bool { return until <= now })
	return len(p.drains) > 0
}

// member is an endpoint as the loop knows it.
type member struct {
	*endpoint
	group  int           // index into Pool.groups
	joined time.Duration // when it came, became ready, or came back from a pause
	health health.Record

	seen     reading // at the last step
	did      did     // since the step before
	recent   recent
	stood    uint32       // its standing at the last step
	interval health.Tally // since outliers were last looked for
	drained  bool
}

// longAgo is when the first endpoints joined: before any slow start.
const longAgo = time.Duration(math.MinInt64 / 4)

// is tells whether the member is the endpoint that t describes.
func (m *member) is(t Target) bool {
	return m.target.Addr == t.Addr && m.target.Zone == t.Zone && m.target.Cluster == t.Cluster && m.target.Cost == t.Cost
}
