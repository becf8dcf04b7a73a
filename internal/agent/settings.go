package agent

import (
	"cmp"
	"reflect"
	"slices"

	"github.com/weir-lb/weir/internal/core/health"
	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/l7"
)

// percent makes fractions of what policies say.
const percent = 0.01

// tuning is how a pool is to choose, by policies and, where they are silent, by the agent's flags.
func (c *Config) tuning(s *policy.Settings) pick.Config {
	algorithm, _ := pick.ParseAlgorithm(c.Algorithm) // Validate has checked it
	t := pick.Config{
		Algorithm:    cmp.Or(pick.Algorithm(s.Algorithm), algorithm),
		Choices:      s.ChoiceCount,
		HashFunction: pick.HashFunction(s.HashFunction),
		MinRingSize:  s.MinRingSize,
		MaxRingSize:  s.MaxRingSize,
		TableSize:    s.TableSize,
		Health:       health.Config{Outliers: outliersOf(s.Outlier)},
	}
	if s.Algorithm == policy.LeastRequest {
		t.Bias = &s.ActiveRequestBias
	}
	if s.SlowStart != nil {
		t.SlowStart = &pick.SlowStart{
			Window: s.SlowStart.Window, MinWeight: s.SlowStart.MinWeightPercent * percent, Aggression: s.SlowStart.Aggression,
		}
	}
	if s.Locality.Threshold != nil {
		t.Threshold = *s.Locality.Threshold * percent
	}
	if s.Panic != nil {
		fraction := *s.Panic * percent
		t.Panic = &fraction
	}
	return t
}

// modeDisabled is what Status shows for a pool whose traffic only failing health moves, by a policy.
const modeDisabled = "Disabled"

// spilling is how load moves between a pool's groups.
type spilling struct {
	strategy string // of overflow.Names, or modeDisabled; empty: the agent's own
	prefer   string
	shed     bool
	band     policy.LoadBand // of Hazl; zero: its own
}

// spillingOf gives what a policy says of overflow before what the service says.
func spillingOf(own topology.OverflowSettings, s *policy.Settings) spilling {
	how := spilling{strategy: own.Strategy, prefer: own.Prefer, shed: own.Shed}
	switch s.Locality.Overflow {
	case policy.OverflowLoadBand:
		how.strategy, how.band = "Hazl", s.Locality.LoadBand
	case policy.OverflowDisabled:
		how.strategy = modeDisabled
	case policy.OverflowAdaptive:
		how.strategy = "Weir"
	default: // no policy says anything
	}
	return how
}

// strategy makes the strategy that is asked for. Errors: one that does not exist or cannot be had so.
func (c *Config) strategy(s spilling) (overflow.Strategy, error) {
	name := cmp.Or(s.strategy, c.Strategy)
	if name == modeDisabled {
		name = "Static"
	}
	strategy, err := overflow.New(name, overflow.Config{
		Prefer: overflow.Prefer(s.prefer), Shed: s.shed, Low: s.band.Low, High: s.band.High,
	})
	if err != nil {
		return nil, err
	}
	if s.strategy == modeDisabled {
		return overflow.Unconfined(strategy), nil
	}
	return strategy, nil
}

// mustStrategy makes a strategy of settings that build has checked.
func (c *Config) mustStrategy(s spilling) overflow.Strategy {
	strategy, err := c.strategy(s)
	if err != nil {
		panic("agent: a wanted pool has settings that were refused: " + err.Error())
	}
	return strategy
}

// keepsHome tells whether load never moves what s places.
func (c *Config) keepsHome(s spilling) bool {
	return overflow.KeepsHome(cmp.Or(s.strategy, c.Strategy))
}

// mixture is what a pool is made of, with what that takes long to make. It is immutable: who has the same one has nothing
// to do.
type mixture struct {
	tuning   pick.Config
	spilling spilling
	targets  []pick.Target
	prepared *pick.Prepared
}

// hashing is how requests are hashed. It is immutable.
type hashing struct {
	policies []policy.HashPolicy
	routes   []policy.RouteHash
	rules    l7.HashRules // zero: they cannot be followed
	err      error        // why that is so
}

// stock keeps what was made for each pool, so that what did not change is not made again. One goroutine at a time.
type stock struct {
	mixtures map[poolKey]*mixture
	hashings map[poolKey]*hashing
}

// supply gives each pool that w wants its mixture and hashing, and forgets those of pools that it does not.
func (c *stock) supply(w *world) {
	before := *c
	c.mixtures = make(map[poolKey]*mixture, len(w.pools))
	c.hashings = make(map[poolKey]*hashing)
	for i := range w.pools {
		p := &w.pools[i]
		p.mixture = before.mixtures[p.key].renew(p)
		c.mixtures[p.key] = p.mixture
		if p.hashing = before.hashings[p.key].renew(&p.policy); p.hashing == nil {
			continue
		}
		c.hashings[p.key] = p.hashing
		if p.hashing.err != nil {
			w.problems = append(w.problems, Problem{
				Service: p.key.service.String(), Reason: reason.New(reason.HashRefused, p.hashing.err.Error()),
			})
		}
	}
}

// renew gives m if it is what w asks for, else a new one.
func (m *mixture) renew(w *wantedPool) *mixture {
	if m != nil && m.spilling == w.spilling && slices.Equal(m.targets, w.targets) && reflect.DeepEqual(m.tuning, w.tuning) {
		return m
	}
	return &mixture{w.tuning, w.spilling, w.targets, pick.Prepare(w.tuning, w.targets)}
}

// renew gives h if it is what s asks for, else a new one; nil when requests are not hashed.
func (h *hashing) renew(s *policy.Settings) *hashing {
	if !s.Algorithm.IsHashing() || len(s.HashPolicies) == 0 && len(s.Routes) == 0 {
		return nil
	}
	if h != nil && reflect.DeepEqual(h.policies, s.HashPolicies) && reflect.DeepEqual(h.routes, s.Routes) {
		return h
	}
	rules, err := l7.CompileHash(s.HashPolicies, s.Routes)
	return &hashing{s.HashPolicies, s.Routes, rules, err}
}
