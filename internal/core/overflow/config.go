package overflow

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Prefer is what a user wants when a zone gets slow: to pay less or to wait less.
type Prefer string

// The preferences. Empty means PreferBalanced.
const (
	PreferCost     Prefer = "cost"     // stay at home until it is 1.8 times slower than normal
	PreferBalanced Prefer = "balanced" // 1.4 times
	PreferLatency  Prefer = "latency"  // 1.2 times, and go abroad even if that is only a little better
)

// Config is what a strategy may be told. The zero value asks for the defaults; a strategy ignores what it has no use
// for.
type Config struct {
	Prefer    Prefer    // Weir
	Shed      bool      // Weir: reject with 503 what no zone can take
	Low, High float64   // Hazl: the band, in requests in flight for each active endpoint; 0: 0.8 and 2.0
	Constants Constants // Weir: the zero value means DefaultConstants; for experiments
}

// strategy is a name and how to make what it names.
type strategy struct {
	name string
	make func(Config) Strategy
	stay bool // it never leaves home
}

// strategies lists all there are, the default first.
func strategies() []strategy {
	return []strategy{
		{name: "Weir", make: newWeir},
		{name: "Hazl", make: newHazl},
		{name: "Static", make: newStatic, stay: true},
		{name: "Random", make: newRandom},
	}
}

// Names lists the strategies that New knows, the default first.
func Names() []string {
	var names []string
	for _, s := range strategies() {
		names = append(names, s.name)
	}
	return names
}

// KeepsHome tells whether the strategy of that name never leaves home. Home then has to be all that the hints give a
// client: nobody else will lend it what its zone lacks.
func KeepsHome(name string) bool {
	return slices.ContainsFunc(strategies(), func(s strategy) bool { return s.stay && strings.EqualFold(name, s.name) })
}

// New makes the strategy of that name; upper and lower case are the same, empty means the default.
//
// Errors: a name that is not one of Names, or a Config that makes no sense; both say what would.
func New(name string, c Config) (Strategy, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	for _, s := range strategies() {
		if name == "" || strings.EqualFold(name, s.name) {
			return s.make(c.withDefaults()), nil
		}
	}
	return nil, fmt.Errorf("unknown overflow strategy %q: want one of %s", name, strings.Join(Names(), ", "))
}

func (c Config) validate() error {
	switch c.Prefer {
	case "", PreferCost, PreferBalanced, PreferLatency:
	default:
		return fmt.Errorf("unknown preference %q: want %s, %s or %s",
			c.Prefer, PreferCost, PreferBalanced, PreferLatency)
	}
	full := c.withDefaults()
	if low, high := full.Low, full.High; !(0 < low && low < high) || math.IsInf(high, 1) {
		return fmt.Errorf("load band %v to %v: want two finite numbers above 0, the first below the second", low, high)
	}
	return nil
}

// withDefaults replaces what is zero.
func (c Config) withDefaults() Config {
	if c.Prefer == "" {
		c.Prefer = PreferBalanced
	}
	if c.Low == 0 {
		c.Low = hazlLow
	}
	if c.High == 0 {
		c.High = hazlHigh
	}
	if c.Constants == (Constants{}) {
		c.Constants = DefaultConstants()
	}
	c.Constants = c.Constants.preferring(c.Prefer)
	return c
}
