package agent

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/l7"
)

// HintSource says which hints decide what this node may use.
type HintSource string

// The sources of hints.
const (
	HintsFromPlan HintSource = "plan"   // those that weir's own plan wants
	HintsNative   HintSource = "native" // those that the EndpointSlices carry, whoever wrote them
)

// The defaults of a Config.
const (
	DefaultMode     = topology.ModeBalanced
	DefaultStrategy = "Weir"
	// DefaultDrain is how long requests in flight may take after their listener closed: below the 30 s that Kubernetes
	// gives a terminating pod.
	DefaultDrain = 25 * time.Second
)

// maxAttempts is what the proxy makes of a larger number; here it is refused, so that it is not taken for granted.
const maxAttempts = 8

// Config is what an operator decides for one agent. The zero value works but for Node; every empty field means its
// default.
type Config struct {
	// Node is the name of the node that the agent serves; its zone decides which hints apply. Required.
	Node string
	// Zone takes the place of the node's own zone, and lets the node be one that the cluster does not have.
	Zone topology.Zone
	// Map gives services other addresses to listen on than their cluster IPs.
	Map []Mapping
	// Mode is the distribution of services that ask for none. Default: Balanced.
	Mode topology.Mode
	// Hints says which hints decide. Default: plan.
	Hints HintSource
	// OneNode tells that the snapshots know no node but Node. No plans are made then, which would be those of a cluster of
	// one node, so that Hints must be native.
	OneNode bool
	// Partial tells that the snapshots hold only the services that are served, so that a policy for another one is nothing
	// to report.
	Partial bool
	// Strategy is the overflow strategy of services that ask for none: one of overflow.Names. Default: Weir.
	Strategy string
	// Algorithm chooses among the endpoints of a group: one of pick.Algorithms. Default: PowerOfTwo.
	Algorithm string
	// Retry says which attempts are tried again. The zero value has the proxy's defaults.
	Retry l7.Retry
	// Limits bound what clients may make each listener hold, and Timeouts how long it waits. The zero values have the
	// proxy's defaults.
	Limits   l7.Limits
	Timeouts l7.Timeouts
	// TrustedFilters are the clients, such as a gateway, that may say what requests are hashed by as filter state. Default:
	// none.
	TrustedFilters []netip.Prefix
	// Kernel says where services that ask for the kernel data plane are served.
	Kernel Kernel
	// Drain bounds how long requests in flight may go on after their listener closed; 0: 25 s. Negative is refused.
	Drain time.Duration
}

// withDefaults fills what is empty.
func (c Config) withDefaults() Config {
	c.Mode = cmp.Or(c.Mode, DefaultMode)
	c.Hints = cmp.Or(c.Hints, HintsFromPlan)
	c.Strategy = cmp.Or(c.Strategy, DefaultStrategy)
	if a, err := pick.ParseAlgorithm(c.Algorithm); err == nil {
		c.Algorithm = string(a) // as it is spelled
	}
	c.Drain = cmp.Or(c.Drain, DefaultDrain)
	return c
}

// Validate checks the whole config and gives every error it has, joined.
func (c Config) Validate() error {
	c = c.withDefaults()
	var errs []error
	if c.Node == "" {
		errs = append(errs, errors.New("the node's name is missing"))
	}
	if _, err := topology.ParseMode(string(c.Mode)); err != nil {
		errs = append(errs, err)
	}
	if c.Hints != HintsFromPlan && c.Hints != HintsNative {
		errs = append(errs, fmt.Errorf("unknown source of hints %q: want plan or native", c.Hints))
	}
	if c.OneNode && c.Hints != HintsNative {
		errs = append(errs, fmt.Errorf("the hints are to come from a %s, which takes all nodes and not one", c.Hints))
	}
	if _, err := overflow.New(c.Strategy, overflow.Config{}); err != nil {
		errs = append(errs, err)
	}
	if _, err := pick.ParseAlgorithm(c.Algorithm); err != nil {
		errs = append(errs, err)
	}
	if c.Retry.Attempts < 0 || c.Retry.Attempts > maxAttempts {
		errs = append(errs, fmt.Errorf("retry attempts are %d: want 1 to %d", c.Retry.Attempts, maxAttempts))
	}
	if !(c.Retry.BudgetRatio <= maxAttempts) { // also when it is not a number
		errs = append(errs, fmt.Errorf("the retry budget is %v for each request: want at most %d", c.Retry.BudgetRatio, maxAttempts))
	}
	if c.Drain < 0 {
		errs = append(errs, fmt.Errorf("the drain limit is %v: want at least 0", c.Drain))
	}
	return errors.Join(append(errs, duplicates(c.Map)...)...)
}
