package demo

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/l7"
	"github.com/weir-lb/weir/internal/sim/scenario"
)

// The defaults of Options.
const (
	// DefaultRate is a little more than a third of what a zone's endpoints can do, so that three times as much is a tenth
	// too much for them, while all three zones together have room to spare.
	DefaultRate = 220
	// DefaultSpeed is the script as written.
	DefaultSpeed = 1
	// QuickSpeed is for continuous integration: 76 s become 38 s. At four times the speed agents hardly have the time to
	// learn what normal is, and what the first second of each fault costs is as much as the whole may cost.
	QuickSpeed = 2
	// DefaultStrategy is the overflow strategy that weir uses.
	DefaultStrategy = "Weir"
	// DefaultSeed makes two runs have the same arrivals and service times, as far as the machine's own noise allows.
	DefaultSeed = 1
)

// Options say what to run. The zero value runs the default strategy through the whole script and shows nothing.
type Options struct {
	Strategies  []string      // names from package overflow, run one after the other; empty: Weir
	Mode        topology.Mode // distribution mode of the service; empty: Balanced
	Rate        float64       // requests per second in each zone when calm; 0: 220
	Speed       float64       // divides the lengths of the phases; 0: 1
	Seed        uint64        // of arrivals and service times; 0: 1
	Lost        Event         // how the lost zone goes: Gone or Hanging; empty: Gone
	RetryOn     string        // what the agents retry beside refused and reset connections, as l7.ParseRetryOn reads it
	ManifestDir string        // where to write the manifests; empty: a temporary folder
	Progress    *Display      // nil: none
	Summary     io.Writer     // where tables of results go; nil: nowhere

	fleet  fleetStarter // nil: real agents; tests have others
	script []Phase      // nil: Script; tests have shorter ones
}

func (o Options) withDefaults() Options {
	if len(o.Strategies) == 0 {
		o.Strategies = []string{DefaultStrategy}
	}
	o.Mode = cmp.Or(o.Mode, topology.ModeBalanced)
	o.Rate = cmp.Or(o.Rate, DefaultRate)
	o.Speed = cmp.Or(o.Speed, DefaultSpeed)
	o.Seed = cmp.Or(o.Seed, DefaultSeed)
	o.Lost = cmp.Or(o.Lost, Gone)
	if o.Progress == nil {
		o.Progress = &Display{}
	}
	if o.Summary == nil {
		o.Summary = io.Discard
	}
	if o.script == nil {
		o.script = Script(zoneNames(), o.Lost, o.Speed)
	}
	if o.fleet == nil {
		o.fleet = startAgents
	}
	return o
}

// The limits of Options: what one machine's loopback and timers can do, and what a person would wait for.
const (
	maxRate  = 5000
	minSpeed = 0.1
	maxSpeed = 100
)

// Validate checks all options and gives every error, joined.
func (o Options) Validate() error {
	o = o.withDefaults()
	var errs []error
	for _, name := range o.Strategies {
		if _, err := overflow.New(name, overflow.Config{}); err != nil {
			errs = append(errs, err)
		}
	}
	if o.Rate <= 0 || o.Rate > maxRate {
		errs = append(errs, fmt.Errorf("the rate is %v requests/s: want more than 0, at most %d", o.Rate, maxRate))
	}
	if o.Speed < minSpeed || o.Speed > maxSpeed {
		errs = append(errs, fmt.Errorf("the speed is %v: want %v to %v", o.Speed, minSpeed, maxSpeed))
	}
	if o.Lost != Gone && o.Lost != Hanging {
		errs = append(errs, fmt.Errorf("a zone cannot be lost as %q: want %s or %s", o.Lost, Gone, Hanging))
	}
	if _, err := topology.ParseMode(string(o.Mode)); err != nil {
		errs = append(errs, err)
	}
	if _, err := o.retry(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// endpointCapacity is what each endpoint can do: 200 requests per second, 600 in a zone. The queue holds four
// times what is in service: even at a tenth of its speed an endpoint serves whom it lets in within a second, which is as
// long as a client waits.
func endpointCapacity() capacity {
	return capacity{
		Concurrency: 4, Queue: 16,
		Service: scenario.Distribution{Kind: scenario.Lognormal, Mean: 20 * time.Millisecond, CV: 0.5},
	}
}

// retry gives what the agents retry: what is always safe, and what was asked for.
func (o *Options) retry() (l7.Retry, error) {
	r := l7.Retry{On: l7.OnConnectFailure | l7.OnReset}
	if o.RetryOn == "" {
		return r, nil
	}
	on, err := l7.ParseRetryOn(o.RetryOn)
	r.On |= on
	return r, err
}
