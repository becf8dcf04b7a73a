package simulate

import (
	"context"
	"fmt"
	"math"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/sim"
	"github.com/weir-lb/weir/internal/sim/strategy"
)

// Score is what a set of constants comes to: means over all scenarios and seeds.
type Score struct {
	Bad       float64 `json:"bad"`       // fraction of the affected clients' requests that were not good, under stress
	CalmCross float64 `json:"calmCross"` // fraction of all requests that left their zone in the calm before
	Dollars   float64 `json:"dollars"`   // an hour, of bytes that crossed zones under stress
}

// Varied is one constant at another value.
type Varied struct {
	Value string `json:"value"`
	Score
}

// Sensitive is one constant, halved and doubled as Times has it.
type Sensitive struct {
	Constant string `json:"constant"`
	Value    string `json:"value"`
	Half     Varied `json:"half"`
	Double   Varied `json:"double"`
}

// Sensitivity is how much each constant of weir's law matters.
type Sensitivity struct {
	Score                 // with the constants as they are
	Noise     float64     `json:"noise"` // standard deviation of Bad from seed to seed; 0 with one seed
	Seeds     int         `json:"seeds"`
	Scenarios []string    `json:"scenarios"`
	Constants []Sensitive `json:"constants"`
}

// Vary halves and doubles each of the named constants of weir's law over the scenarios and seeds of o; its Strategies
// are ignored.
func Vary(ctx context.Context, o Options, c overflow.Config, names []string) (*Sensitivity, error) {
	base := constantsOf(c)
	o.Strategies = []strategy.Strategy{weirWith(c, base, weirName)}
	s := new(Sensitivity)
	for _, name := range names {
		row := Sensitive{Constant: name}
		var err error
		if row.Value, err = Value(base, name); err != nil {
			return nil, err
		}
		for _, v := range []struct {
			factor float64
			to     *Varied
		}{{0.5, &row.Half}, {2, &row.Double}} {
			k, err := Times(base, name, v.factor)
			if err != nil {
				return nil, err
			}
			if v.to.Value, err = Value(k, name); err != nil {
				return nil, err
			}
			o.Strategies = append(o.Strategies, weirWith(c, k, name+"="+v.to.Value))
		}
		s.Constants = append(s.Constants, row)
	}
	out, err := Run(ctx, o)
	if err != nil {
		return nil, err
	}
	s.Seeds = out.seeds
	for _, sc := range o.Scenarios {
		s.Scenarios = append(s.Scenarios, sc.Name)
	}
	s.Score, s.Noise = out.score(0)
	for i := range s.Constants {
		s.Constants[i].Half.Score, _ = out.score(1 + 2*i)
		s.Constants[i].Double.Score, _ = out.score(2 + 2*i)
	}
	return s, nil
}

// score sums up all results of a strategy.
func (o *Outcome) score(strategy int) (mean Score, noise float64) {
	scenarios := len(o.Results) / (o.strategies * o.seeds)
	bad := make([]float64, o.seeds)
	n := float64(scenarios * o.seeds)
	for s := range scenarios {
		for i, r := range o.Of(s, strategy) {
			bad[i] += badOf(r) / float64(scenarios)
			mean.Bad += badOf(r) / n
			mean.CalmCross += (1 - r.Calm.InZone) / n
			mean.Dollars += r.Window.Dollars / n
		}
	}
	if o.seeds < 2 {
		return mean, 0
	}
	for _, b := range bad {
		noise += (b - mean.Bad) * (b - mean.Bad) / float64(o.seeds-1)
	}
	return mean, math.Sqrt(noise)
}

func badOf(r *sim.Result) float64 { return 1 - r.Affected.Good }

// Table shows the sensitivity, one row for each constant.
func (s *Sensitivity) Table() Table {
	t := Table{Columns: []string{
		"CONSTANT", "VALUE", "HALF", "BAD %", "CALM CROSS %", "$/H", "DOUBLE", "BAD %", "CALM CROSS %", "$/H",
	}}
	cells := func(v Varied) []string {
		return append([]string{v.Value}, v.cells()...)
	}
	t.Rows = append(t.Rows, append([]string{"as they are", "", ""}, append(s.cells(), "", "", "", "")...))
	for _, c := range s.Constants {
		row := append([]string{c.Constant, c.Value}, cells(c.Half)...)
		t.Rows = append(t.Rows, append(row, cells(c.Double)...))
	}
	return t
}

func (s Score) cells() []string {
	return []string{percent(s.Bad, 2), percent(s.CalmCross, 2), fmt.Sprintf("%.3f", s.Dollars)}
}
