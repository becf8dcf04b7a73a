package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/weir-lb/weir/internal/sim"
	"github.com/weir-lb/weir/internal/sim/scenario"
)

// DefaultContender is the way to balance that Play uses.
const DefaultContender = "weir"

// PlayOptions say how to play a scenario. The zero value plays weir's own strategy with seed 1 and shows nothing.
type PlayOptions struct {
	Player   Player   // how agents balance; the zero value: as DefaultContender
	Seed     uint64   // of arrivals and service times; 0: 1
	Progress *Display // nil: none
}

// playOutstanding bounds the requests of one client that are in flight: far above what a zone that swallows everything
// makes of any rate that one machine can play, so that none is ever dropped.
const playOutstanding = 8192

// playSlack is how much longer than the request's timeout a client waits: the agent keeps the timeout, as the balancer of
// a simulated client does, and its word that nobody answered has to arrive.
const playSlack = 500 * time.Millisecond

// Play plays a scenario on real sockets: an HTTP server for each endpoint, an agent for each client with listeners and a
// pool of its own, and clients that keep their rate. What a client sends, when, and how much work it is does not depend on
// what becomes of it.
//
// What a network has more than loopback is slept at the endpoint, half of it before a request is taken and half before its
// answer; endpoints that are lost swallow everything, and the agents' view of the cluster changes when the scenario says.
//
// Errors: what Playable refuses; addresses and processes that could not be had; ctx, when it ended first.
func Play(ctx context.Context, sc *scenario.Scenario, o PlayOptions) (r *sim.Result, err error) {
	o.Player = cmp.Or(o.Player, defaultPlayer())
	o.Seed = cmp.Or(o.Seed, DefaultSeed)
	if o.Progress == nil {
		o.Progress = &Display{}
	}
	if err := Playable(sc, o.Player); err != nil {
		return nil, err
	}
	began := time.Now()
	p := &play{scenario: sc, options: o, clock: func() time.Duration { return time.Since(began) }}
	defer func() { err = errors.Join(err, p.world.close()) }()
	if err := p.build(); err != nil {
		return nil, err
	}
	p.agents, err = seatAgents(ctx, p.seats)
	if err != nil {
		return nil, fmt.Errorf("start agents: %w", err)
	}
	defer func() { err = errors.Join(err, p.agents.close()) }()
	if err := p.perform(ctx); err != nil {
		return nil, err
	}
	o.Progress.finish()
	if complaint := p.diary.complaint(); complaint != "" {
		o.Progress.write(complaint + "\n")
	}
	return p.diary.result(), nil
}

// play is one scenario being played.
type play struct {
	scenario *scenario.Scenario
	options  PlayOptions
	stage    *playStage
	world    world // in the order of stage.endpoints
	seats    []seat
	agents   *agents
	ledger   ledger
	diary    *diary
	clock    func() time.Duration // since the play was made
	origin   time.Duration        // when the run began, on the clock
}

// build puts up endpoints, and seats for the agents.
func (p *play) build() error {
	stage, err := newPlayStage(p.scenario)
	if err != nil {
		return err
	}
	p.stage = stage
	p.diary = newDiary(p.scenario, stage, p.options)
	for i, place := range stage.endpoints {
		e := newEndpoint(place.addr, place.Zone, stage.capacity(i), nil)
		e.desk = &playDesk{play: p, place: i}
		e.random = rand.New(rand.NewPCG(p.options.Seed, uint64(i))) // of errors only: work is told by the clients
		p.world.endpoints = append(p.world.endpoints, e)
		if err := e.set(scenario.Condition{}); err != nil {
			return err
		}
	}
	p.seats = stage.seats(p.scenario, p.options.Player)
	return nil
}

// perform runs clients and script together, until the last request is over.
func (p *play) perform(ctx context.Context) error {
	within, stop := context.WithCancel(ctx)
	var clients sync.WaitGroup
	defer clients.Wait()
	defer stop()
	p.origin = p.clock()
	arrivals := sim.NewArrivals(p.scenario, p.options.Seed)
	for i, place := range p.stage.clients {
		g := newGenerator(target{
			zone: place.row, from: string(place.Zone),
			url: "http://" + place.addr.String() + "/", host: p.stage.host,
			good:        p.scenario.Request.Timeout,
			patience:    p.scenario.Request.Timeout + playSlack,
			outstanding: playOutstanding,
			ledger:      &p.ledger,
		}, p.sinceOrigin, p.diary.note)
		clients.Go(func() {
			g.follow(within, func() (letter, bool) {
				due, work, ok := arrivals[i].Next()
				return letter{due: due, work: work}, ok
			})
		})
	}
	if err := p.direct(within); err != nil {
		return err
	}
	clients.Wait() // nothing is due any more: what is under way ends within its patience
	return ctx.Err()
}

func (p *play) sinceOrigin() time.Duration { return p.clock() - p.origin }

// direct makes the scenario's changes at their times, and shows progress, until the scenario is over.
func (p *play) direct(ctx context.Context) error {
	ticker := time.NewTicker(liveEvery)
	defer ticker.Stop()
	cues := p.cues()
	over := time.NewTimer(p.scenario.Length - p.sinceOrigin())
	defer over.Stop()
	cue := time.NewTimer(0)
	defer cue.Stop()
	for {
		for len(cues) > 0 && cues[0].at <= p.sinceOrigin() {
			if err := cues[0].do(); err != nil {
				return fmt.Errorf("at %v: %w", cues[0].at, err)
			}
			cues = cues[1:]
		}
		if len(cues) > 0 {
			cue.Reset(cues[0].at - p.sinceOrigin())
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-over.C:
			return nil
		case <-cue.C:
		case <-ticker.C:
			p.options.Progress.showLine(p.progress(), p.sinceOrigin())
		}
	}
}

// progress is one line on how it goes.
func (p *play) progress() string {
	g := p.diary.recent(p.sinceOrigin())
	return fmt.Sprintf("%s on sockets, %s: %3.0f of %.0f s  %4.0f requests/s  in zone %s  good %s  p99 %v",
		p.scenario.Name, p.options.Player.Contender, p.sinceOrigin().Seconds(), p.scenario.Length.Seconds(),
		g.rate, rounded(g.inZone), rounded(g.good), g.p99.Round(time.Millisecond))
}
