package demo

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/l7"
	"github.com/weir-lb/weir/internal/sim/scenario"
	"github.com/weir-lb/weir/internal/sim/strategy"
)

// DefaultStrategy is the overflow strategy that weir uses.
const DefaultStrategy = "Weir"

// DefaultRetryOn is what agents retry when they are not told otherwise.
const DefaultRetryOn = "connect-failure,reset"

// Player is how agents balance. The zero value is weir's own strategy.
type Player struct {
	Name     string        // as weir simulate has it: weir, hazl, random, static-…; empty: that of the strategy
	Strategy string        // the agents' overflow strategy, one of overflow.Names; empty: DefaultStrategy
	Mode     topology.Mode // of the service; empty: Balanced
	RetryOn  string        // what agents retry, as l7.ParseRetryOn reads it; empty: what the scenario's clients would
}

// PlayerFor gives what agents do as a strategy of the simulator does, or as one of overflow.Names.
//
// Errors: a strategy that only the simulator has.
func PlayerFor(name string, mode topology.Mode) (Player, error) {
	kind, _, _ := strings.Cut(name, "-")
	if kind == "hints" { // weir's own are followed as those of others
		kind = "Static"
	}
	for _, s := range overflow.Names() {
		if strings.EqualFold(s, kind) {
			return Player{Name: strings.ToLower(name), Strategy: s, Mode: mode}, nil
		}
	}
	return Player{}, fmt.Errorf("no agent balances as %s: want random, static-*, hazl or weir", name)
}

func (p Player) withDefaults() Player {
	p.Strategy = cmp.Or(p.Strategy, DefaultStrategy)
	p.Name = cmp.Or(p.Name, strings.ToLower(p.Strategy))
	p.Mode = cmp.Or(p.Mode, topology.ModeBalanced)
	return p
}

// Title is the player's name as tables have it.
func (p Player) Title() string {
	if strings.EqualFold(p.Name, p.Strategy) {
		return p.Strategy
	}
	return p.Name
}

// Simulated is what the simulator has to play for its agents to be like real ones: their strategy and mode, in the pool
// that every agent has. A strategy of the simulator that chooses endpoints in another way differs from it.
func (p Player) Simulated() *strategy.Strategy {
	p = p.withDefaults()
	return &strategy.Strategy{
		Name: p.Name, Title: p.Name, Mode: p.Mode, KeepsHome: overflow.KeepsHome(p.Strategy),
		New: func(strategy.Client) overflow.Strategy {
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

// retry is what agents retry: RetryOn, as often as by default; without it what the scenario's clients would, or else refused
// connections alone.
func (p Player) retry(r *scenario.Request) (l7.Retry, error) {
	if p.RetryOn != "" {
		on, err := l7.ParseRetryOn(p.RetryOn)
		return l7.Retry{On: on}, err
	}
	if r.Retries == 0 {
		attempts := l7.DefaultRetry().Attempts
		return l7.Retry{On: l7.OnConnectFailure, Attempts: attempts, BudgetRatio: float64(attempts)}, nil // no limit
	}
	retry := l7.Retry{
		On: l7.OnConnectFailure | l7.OnReset, Attempts: 1 + r.Retries, BudgetRatio: r.Budget, MinPerSecond: -1,
	}
	if r.Accepted {
		retry.On |= l7.On5xx
	}
	if r.Budget == 0 {
		retry.BudgetRatio = float64(1 + r.Retries) // no limit
	}
	return retry, nil
}

// maxPlayRetries is what an agent tries beside the first time at most.
const maxPlayRetries = 7

// Playable says why a scenario cannot be played on real sockets by these agents; nil: it can. Every reason is given,
// joined.
func Playable(sc *scenario.Scenario, p Player) error {
	p = p.withDefaults()
	var errs []error
	refuse := func(what, why string) {
		errs = append(errs, fmt.Errorf("%s cannot be played on real sockets: %s: %s", sc.Name, what, why))
	}
	r := &sc.Request
	for _, c := range []struct {
		is        bool
		what, why string
	}{
		{len(sc.Snapshot.Services) != 1 || len(sc.Snapshot.Services[0].Ports) != 1, "cluster", "want one service with one port"},
		{sc.Autoscale != nil, "autoscale", "no endpoint is started or stopped here"},
		{sc.NodePools != nil, "node pools", "there are no nodes here"},
		{r.Polls > 0, "polls", "the endpoints answer when the work is done"},
		{r.Streams > 0, "streams", "the endpoints answer and are done"},
		{r.Retries > maxPlayRetries, "retries", fmt.Sprintf("agents retry at most %d times", maxPlayRetries)},
		{r.Retries > 0 && r.Backoff > 0, "backoff", "agents retry at once"},
		{r.Retries > 0 && r.Attempt > 0 && r.Attempt < r.Timeout, "timeout of an attempt", "agents do not retry what was not answered in time"},
	} {
		if c.is {
			refuse(c.what, c.why)
		}
	}
	for i := range sc.Steps {
		st := &sc.Steps[i]
		line := fmt.Sprintf("line %d: %s", st.Line, st.Verb)
		switch {
		case st.Verb == scenario.Rollout || st.Verb == scenario.Scale:
			refuse(line, "no endpoint is started or stopped here")
		case st.Verb == scenario.Refuse && r.Retries > 0:
			refuse(line, "to agents the clients' retries and their own are the same")
		case st.Verb == scenario.Drain && st.Where.Zone == "":
			refuse(line, "want a zone")
		}
	}
	if _, err := overflow.New(p.Strategy, overflow.Config{}); err != nil {
		errs = append(errs, err)
	}
	if _, err := topology.ParseMode(string(p.Mode)); err != nil {
		errs = append(errs, err)
	}
	if _, err := p.retry(r); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
