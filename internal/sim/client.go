package sim

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/sim/scenario"
	"github.com/weir-lb/weir/internal/sim/strategy"
)

// clientZone is a zone that has clients.
type clientZone struct {
	topology.Zone
	nodes []string
}

// client is a process that sends requests, with a balancer of its own.
type client struct {
	zone int // index into Simulation.zones
	node string
	pool *pick.Pool
	// capped is around the pool's strategy.
	capped *overflow.Capped

	arrivals *Arrivals
	chance   *rand.Rand        // of its network and its pauses
	known    []int32           // server by the pool's ID of an endpoint, plus 1; 0: not asked yet
	used     []time.Duration   // when it last sent to a server
	latest   int               // what it has learned
	reports  []strategy.Report // the last of each server
	late     float64           // when it learns of changes: from -1, the first of all, to 1
	ticking  bool
	phase    time.Duration
	spending budget
}

// notConnected is when a client last sent to a server that it has no connection to.
const notConnected = time.Duration(math.MinInt64 / 2)

// keptAlive is how long a connection stays open without a request: a usual value of servers and proxies is a minute, of
// libraries much less.
const keptAlive = 30 * time.Second

// populate makes zones and clients.
func (s *Simulation) populate() {
	all := strategy.Client{}
	for i := range s.sc.Clients {
		c := &s.sc.Clients[i]
		all.Clients = append(all.Clients, strategy.ZoneCount{Zone: c.Zone, Count: c.Count})
		h := clientZone{Zone: c.Zone}
		for j := range s.sc.Snapshot.Nodes {
			if n := &s.sc.Snapshot.Nodes[j]; n.Zone == c.Zone && n.Ready && !n.ControlPlane {
				h.nodes = append(h.nodes, n.Name)
			}
		}
		s.zones = append(s.zones, h)
	}
	for _, a := range NewArrivals(s.sc, s.options.Seed) {
		s.clients = append(s.clients, s.newClient(a, all))
	}
}

// newClient makes the client that sends these requests.
func (s *Simulation) newClient(a *Arrivals, info strategy.Client) client {
	of, seed, number := &s.zones[a.Row], s.options.Seed, len(s.clients)
	c := client{
		zone:     a.Row,
		arrivals: a,
		chance:   rand.New(generator(seed, ofPaths, number)), //nolint:gosec // not for secrets.
		latest:   -1,
	}
	if len(of.nodes) > 0 {
		c.node = of.nodes[a.Place%len(of.nodes)]
	}
	info.Zone = of.Zone
	info.Reports = func(endpoint int) (strategy.Report, bool) { return s.reported(number, endpoint) }
	c.capped = &overflow.Capped{Strategy: s.options.Strategy.New(info)}
	c.pool = pick.NewPool(pick.Options{
		Zone: of.Zone, Random: generator(seed, ofPool, number).Uint64, Strategy: c.capped,
		Config: s.options.Strategy.Pool, Rotate: uint64(number), Parallel: 1,
	})
	early := rand.New(generator(seed, ofDiscovery, number)) //nolint:gosec // not for secrets.
	c.late = 2*early.Float64() - 1
	c.phase = time.Duration(early.Int64N(int64(tick)))
	return c
}

// startClient lets a client begin: it knows what there is, and waits for its first request.
func (s *Simulation) startClient(i int) {
	s.learn(uint32(i), 0) //nolint:gosec // an index.
	s.await(uint32(i))    //nolint:gosec // an index.
}

// await makes the event of the client's next request.
func (s *Simulation) await(i uint32) {
	if at := s.clients[i].arrivals.next; at != never {
		s.agenda.add(max(at, s.now), evSend, i, 0)
	}
}

// newRequest makes a request of the client, with everything that chance has to say about it, and sends it.
func (s *Simulation) newRequest(i uint32) {
	c := &s.clients[i]
	c.arrivals.expect()
	s.await(i)
	slot := s.exchanges.add()
	x := &s.exchanges.all[slot]
	q := c.arrivals.take()
	x.due, x.client = s.now, int32(i) //nolint:gosec // an index.
	x.work, x.luck, x.form, x.hold = q.work, q.luck, q.form, q.hold
	s.underWay++
	s.result = nil
	c.spending.request(&s.sc.Request, s.now)
	s.send(slot)
}

// send asks the client's pool, or the oracle, for an endpoint and sends the exchange there.
func (s *Simulation) send(slot uint32) {
	x := &s.exchanges.all[slot]
	choose := s.choose
	if s.oracle != nil {
		choose = s.oracle.choose
	}
	switch choose(x) {
	case pick.Shed:
		s.end(slot, ending{shed: true})
		s.exchanges.remove(slot)
		return
	case pick.NoEndpoint:
		x.tries++
		x.refused = true
		s.failed(slot, pick.LocalError)
		s.exchanges.remove(slot)
		return
	case pick.Picked:
	}
	x.tries++
	c := &s.clients[x.client]
	for int(x.server) >= len(c.used) {
		c.used = append(c.used, notConnected)
	}
	x.connects = s.now-c.used[x.server] > keptAlive
	c.used[x.server] = s.now
	x.stage = leaving
	s.setTimeouts(slot)
	s.servers[x.server].coming++
	s.travel(slot, evArrive)
}

// choose asks the client's pool for the exchange's endpoint.
func (s *Simulation) choose(x *exchange) pick.Verdict {
	i := uint32(x.client) //nolint:gosec // an index.
	c := &s.clients[i]
	ticket, verdict := c.pool.Pick(s.now, pick.Request{Avoid: x.avoid()})
	s.wake(i)
	if verdict != pick.Picked {
		return verdict
	}
	x.ticket = ticket
	if x.tries < maxTried {
		x.tried[x.tries] = ticket.ID()
	}
	x.cost += float64(ticket.Cost())
	x.server = s.serverOf(c, &x.ticket)
	return pick.Picked
}

// serverOf finds the server that a ticket is for.
func (s *Simulation) serverOf(c *client, t *pick.Ticket) int32 {
	id := int(t.ID())
	for id >= len(c.known) {
		c.known = append(c.known, 0)
	}
	if c.known[id] == 0 {
		c.known[id] = s.byAddr[t.Addr().Addr()] + 1
	}
	return c.known[id] - 1
}

// setTimeouts makes the events of the client's timeouts. Those of a poll begin when its answer may come.
func (s *Simulation) setTimeouts(slot uint32) {
	x, r := &s.exchanges.all[slot], &s.sc.Request
	attempt, total, single := r.Attempt, lineTimeout, lineAttempt
	if x.form == poll {
		attempt, total, single = attempt+x.hold, linePollTimeout, linePollAttempt
	}
	over := s.deadline(x)
	e := event{order: uint64(evGiveUp), about: slot, tag: x.generation}
	switch {
	case r.Attempt > 0 && s.now+attempt < over:
		s.agenda.append(single, s.now+attempt, e)
	case x.due == s.now:
		s.agenda.append(total, over, e)
	default:
		s.agenda.add(over, evGiveUp, slot, x.generation)
	}
}

// hear takes what became of an exchange.
func (s *Simulation) hear(slot uint32) {
	x := &s.exchanges.all[slot]
	if s.options.Strategy.Reports && x.stage == returning && x.outcome != pick.LocalError {
		s.report(x)
	}
	switch {
	case x.abandoned:
	case x.stage == broken:
		x.ticket.Close(s.now, pick.LocalError)
	case x.outcome != pick.Success:
		x.ticket.Close(s.now, x.outcome)
		if !s.reconnect(slot) {
			s.failed(slot, x.outcome)
		}
	case x.form == stream:
		x.ticket.Answer(s.now, pick.Success)
		s.end(slot, ending{success: true})
		s.begins(slot)
		return
	default:
		x.ticket.Close(s.now, pick.Success)
		s.end(slot, ending{success: true})
	}
	s.exchanges.remove(slot)
}

// reconnect goes to another endpoint at once when a connection was refused, as far as the strategy does that.
func (s *Simulation) reconnect(slot uint32) bool {
	x := &s.exchanges.all[slot]
	if !x.refused || int(x.again) >= s.options.Strategy.Reconnects || s.now >= s.deadline(x) {
		return false
	}
	x.again++
	s.send(s.exchanges.renew(slot))
	return true
}

// deadline is when the client gives up.
func (s *Simulation) deadline(x *exchange) time.Duration {
	if x.form == poll {
		return x.due + s.sc.Request.Timeout + x.hold
	}
	return x.due + s.sc.Request.Timeout
}

// begins keeps a stream open after its headers.
func (s *Simulation) begins(slot uint32) {
	x := &s.exchanges.all[slot]
	v := &s.servers[x.server]
	x.stage = open
	s.use(v)
	v.streams++
	s.agenda.add(s.now+x.hold, evStreamEnd, slot, x.generation)
}

// endStream closes a stream after its time.
func (s *Simulation) endStream(slot uint32) {
	x := &s.exchanges.all[slot]
	v := &s.servers[x.server]
	s.use(v)
	v.streams--
	outcome := pick.Success
	if v.lost || v.fault.Hang {
		outcome = pick.LocalError
	}
	x.ticket.Close(s.now, outcome)
	s.exchanges.remove(slot)
}

// giveUp ends an exchange at its timeout. The endpoint goes on with what it has begun.
func (s *Simulation) giveUp(slot uint32) {
	x := &s.exchanges.all[slot]
	x.ticket.Close(s.now, pick.LocalError)
	x.abandoned = true
	gone := x.stage == swallowed
	s.failed(slot, pick.LocalError)
	if gone {
		s.exchanges.remove(slot)
	}
}

// failed tries a request again whose attempt failed, or ends it.
func (s *Simulation) failed(slot uint32, o pick.Outcome) {
	x, r := &s.exchanges.all[slot], &s.sc.Request
	c := &s.clients[x.client]
	asked := int(x.tries - x.again) // by the client itself
	if asked > r.Retries || !retryable(r, o) || !c.spending.retry(r, s.now) {
		s.end(slot, ending{})
		return
	}
	pause := time.Duration(0)
	if r.Backoff > 0 {
		const most = 20 // doublings: longer than any timeout
		doubled := float64(uint64(1) << min(asked-1, most))
		pause = time.Duration(float64(r.Backoff) * doubled * c.chance.ExpFloat64())
	}
	if s.now+pause >= s.deadline(x) {
		s.end(slot, ending{})
		return
	}
	next := s.exchanges.renew(slot)
	s.agenda.add(s.now+pause, evRetry, next, s.exchanges.all[next].generation)
}

// retryable tells whether an attempt that ended so may be tried again.
func retryable(r *scenario.Request, o pick.Outcome) bool {
	return o == pick.LocalError || r.Accepted
}

// ending is how a request ended.
type ending struct{ success, shed bool }

// end is the end of a request: it is counted, once.
func (s *Simulation) end(slot uint32, how ending) {
	x := &s.exchanges.all[slot]
	s.underWay--
	o := outcome{
		zone: s.clients[x.client].zone, due: x.due, took: s.now - x.due, ending: how, tries: int(x.tries), cost: x.cost,
	}
	if x.form == poll {
		o.took -= x.hold
	}
	if x.tries > 0 && !x.refused {
		o.taken = true
		o.crossed = s.servers[x.server].paths[o.zone] != inZone
	}
	s.recorder.add(&o)
	s.digest.add(uint64(o.took), uint64(x.server)<<8|uint64(x.tries)) //nolint:gosec // for a hash.
}

// wake makes the client's pool tick again when it needs to.
func (s *Simulation) wake(i uint32) {
	c := &s.clients[i]
	if c.ticking || s.options.Strategy.Blind && !s.traced(i) || !c.pool.Active(s.now) {
		return
	}
	c.ticking = true
	next := (s.now - c.phase).Truncate(tick) + c.phase
	for next <= s.now {
		next += tick
	}
	s.agenda.add(next, evTick, i, 0)
}

// traced tells whether the client is the traced one.
func (s *Simulation) traced(i uint32) bool {
	return s.options.Trace != nil && s.options.Trace.Client == int(i)
}

// tick lets the pool of a client step.
func (s *Simulation) tick(i uint32) {
	c := &s.clients[i]
	c.pool.Tick(s.now)
	if s.traced(i) {
		s.options.Trace.Tick(s.now, c.pool.Status())
	}
	if c.ticking = c.pool.Active(s.now); c.ticking {
		s.agenda.add(s.now+tick, evTick, i, 0)
	}
}

// budget bounds retries to a fraction of recent requests.
type budget struct {
	requests, retries float64 // decayed
	at                time.Duration
}

// recent is how long requests and retries count: linkerd and finagle look back for ten seconds.
const recent = 10 * time.Second

func (b *budget) decay(now time.Duration) {
	keep := math.Exp(-float64(now-b.at) / float64(recent))
	b.requests, b.retries, b.at = b.requests*keep, b.retries*keep, now
}

// request counts a request.
func (b *budget) request(r *scenario.Request, now time.Duration) {
	if r.Retries > 0 && r.Budget > 0 {
		b.decay(now)
		b.requests++
	}
}

// retry asks for a retry, and counts it if it may be.
func (b *budget) retry(r *scenario.Request, now time.Duration) bool {
	if r.Budget <= 0 {
		return true
	}
	b.decay(now)
	if b.retries+1 > b.requests*r.Budget {
		return false
	}
	b.retries++
	return true
}
