package demo

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/weir-lb/weir/internal/grid"
	"github.com/weir-lb/weir/internal/sim"
)

// How far a measured figure may be from the simulated one, as a fraction of that.
const (
	agreeShare   = 0.10
	agreeLatency = 0.25
)

// Agreement is what was measured on real sockets beside what the simulator says of the same scenario.
type Agreement struct {
	Scenario  string       `json:"scenario"`
	Contender string       `json:"contender"`
	Seeds     int          `json:"seeds"` // simulated ones, whose mean is compared
	Requests  int64        `json:"requests"`
	Rows      []Comparison `json:"rows"`
	Agrees    bool         `json:"agrees"` // in each row that is judged
}

// Comparison is one figure.
type Comparison struct {
	Measure   string  `json:"measure"`
	Measured  float64 `json:"measured"`
	Simulated float64 `json:"simulated"`
	Spread    float64 `json:"spread"` // standard deviation between the simulated seeds
	// Difference is (measured − simulated) / simulated; nil where nothing was simulated, or 0 and something was measured:
	// no finite number says that.
	Difference *float64 `json:"difference"`
	Allowed    float64  `json:"allowed,omitempty"` // of the difference's size; 0: shown, not judged
	Agrees     bool     `json:"agrees"`
	unit       unit
}

// unit says how a figure is printed.
type unit uint8

const (
	fraction unit = iota
	latency       // seconds
	ratio
)

// figure is one line of the comparison.
type figure struct {
	name    string
	of      func(*sim.Result) float64
	unit    unit
	allowed float64
}

func figures() []figure {
	return []figure{
		{"in zone", func(r *sim.Result) float64 { return r.Window.InZone }, fraction, agreeShare},
		{"success", func(r *sim.Result) float64 { return r.Window.Success }, fraction, agreeShare},
		{"p99", func(r *sim.Result) float64 { return r.Window.P99.Seconds() }, latency, agreeLatency},
		{"p50", func(r *sim.Result) float64 { return r.Window.P50.Seconds() }, latency, 0},
		{"good", func(r *sim.Result) float64 { return r.Window.Good }, fraction, 0},
		{"good, affected zones", func(r *sim.Result) float64 { return r.Affected.Good }, fraction, 0},
		{"in zone, affected zones", func(r *sim.Result) float64 { return r.Affected.InZone }, fraction, 0},
		{"in zone when calm", func(r *sim.Result) float64 { return r.Calm.InZone }, fraction, 0},
		{"p50 when calm", func(r *sim.Result) float64 { return r.Calm.P50.Seconds() }, latency, 0},
		{"p99 when calm", func(r *sim.Result) float64 { return r.Calm.P99.Seconds() }, latency, 0},
		{"peak load", func(r *sim.Result) float64 { return r.PeakLoad }, ratio, 0},
	}
}

// Agree compares a measured run with simulated ones of the same scenario: one for each of several seeds. Without any it
// judges nothing.
//
// What is judged is the time of the stress, all clients together: in-zone share and success within a tenth, p99 within a
// quarter of what was simulated. Other figures are shown.
func Agree(measured *sim.Result, simulated []*sim.Result) Agreement {
	a := Agreement{
		Scenario: measured.Scenario, Contender: measured.Strategy, Seeds: len(simulated),
		Requests: measured.Whole.Requests, Agrees: true,
	}
	for _, f := range figures() {
		c := Comparison{Measure: f.name, Measured: f.of(measured), Agrees: true, unit: f.unit}
		if len(simulated) == 0 {
			a.Rows = append(a.Rows, c)
			continue
		}
		c.Allowed = f.allowed
		c.Simulated, c.Spread = spread(simulated, f.of)
		c.Difference = relative(c.Measured, c.Simulated)
		c.Agrees = f.allowed == 0 || c.Difference != nil && math.Abs(*c.Difference) <= f.allowed
		a.Agrees = a.Agrees && c.Agrees
		a.Rows = append(a.Rows, c)
	}
	return a
}

// relative gives the difference of measured from simulated, in parts of that; nil when it is infinite.
func relative(measured, simulated float64) *float64 {
	difference := 0.0
	if measured != simulated {
		if simulated == 0 {
			return nil
		}
		difference = (measured - simulated) / simulated
	}
	return &difference
}

// spread gives mean and standard deviation over the runs.
func spread(runs []*sim.Result, of func(*sim.Result) float64) (mean, deviation float64) {
	n := float64(len(runs))
	for _, r := range runs {
		mean += of(r) / n
	}
	for _, r := range runs {
		deviation += (of(r) - mean) * (of(r) - mean)
	}
	if n < 2 {
		return mean, 0
	}
	return mean, math.Sqrt(deviation / (n - 1))
}

// Lines renders the agreement as a table for a terminal.
func (a *Agreement) Lines() []string {
	g := numbers(5)
	title := grid.Text(a.Scenario + ", " + a.Contender)
	if a.Seeds == 0 {
		g.Add(title, grid.Text("sockets"))
		for i := range a.Rows {
			g.Add(grid.Text(a.Rows[i].Measure), grid.Text(a.Rows[i].print(a.Rows[i].Measured)))
		}
		return append(g.Lines(0, grid.Painter{}), "", fmt.Sprintf("%d requests on sockets", a.Requests))
	}
	g.Add(title, grid.Text("sockets"), grid.Text("simulated"), grid.Text("spread"), grid.Text("difference"), grid.Text(""))
	for i := range a.Rows {
		c := &a.Rows[i]
		g.Add(grid.Text(c.Measure), grid.Text(c.print(c.Measured)), grid.Text(c.print(c.Simulated)), grid.Text(c.print(c.Spread)),
			grid.Text(c.difference()), grid.Text(c.verdict()))
	}
	end := "sockets and simulator agree"
	if !a.Agrees {
		end = "sockets and simulator do not agree"
	}
	return append(g.Lines(0, grid.Painter{}), "",
		fmt.Sprintf("%s: %d requests on sockets, %d simulated seeds", end, a.Requests, a.Seeds))
}

// MarkdownHead is the head of the table that Markdown gives rows of.
const MarkdownHead = "| scenario | requests | in zone: sockets, simulated | | success: sockets, simulated | | p99: sockets, simulated | | |\n" +
	"|---|---|---|---|---|---|---|---|---|"

// Markdown is the agreement as a row of a table: what is judged.
func (a *Agreement) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| %s | %d |", a.Scenario, a.Requests)
	for i := range a.Rows {
		c := &a.Rows[i]
		if a.Seeds > 0 && c.Allowed > 0 {
			fmt.Fprintf(&b, " %s, %s | %s |", c.print(c.Measured), c.print(c.Simulated), c.difference())
		}
	}
	verdict := "agrees"
	if !a.Agrees {
		verdict = "**does not agree**"
	}
	return b.String() + " " + verdict + " |"
}

func (c *Comparison) print(x float64) string {
	switch c.unit {
	case fraction:
		return fmt.Sprintf("%.2f %%", x*100)
	case latency:
		return time.Duration(x * float64(time.Second)).Round(100 * time.Microsecond).String()
	default:
		return fmt.Sprintf("%.2f", x)
	}
}

func (c *Comparison) difference() string {
	if c.Difference == nil {
		return "of nothing"
	}
	return fmt.Sprintf("%+.1f %%", *c.Difference*100)
}

func (c *Comparison) verdict() string {
	switch {
	case c.Allowed == 0:
		return ""
	case c.Agrees:
		return fmt.Sprintf("ok, within %.0f %%", c.Allowed*100)
	default:
		return fmt.Sprintf("OUT of %.0f %%", c.Allowed*100)
	}
}
