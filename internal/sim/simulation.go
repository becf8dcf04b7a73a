package sim

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/sim/fleet"
	"github.com/weir-lb/weir/internal/sim/scenario"
	"github.com/weir-lb/weir/internal/sim/strategy"
)

// Options say what to play.
type Options struct {
	Scenario *scenario.Scenario
	Strategy *strategy.Strategy
	Seed     uint64
	Trace    *Trace // nil: none
}

// Trace looks at one client's pool.
type Trace struct {
	Client int // number of the client, from 0, in the order of Scenario.Clients
	// Tick is called after each of the pool's ticks.
	Tick func(now time.Duration, status pick.Status)
}

// tick is how often a pool that is in use steps.
const tick = 100 * time.Millisecond

// The lines of the agenda: what comes a fixed time after it is made.
const (
	lineTimeout = iota // patience of requests
	linePollTimeout
	lineAttempt // of single attempts
	linePollAttempt
	lines
)

// Simulation is one run. One goroutine at a time.
type Simulation struct {
	options Options
	sc      *scenario.Scenario
	now     time.Duration
	agenda  *agenda
	events  int64
	digest  digest

	zones     []clientZone // those of the scenario's clients, in its order
	clients   []client
	exchanges exchanges
	underWay  int // requests that are not over
	network   network

	cluster    *fleet.Fleet
	fleetEvent uint32 // number of the last event of the fleet
	stepped    time.Duration
	servers    []server
	byAddr     map[netip.Addr]int32
	port       portRule
	discovery  discovery
	recorder   *recorder
	oracle     *oracle // nil: clients choose by their pools
	result     *Result
}

// Run plays a scenario from its beginning to its end.
//
// Errors: those of New.
func Run(o Options) (*Result, error) {
	s, err := New(o)
	if err != nil {
		return nil, err
	}
	s.Step(o.Scenario.Length)
	return s.Result(), nil
}

// New sets a scenario up, at time zero.
//
// Errors: a scenario that cannot be played; those that Parse made can.
func New(o Options) (*Simulation, error) {
	if o.Scenario == nil || o.Strategy == nil {
		return nil, errors.New("a simulation needs a scenario and a strategy")
	}
	sc := o.Scenario
	if err := playable(sc); err != nil {
		return nil, fmt.Errorf("play %s: %w", sc.Name, err)
	}
	s := &Simulation{
		options: o, sc: sc, agenda: newAgenda(pace(sc)), digest: newDigest(),
		network: newNetwork(sc.Network),
		byAddr:  make(map[netip.Addr]int32), recorder: newRecorder(sc),
	}
	s.cluster = fleet.New(sc)
	s.port = portOf(sc)
	s.populate()
	s.sync()
	s.observe()
	if o.Strategy.Omniscient {
		s.oracle = newOracle(s)
	}
	for i := range s.clients {
		s.startClient(i)
	}
	s.begin()
	return s, nil
}

// pace is about how many events a second of the scenario has: four for a request, and the ticks of each client.
func pace(sc *scenario.Scenario) float64 {
	clients := 0
	for i := range sc.Clients {
		clients += sc.Clients[i].Count
	}
	const perRequest = 4
	return perRequest*Peak(sc) + float64(clients)*float64(time.Second/tick)
}

// playable refuses what would make the loop run for ever or divide by nothing.
func playable(sc *scenario.Scenario) error {
	switch {
	case len(sc.Snapshot.Services) != 1:
		return fmt.Errorf("it has %d services: want one", len(sc.Snapshot.Services))
	case len(sc.Snapshot.Services[0].Ports) == 0:
		return errors.New("the service has no port")
	case len(sc.Snapshot.Services[0].Families()) == 0:
		return errors.New("the service has neither endpoints nor cluster IPs")
	case sc.Length <= 0:
		return fmt.Errorf("it is %v long: want more than nothing", sc.Length)
	case sc.Server.Workers < 1:
		return fmt.Errorf("endpoints have %d workers: want one at least", sc.Server.Workers)
	case sc.Server.Service.Mean <= 0:
		return fmt.Errorf("the mean service time is %v: want more than nothing", sc.Server.Service.Mean)
	case sc.Request.Timeout <= 0:
		return fmt.Errorf("the timeout is %v: want more than nothing", sc.Request.Timeout)
	}
	for i := range sc.Clients {
		c := &sc.Clients[i]
		if c.Shares != nil && len(c.Shares) != c.Count {
			return fmt.Errorf("zone %s has %d clients and %d shares: want one for each", c.Zone, c.Count, len(c.Shares))
		}
	}
	return nil
}

// begin makes the events that the scenario itself brings.
func (s *Simulation) begin() {
	for i := range s.sc.Steps {
		if at := s.sc.Steps[i].At; at <= s.sc.Length {
			s.agenda.add(at, evStep, uint32(i), 0) //nolint:gosec // an index.
		}
	}
	for at := time.Second; at <= s.sc.Length; at += time.Second {
		s.agenda.add(at, evSecond, 0, 0)
	}
	s.scheduleFleet()
}

// Now is the time of the run.
func (s *Simulation) Now() time.Duration { return s.now }

// Step plays all that happens until then, the instant itself included.
func (s *Simulation) Step(until time.Duration) {
	for {
		e, ok := s.agenda.next(until)
		if !ok {
			break
		}
		s.handle(&e)
	}
	s.now = max(s.now, until)
}

// handle lets one event happen.
func (s *Simulation) handle(e *event) {
	k := e.kind()
	if k == evGiveUp && !s.exchanges.waits(e) {
		return // the answer was there in time, as nearly always
	}
	s.now = e.at
	s.events++
	s.digest.add(uint64(e.at), uint64(k)<<32|uint64(e.about)) //nolint:gosec // times are not negative.
	switch k {
	case evSend:
		s.newRequest(e.about)
	case evTick:
		s.tick(e.about)
	case evLearn:
		s.learn(e.about, int(e.tag))
	case evDrain:
		st := &s.sc.Steps[e.tag]
		s.clients[e.about].pool.Drain(st.Where.Zone, st.At+st.Time)
		s.wake(e.about)
	case evStep:
		s.play(int(e.about))
	case evFleet:
		if e.tag == s.fleetEvent {
			s.stepFleet()
		}
	case evCheck:
		s.check(int(e.about), e.tag)
	case evSecond:
		s.second()
	default:
		s.handleExchange(k, e)
	}
}

// handleExchange lets something happen to an exchange, if it is still the one that the event is about.
func (s *Simulation) handleExchange(k kind, e *event) {
	if s.exchanges.all[e.about].generation != e.tag {
		return
	}
	switch k {
	case evArrive:
		s.arrive(e.about)
	case evServed:
		s.served(e.about)
	case evHeld:
		s.endPoll(e.about)
	case evHear:
		s.hear(e.about)
	case evStreamEnd:
		s.endStream(e.about)
	case evGiveUp:
		s.giveUp(e.about)
	case evRetry:
		s.send(e.about)
	default:
		panic("sim: an event of an unknown kind")
	}
}

// Result sums up what has been played. The first call lets the requests that are under way come to their end; what is
// sent after the scenario's length counts nowhere.
func (s *Simulation) Result() *Result {
	for s.underWay > 0 {
		e, ok := s.agenda.next(never)
		if !ok {
			panic("sim: a request is under way and nothing is to happen")
		}
		s.handle(&e)
	}
	if s.result == nil {
		s.result = s.sumUp()
	}
	return s.result
}

// digest is a hash of all that happens, in order (FNV-1a over words instead of bytes).
type digest uint64

func newDigest() digest { return 0xcbf29ce484222325 }

func (d *digest) add(a, b uint64) {
	const prime = 0x100000001b3
	x := (uint64(*d) ^ a) * prime
	x = (x ^ x>>32 ^ b) * prime
	*d = digest(x)
}
