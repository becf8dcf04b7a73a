package route

import (
	"cmp"
	"hash/fnv"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/topology"
)

// Defaults hold where neither a policy nor a service says anything.
type Defaults struct {
	Mode      topology.Mode
	Algorithm policy.Algorithm // or one that only a data plane knows
	Strategy  string           // one of overflow.Names
}

// Settings are how requests of an entry are to be treated.
type Settings struct {
	Policy    *policy.Settings // what policies say; never nil, immutable, and shared by many entries
	Algorithm policy.Algorithm // of the policies, else of the Defaults
	Overflow  Overflow
	Skew      overflow.Skew // the cap of the policies, with the demand that the plan expects
	Rotate    uint64        // the client's, for Groups
}

// Overflow is how load moves between an entry's groups.
type Overflow struct {
	Strategy string // one of overflow.Names, or OverflowDisabled
	overflow.Config
}

// OverflowDisabled is a strategy that moves traffic only where health fails.
const OverflowDisabled = "Disabled"

// New makes the strategy of one pool. Errors: a strategy that does not exist or cannot be had so; a Table has none.
func (o Overflow) New() (overflow.Strategy, error) {
	if o.Strategy != OverflowDisabled {
		return overflow.New(o.Strategy, o.Config)
	}
	static, err := overflow.New("Static", o.Config)
	if err != nil {
		return nil, err
	}
	return overflow.Unconfined(static), nil
}

// KeepsHome tells whether load never moves what hints have placed.
func (o Overflow) KeepsHome() bool { return overflow.KeepsHome(o.Strategy) }

// overflowOf gives what a policy says of overflow before what the service says, and both before the default strategy.
func overflowOf(own topology.OverflowSettings, s *policy.Settings, strategy string) Overflow {
	o := Overflow{Strategy: cmp.Or(own.Strategy, strategy)}
	o.Prefer, o.Shed = overflow.Prefer(own.Prefer), own.Shed
	asked := &s.Locality.Overflow
	if asked.Mode == nil {
		return o
	}
	switch *asked.Mode {
	case policy.OverflowLoadBand:
		o.Strategy, o.Low, o.High = "Hazl", float64(asked.LoadBand.Low), float64(asked.LoadBand.High)
	case policy.OverflowDisabled:
		o.Strategy = OverflowDisabled
	case policy.OverflowAdaptive:
		o.Strategy = "Weir"
	}
	return o
}

// sticky gives settings under which requests of a client's address stay with one endpoint: a table finds it by the address,
// also for TCP. An algorithm that hashes requests stays as it is: its policy says what they stick to.
//
// Source: kube-proxy's sessionAffinity. A table remembers nothing, so that the affinity has no timeout: it lasts as long as
// the endpoint is there and serves.
func sticky(s *policy.Settings) *policy.Settings {
	if block := s.LoadBalancer; block != nil && block.Type.IsHashing() {
		return s
	}
	to := *s
	to.LoadBalancer = new(*s.LoadBalancer)
	to.LoadBalancer.Type = policy.Maglev
	to.HashPolicies = []policy.HashPolicy{{Type: policy.HashSourceIP}}
	return &to
}

// Rotate is a number that differs between clients of different nodes, so that they do not all spill to the same one of
// several zones of equal cost.
func Rotate(c policy.Client) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(cmp.Or(c.Node, string(c.Zone))))
	return h.Sum64()
}
