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
)

// agentDrain bounds how long the agents wait at the end. The clients have given up by then; what may still be under way
// is a request that an endpoint swallowed.
const agentDrain = 100 * time.Millisecond

// agentSpec is one agent to be started: its options, and the cluster that it sees.
type agentSpec struct {
	config    agent.Config
	snapshots *latest.Value[topology.Snapshot]
}

// agents are node agents in this process, each as a node of its own.
type agents struct {
	running []*agent.Agent
	group   errgroup.Group
	stop    context.CancelFunc
}

// startAgents starts an agent for each spec and returns when all of them serve.
//
// The agents outlive ctx: when a run is interrupted the last requests still get their answers.
func startAgents(ctx context.Context, specs []agentSpec) (*agents, error) {
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	f := &agents{stop: stop}
	for _, s := range specs {
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

// poolState is the state of an agent's pool.
type poolState struct {
	State  string
	Reason string
}

// state gives the state of an agent's one pool.
func (f *agents) state(i int) (s poolState) {
	for _, p := range f.running[i].Pools() { // the one port of the one service
		s = poolState{State: p.State, Reason: p.Reason.String()}
	}
	return s
}

func (f *agents) close() error {
	f.stop()
	return f.group.Wait()
}
