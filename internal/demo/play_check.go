package demo

import (
	"errors"
	"fmt"
	"strings"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/l7"
	"github.com/weir-lb/weir/internal/sim/contender"
	"github.com/weir-lb/weir/internal/sim/scenario"
)

// Player is a way to balance that agents have: one of the simulator's contenders.
type Player struct {
	Contender string // its name
	Strategy  string // the agents' overflow strategy, one of overflow.Names
	Mode      topology.Mode
}

func defaultPlayer() Player { return Player{DefaultContender, DefaultStrategy, topology.ModeBalanced} }

// PlayerFor gives what agents do for a contender: its name, and its distribution mode.
//
// Errors: a contender that only the simulator knows.
func PlayerFor(name string, mode topology.Mode) (Player, error) {
	kind, _, _ := strings.Cut(name, "-")
	for _, s := range overflow.Names() {
		if strings.EqualFold(s, kind) {
			return Player{Contender: name, Strategy: s, Mode: mode}, nil
		}
	}
	return Player{}, fmt.Errorf("no agent balances as %s: want random, static-*, hazl or weir", name)
}

// Simulated is what the simulator has to play for its agents to be like real ones: their strategy and mode, in the pool
// that every agent has. A contender that chooses in another way differs from it.
func (p Player) Simulated() *contender.Contender {
	return &contender.Contender{
		Name: p.Contender, Title: p.Contender, Mode: p.Mode, KeepsHome: overflow.KeepsHome(p.Strategy),
		Strategy: func(contender.Seat) overflow.Strategy {
			s, err := overflow.New(p.Strategy, overflow.Config{})
			if err != nil {
				panic("demo: a player that was not checked: " + err.Error())
			}
			return s
		},
		Pool: pick.Config{Algorithm: pick.PowerOfTwo}, Drains: p.Strategy == DefaultStrategy,
		Reconnects: l7.DefaultRetry().Attempts - 1,
	}
}

// maxPlayRetries is what an agent tries beside the first time at most.
const maxPlayRetries = 7

// Playable tells why a scenario cannot be played on real sockets by these agents; nil: it can. Every reason is given,
// joined.
func Playable(sc *scenario.Scenario, p Player) error {
	var errs []error
	refuse := func(what, why string) {
		errs = append(errs, fmt.Errorf("%s cannot be played on real sockets: %s: %s", sc.Name, what, why))
	}
	if len(sc.World.Services) != 1 || len(sc.World.Services[0].Ports) != 1 {
		refuse("world", "want one service with one port")
	}
	if sc.Autoscale != nil {
		refuse("autoscale", "nobody starts endpoints here")
	}
	if sc.NodePools != nil {
		refuse("node pools", "there are no nodes here")
	}
	for i := range sc.Steps {
		switch v := sc.Steps[i].Verb; v {
		case scenario.Rollout, scenario.Scale:
			refuse(fmt.Sprintf("line %d: %s", sc.Steps[i].Line, v), "nobody starts endpoints here")
		case scenario.Refuse:
			if sc.Request.Retries > 0 {
				refuse(fmt.Sprintf("line %d: %s", sc.Steps[i].Line, v), "to agents the clients' retries and their own are the same")
			}
		case scenario.Drain:
			if sc.Steps[i].Where.Zone == "" {
				refuse(fmt.Sprintf("line %d: %s", sc.Steps[i].Line, v), "want a zone")
			}
		default:
		}
	}
	r := &sc.Request
	switch {
	case r.Polls > 0:
		refuse("polls", "the endpoints answer when the work is done")
	case r.Streams > 0:
		refuse("streams", "the endpoints answer and are done")
	}
	switch {
	case r.Retries > maxPlayRetries:
		refuse("retries", fmt.Sprintf("agents retry at most %d times", maxPlayRetries))
	case r.Retries > 0 && r.Backoff > 0:
		refuse("backoff", "agents retry at once")
	case r.Retries > 0 && r.Attempt > 0 && r.Attempt < r.Timeout:
		refuse("timeout of an attempt", "agents do not retry what was not answered in time")
	}
	if _, err := overflow.New(p.Strategy, overflow.Config{}); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
