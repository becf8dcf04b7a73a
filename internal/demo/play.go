package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/weir-lb/weir/internal/l7"
	"github.com/weir-lb/weir/internal/sim"
	"github.com/weir-lb/weir/internal/sim/scenario"
)

// DefaultSeed makes two runs have the same requests, as far as the machine's own noise allows.
const DefaultSeed = 1

// Options say how to play a scenario. The zero value plays weir's own strategy with seed 1 and shows nothing.
type Options struct {
	Player      Player   // how agents balance
	Seed        uint64   // of arrivals and service times; 0: 1
	Progress    *Display // nil: none
	ManifestDir string   // where to write the cluster as Kubernetes objects; empty: nowhere

	// Patience is how long clients wait for an answer, which counts as failed after the request's timeout all the same;
	// agents have their usual timeouts then. 0: agents give up at the timeout, as the balancers of simulated clients do.
	Patience time.Duration
}

// ScriptPatience is the patience of the script's clients. It is so much longer than a request's timeout because a client that
// gives up has to connect again: on a machine without time to spare a stall would be followed by so many new connections
// that they take more time than the requests did.
const ScriptPatience = 10 * time.Second

// limits gives how long clients wait and how many requests of one may be outstanding, and the timeouts of agents.
func (o *Options) limits(r *scenario.Request) (limits, l7.Timeouts) {
	if o.Patience > 0 {
		// A zone that hangs makes about 200 outstanding requests of the script, a surge 60.
		return limits{timeout: r.Timeout, patience: o.Patience, outstanding: 512}, l7.Timeouts{}
	}
	// The agent's answer that no endpoint answered in time has to arrive. The outstanding ones are far above what a zone that
	// swallows everything makes of any rate that one machine can play, so that none is ever dropped.
	const slack, outstanding = 500 * time.Millisecond, 8192
	return limits{timeout: r.Timeout, patience: r.Timeout + slack, outstanding: outstanding},
		l7.Timeouts{Request: r.Timeout, Response: cmp.Or(r.Attempt, r.Timeout), Connect: r.Timeout}
}

// Play plays a scenario on real sockets: an HTTP server for each endpoint, an agent for each client with listeners and a
// pool of its own, and clients that keep their rate. What a client sends, when, and how much work it is does not depend on
// what becomes of it.
//
// What a network has more than loopback is slept at the endpoint, half of it before a request is taken and half before its
// answer; endpoints that are lost swallow everything, and the agents' view of the cluster changes when the scenario says.
//
// When ctx ends first, the report is of the part that was played, and marked as interrupted.
// Errors: what Playable refuses; addresses and processes that could not be had.
func Play(ctx context.Context, sc *scenario.Scenario, o Options) (r *Report, err error) {
	o.Player = o.Player.withDefaults()
	o.Seed = cmp.Or(o.Seed, DefaultSeed)
	if o.Progress == nil {
		o.Progress = &Display{}
	}
	if err := Playable(sc, o.Player); err != nil {
		return nil, err
	}
	began := time.Now()
	p := &play{scenario: sc, options: o, clock: func() time.Duration { return time.Since(began) }}
	defer func() { err = errors.Join(err, p.close()) }()
	if err := p.build(); err != nil {
		return nil, err
	}
	p.agents, err = startAgents(ctx, p.specs)
	if err != nil {
		return nil, fmt.Errorf("start agents: %w", err)
	}
	defer func() { err = errors.Join(err, p.agents.close()) }()
	if err := p.perform(ctx); err != nil {
		return nil, err
	}
	o.Progress.finish()
	return p.report(), nil
}

// play is one scenario being played.
type play struct {
	scenario  *scenario.Scenario
	options   Options
	phases    []Phase
	layout    *layout
	endpoints []*endpoint // in the order of layout.endpoints
	specs     []agentSpec
	agents    *agents
	reached   tracker
	log       *requestLog
	clock     func() time.Duration // since the play was made
	origin    time.Duration        // when the run began, on the clock
	end       time.Duration        // when it ended, since the origin; 0: it has not
}

// build starts the endpoints, and prepares the agents.
func (p *play) build() (err error) {
	if p.layout, err = newLayout(p.scenario); err != nil {
		return err
	}
	p.phases = Phases(p.scenario)
	p.log = newRequestLog(p.layout)
	for i, at := range p.layout.endpoints {
		random := rand.New(rand.NewPCG(p.options.Seed, uint64(i))) // of errors only: the clients tell how much work there is
		e := newEndpoint(at.addr, p.layout.capacity(i), random, &endpointTraffic{play: p, endpoint: i})
		p.endpoints = append(p.endpoints, e)
		if err := e.set(scenario.Condition{}); err != nil {
			return err
		}
	}
	if p.specs, err = p.layout.agentSpecs(&p.options); err != nil || p.options.ManifestDir == "" {
		return err
	}
	return writeManifests(p.options.ManifestDir, p.layout.snapshot(p.options.Player, apiState{}))
}

func (p *play) close() error {
	var errs []error
	for _, e := range p.endpoints {
		errs = append(errs, e.close())
	}
	return errors.Join(errs...)
}

// perform runs clients and events together, until the last request is over. That ctx ends is no error.
func (p *play) perform(ctx context.Context) error {
	within, stop := context.WithCancel(ctx)
	var clients sync.WaitGroup
	defer clients.Wait()
	defer stop()
	p.origin = p.clock()
	arrivals := sim.NewArrivals(p.scenario, p.options.Seed)
	limits, _ := p.options.limits(&p.scenario.Request)
	for i, c := range p.layout.clients {
		g := newGenerator(target{
			row: c.row, zone: string(c.Zone),
			url: "http://" + c.addr.String() + "/", host: p.layout.host(),
			limits: limits, reached: &p.reached,
		}, p.sinceOrigin, p.log.add)
		clients.Go(func() {
			g.run(within, func() (request, bool) {
				due, work, ok := arrivals[i].Next()
				return request{due: due, work: work}, ok
			})
		})
	}
	if err := p.follow(within); err != nil {
		return err
	}
	p.end = min(p.sinceOrigin(), p.scenario.Length)
	clients.Wait() // no request is due any more: what is under way ends within its patience
	return nil
}

func (p *play) sinceOrigin() time.Duration { return p.clock() - p.origin }

// follow makes the scenario's changes at their times, and shows progress, until the scenario or ctx is over.
func (p *play) follow(ctx context.Context) error {
	ticker := time.NewTicker(liveEvery)
	defer ticker.Stop()
	events := p.events()
	over := time.NewTimer(p.scenario.Length - p.sinceOrigin())
	defer over.Stop()
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		for len(events) > 0 && events[0].at <= p.sinceOrigin() {
			if err := events[0].do(); err != nil {
				return fmt.Errorf("at %v: %w", events[0].at, err)
			}
			events = events[1:]
		}
		if len(events) > 0 {
			next.Reset(events[0].at - p.sinceOrigin())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-over.C:
			p.options.Progress.show(p.frame())
			return nil
		case <-next.C:
		case <-ticker.C:
			p.options.Progress.show(p.frame())
		}
	}
}

// frame is what a viewer sees now.
func (p *play) frame() *frame {
	now := p.sinceOrigin()
	f := &frame{
		Title: p.options.Player.Title(), Phases: p.phases, Elapsed: now,
	}
	if p.scenario.Name != scriptName {
		f.Title = p.scenario.Name + " · " + f.Title
	}
	recent := p.log.recent(now)
	seen := -1
	for i, c := range p.layout.clients {
		if c.row != seen { // the state of a zone is that of its first client's agent
			seen = c.row
			f.Zones = append(f.Zones, zoneFrame{c.Zone, recent[c.row], p.agents.state(i)})
		}
	}
	return f
}
