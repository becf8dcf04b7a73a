package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/l7"
	"github.com/weir-lb/weir/internal/sim/scenario"
)

// ErrShort means that the first strategy fell short of a figure.
var ErrShort = errors.New("the run fell short of its figures")

// recentBuckets is how much of the past the live table sums up: 2 s, long enough for a p99 of a few hundred requests.
const recentBuckets = 20

// fleet is one running proxy for each zone.
type fleet interface {
	states() []poolState // in the order of the zones
	close() error        // waits for everything the fleet started
}

// fleetStarter starts a fleet at l's agent addresses, with the manifests that lie in dir.
type fleetStarter func(ctx context.Context, l *layout, dir string, o *agentOptions) (fleet, error)

// agentOptions are what the agents have to know besides the manifests.
type agentOptions struct {
	strategy string
	retry    l7.Retry
}

// Run plays the script once for each strategy and prints what was measured.
//
// Shape: one Report for each strategy that began, in order. When ctx ends, the Report of the strategy that ran then is
// marked as interrupted and is the last.
// Errors: ErrShort when the first strategy fell short; of a world that could not be started; of options that make no
// sense.
func Run(ctx context.Context, o Options) ([]Report, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	var reports []Report
	for _, strategy := range o.Strategies {
		report, err := runOne(ctx, &o, strategy)
		if err != nil {
			return reports, fmt.Errorf("run %s: %w", strategy, err)
		}
		reports = append(reports, report)
		o.Progress.finish()
		if err := o.print(append(summary(&report, o.Progress.painter), "")); err != nil {
			return reports, err
		}
		if ctx.Err() != nil {
			break
		}
	}
	if len(reports) > 1 {
		if err := o.print(comparison(reports, o.Progress.painter)); err != nil {
			return reports, err
		}
	}
	if !reports[0].Passed {
		return reports, ErrShort
	}
	return reports, nil
}

// print writes lines of results.
func (o *Options) print(lines []string) error {
	if _, err := io.WriteString(o.Summary, strings.Join(lines, "\n")+"\n"); err != nil {
		return fmt.Errorf("print results: %w", err)
	}
	return nil
}

// stage is one run's world, clients and measurements.
type stage struct {
	options  *Options
	strategy string
	script   []Phase
	layout   layout
	world    world
	fleet    fleet
	clients  [zoneCount]*generator
	recorder *recorder
	clock    func() time.Duration // since the stage was made
}

// runOne plays the script with one strategy, in a world of its own.
func runOne(ctx context.Context, o *Options, strategy string) (r Report, err error) {
	began := time.Now()
	s := &stage{
		options: o, strategy: strategy,
		script:   o.script,
		recorder: newRecorder(costTable()),
		clock:    func() time.Duration { return time.Since(began) },
	}
	defer func() { err = errors.Join(err, s.world.close()) }()
	dir, remove, err := s.build()
	if err != nil {
		return Report{}, err
	}
	defer remove()
	retry, err := o.retry()
	if err != nil {
		return Report{}, err
	}
	s.fleet, err = o.fleet(ctx, &s.layout, dir, &agentOptions{strategy: strategy, retry: retry})
	if err != nil {
		return Report{}, fmt.Errorf("start agents: %w", err)
	}
	defer func() { err = errors.Join(err, s.fleet.close()) }()
	end, err := s.perform(ctx)
	if err != nil {
		return Report{}, err
	}
	return s.report(end, ctx.Err() != nil), nil
}

// build puts up endpoints and manifests. remove takes the folder away if nobody asked for it.
func (s *stage) build() (dir string, remove func(), err error) {
	if s.layout, err = newLayout(s.options.Mode); err != nil {
		return "", nil, err
	}
	for i, p := range s.layout.endpoints {
		e := newEndpoint(p.addr, zoneNames()[p.zone], endpointCapacity(), s.random(uint64(i)))
		s.world.endpoints = append(s.world.endpoints, e)
		if err = e.set(scenario.Condition{}); err != nil {
			return "", nil, err
		}
	}
	dir, remove = s.options.ManifestDir, func() {}
	if dir == "" {
		if dir, err = os.MkdirTemp("", "weir-demo-"); err != nil {
			return "", nil, fmt.Errorf("make a folder for manifests: %w", err)
		}
		remove = func() { _ = os.RemoveAll(dir) } // temporary folders are swept anyway
	}
	return dir, remove, s.layout.writeManifests(dir)
}

// random gives an independent generator for each stream. The streams of arrivals follow those of the endpoints.
func (s *stage) random(stream uint64) *rand.Rand {
	return rand.New(rand.NewPCG(s.options.Seed, stream))
}

// perform runs clients and script together and gives the time at which the script ended.
func (s *stage) perform(ctx context.Context) (time.Duration, error) {
	zones := make(map[string]int)
	for i, z := range zoneNames() {
		zones[string(z)] = i
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var clients sync.WaitGroup
	defer clients.Wait()
	defer stop()
	for i := range s.clients {
		s.clients[i] = newGenerator(target{
			zone: i, zones: zones,
			url:  "http://" + s.layout.agents[i].addr.String() + "/",
			host: fmt.Sprintf("%s.%s.svc:%d", serviceName, namespace, s.layout.service.Port()),
		}, s.clock, s.recorder.record)
		s.clients[i].setRate(s.options.Rate)
	}
	origin := s.clock()
	for i, g := range s.clients {
		clients.Go(func() { g.run(ctx, s.random(uint64(len(s.world.endpoints)+i))) })
	}
	return s.play(ctx, origin)
}

// play takes the world through the phases. An interruption is no error: it ends the script early.
func (s *stage) play(ctx context.Context, origin time.Duration) (time.Duration, error) {
	ticker := time.NewTicker(liveEvery)
	defer ticker.Stop()
	until := origin
	for i, phase := range s.script {
		until += phase.Lasts
		if err := s.begin(phase); err != nil {
			return 0, fmt.Errorf("begin %q: %w", phase, err)
		}
		over := time.NewTimer(until - s.clock())
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				over.Stop()
				return s.clock(), nil
			case <-over.C:
				waiting = false
			case <-ticker.C:
				s.options.Progress.show(s.frame(i, s.clock()-origin))
			}
		}
	}
	end := s.clock()
	s.options.Progress.show(s.frame(len(s.script)-1, end-origin))
	return end, nil
}

// begin changes the world as the phase wants. The clock of the phase starts before the first change.
func (s *stage) begin(p Phase) error {
	s.recorder.enter(s.clock())
	for i, zone := range zoneNames() {
		rate := s.options.Rate
		if p.Event == Surge && p.Zone == zone {
			rate *= surgeFactor
		}
		s.clients[i].setRate(rate)
	}
	return s.world.apply(p)
}

func (s *stage) frame(phase int, elapsed time.Duration) *frame {
	f := &frame{Strategy: s.strategy, Script: s.script, Phase: phase, Elapsed: elapsed}
	recent, states := s.recorder.recent(s.clock(), recentBuckets), s.fleet.states()
	for i, zone := range zoneNames() {
		f.Zones = append(f.Zones, zoneFrame{zone, recent[i], states[i]})
	}
	return f
}

// report sums up and judges. Call it when every request is done.
func (s *stage) report(end time.Duration, interrupted bool) Report {
	zones := zoneNames()
	r := Report{
		Strategy: s.strategy, RetryOn: s.options.RetryOn, Rate: s.options.Rate, Seed: s.options.Seed,
		Interrupted: interrupted,
	}
	for _, z := range zones {
		r.Zones = append(r.Zones, string(z))
	}
	r.Phases, r.Total = s.recorder.report(s.script, zones[:], end)
	r.Checks = judge(&r)
	r.Passed = passed(r.Checks)
	return r
}

// costTable gives what a request costs from each zone to each other, as the agents reckon it too.
func costTable() [][]topology.Cost {
	table := make([][]topology.Cost, zoneCount)
	for i, from := range zoneNames() {
		for _, to := range zoneNames() {
			cost := topology.DefaultCosts().Between(
				topology.Place{Zone: from, Region: region}, topology.Place{Zone: to, Region: region})
			table[i] = append(table[i], cost)
		}
	}
	return table
}
