package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weir-lb/weir/internal/agent"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/latest"
	"github.com/weir-lb/weir/internal/manifest"
)

// agentDrain bounds how long the agents wait at the end. The clients have given up by then; what may still be under way
// is a request that an endpoint swallowed.
const agentDrain = 100 * time.Millisecond

// seat is one agent to be: what it is told, and the cluster that it sees.
type seat struct {
	config    agent.Config
	snapshots *latest.Value[topology.Snapshot]
}

// agents are node agents in this process, each as a node of its own.
type agents struct {
	running []*agent.Agent
	group   errgroup.Group
	stop    context.CancelFunc
}

// startAgents reads the manifests in dir and starts an agent for each zone's node. It returns when all of them serve.
//
// Errors: of manifests, of options, of an address that cannot be listened on.
func startAgents(ctx context.Context, l *layout, dir string, o *agentOptions) (fleet, error) {
	read, err := manifest.Read(manifest.Source{Paths: []string{dir}}, manifest.Options{})
	if err != nil {
		return nil, err
	}
	for _, p := range read.Problems {
		err = errors.Join(err, errors.New(p.String()))
	}
	if err != nil {
		return nil, fmt.Errorf("read manifests: %w", err)
	}
	snapshots := latest.New(read.Snapshot)
	var seats []seat
	for _, p := range l.agents {
		seats = append(seats, seat{agent.Config{
			Node:     p.name,
			Map:      []agent.Mapping{{Service: topology.ServiceName{Namespace: namespace, Name: serviceName}, To: p.addr}},
			Strategy: o.strategy,
			Retry:    o.retry,
			Drain:    agentDrain,
		}, snapshots})
	}
	f, err := seatAgents(ctx, seats)
	if err != nil {
		return nil, err // not a nil *agents in an interface
	}
	return f, nil
}

// seatAgents starts an agent in each seat and returns when all of them serve.
//
// The agents outlive ctx: when a run is interrupted the last requests still get their answers.
func seatAgents(ctx context.Context, seats []seat) (*agents, error) {
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	f := &agents{stop: stop}
	for _, s := range seats {
		a, err := agent.New(s.config, s.snapshots, agent.Deps{})
		if err != nil {
			return nil, errors.Join(err, f.close())
		}
		f.running = append(f.running, a)
		f.group.Go(func() error { return a.Run(running) })
	}
	if err := f.ready(ctx); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

// ready waits until every agent serves, and refuses one that cannot serve all it should.
func (f *agents) ready(ctx context.Context) error {
	for _, a := range f.running {
		select {
		case <-a.Ready():
		case <-ctx.Done():
			return ctx.Err()
		}
		status := a.Status()
		for _, p := range status.Problems {
			return fmt.Errorf("%s: %s", status.Node, p.Reason)
		}
	}
	return nil
}

func (f *agents) states() []poolState {
	var states []poolState
	for _, a := range f.running {
		var s poolState
		for _, p := range a.Pools() { // the one port of the one service
			s = poolState{State: p.State, Reason: p.Reason.String()}
		}
		states = append(states, s)
	}
	return states
}

func (f *agents) close() error {
	f.stop()
	return f.group.Wait()
}
