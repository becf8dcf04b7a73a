package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/demo"
	"github.com/weir-lb/weir/internal/grid"
	"github.com/weir-lb/weir/internal/sim"
	"github.com/weir-lb/weir/internal/sim/scenario"
	"github.com/weir-lb/weir/internal/sim/score"
)

const demoLong = `Run three zones on loopback with nine real HTTP endpoints, a node agent in each zone, and clients that keep their
rate whatever happens. A script overloads, slows down, breaks and removes endpoints; the agents are not told.

What is printed was measured at the clients. A request is answered well when a 2xx arrives within a second of the
moment at which it was due. The exit status is 1 if the run, or the first one of --compare, falls short of:

  at least 99 % in zone when calm
  a spill visible within a second of each fault
  at least 99.5 % answered well over the whole script, 99.9 % with --retry-on=5xx

The script is a scenario of weir simulate. With --scenario another one is played; what was measured under stress is compared with the simulator: in-zone share and success within 10 %, p99 within 25 %.`

const demoExample = `  # 76 seconds, and a verdict
  weir demo

  # All strategies, or these two in half the time, side by side
  weir demo --compare
  weir demo --compare=Weir,Static --quick

  # Keep the manifests of the cluster, and ask about them
  weir demo --write-manifests cluster
  weir explain shop/web -f cluster

  # Is the simulator right? A scenario on real sockets, beside what it says
  weir demo --scenario spike`

// demoFlags are the command's flags as typed.
type demoFlags struct {
	script   demo.ScriptOptions
	options  demo.Options
	strategy string
	compare  string
	mode     string
	retryOn  string
	loss     string
	quick    bool
	files    []string // of scenarios
	peak     float64
	agree    bool
	output   string
}

// demoCommand makes weir demo.
func demoCommand() *cobra.Command {
	var f demoFlags
	c := &cobra.Command{
		Use:     "demo",
		Short:   "Show three zones on loopback under load and faults",
		Long:    demoLong,
		Example: demoExample,
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	for _, g := range []flagGroup{f.balancingGroup(), f.scriptGroup(), f.scenarioGroup(), f.resultGroup()} {
		g.addTo(c)
	}
	c.MarkFlagsMutuallyExclusive("strategy", "compare")
	c.MarkFlagsMutuallyExclusive("speed", "quick")
	for _, name := range []string{"compare", "mode", "retry-on", "rate", "speed", "quick", "zone-loss", "write-manifests"} {
		c.MarkFlagsMutuallyExclusive("scenario", name)
	}
	return c
}

func (f *demoFlags) balancingGroup() flagGroup {
	names := strings.Join(overflow.Names(), ",")
	g := group("Balancing")
	g.StringVar(&f.strategy, "strategy", demo.DefaultStrategy, "overflow strategy: one of "+names+"; with --scenario also one of static-*")
	g.StringVar(&f.compare, "compare", "", "run several strategies one after the other; without names all of them")
	g.Lookup("compare").NoOptDefVal = names
	g.StringVar(&f.mode, "mode", string(topology.ModeBalanced), "distribution mode of the service: "+modeNames())
	g.StringVar(&f.retryOn, "retry-on", "",
		"when agents try another endpoint, beside connect-failure and reset: gateway-error, 5xx")
	return g
}

func (f *demoFlags) scriptGroup() flagGroup {
	g := group("Script")
	g.Float64Var(&f.script.Rate, "rate", demo.DefaultRate,
		"requests per second in each zone when calm; the endpoints of a zone can do 600")
	g.Uint64Var(&f.options.Seed, "seed", demo.DefaultSeed, "seed of arrivals and service times")
	g.Float64Var(&f.script.Speed, "speed", demo.DefaultSpeed, "divide the lengths of the phases by this")
	g.BoolVar(&f.quick, "quick", false, fmt.Sprintf("the same as --speed=%d", demo.QuickSpeed))
	g.StringVar(&f.loss, "zone-loss", "refuse",
		"how the lost zone goes: refuse (connections refused and reset) or hang (no answer)")
	return g
}

func (f *demoFlags) scenarioGroup() flagGroup {
	g := group("Scenarios")
	g.StringSliceVar(&f.files, "scenario", nil,
		"instead of the script, play scenarios on real sockets, one after the other: files, - for standard input, or names that weir simulate --list has")
	g.Float64Var(&f.peak, "peak", 0,
		"make requests rarer and longer until all clients together send at most this many per second (0: 250)")
	g.BoolVar(&f.agree, "agree", true, "compare with the simulator; the exit status is 1 if they do not agree")
	return g
}

func (f *demoFlags) resultGroup() flagGroup {
	g := group("Results")
	g.StringVar(&f.options.ManifestDir, "write-manifests", "", "keep the Kubernetes manifests of the cluster in this folder")
	g.StringVarP(&f.output, "output", "o", "table", "table; or json or yaml, then progress goes to standard error; or markdown, with --scenario")
	return g
}

// run plays scenarios and prints what was measured.
func (f *demoFlags) run(c *cobra.Command) error {
	outputs := []string{"table", "json", "yaml"}
	resolve, play := f.resolveScript, f.playScript
	if len(f.files) > 0 {
		outputs = append(outputs, "markdown")
		resolve, play = f.resolveScenarios, f.playScenario
	}
	if !slices.Contains(outputs, f.output) {
		return fmt.Errorf("--output=%s: want one of %s", f.output, strings.Join(outputs, ", "))
	}
	plays, err := resolve(c.InOrStdin())
	if err != nil {
		return err
	}
	c.SilenceUsage = true
	f.options.Progress = demo.NewDisplay(os.Stderr)
	if f.output == "table" {
		f.options.Progress = demo.NewDisplay(os.Stdout)
	}
	p := demoPrinter{w: c.OutOrStdout(), output: f.output, painter: f.options.Progress.Painter()}
	for _, one := range plays {
		var report *demo.Report
		if report, err = play(c.Context(), one); report != nil {
			err = errors.Join(err, p.add(one, report))
		}
		if err != nil || c.Context().Err() != nil {
			break // what was measured before it is not lost
		}
	}
	return errors.Join(err, p.finish(), p.verdict())
}

// demoPlay is one scenario to be played by one kind of agents.
type demoPlay struct {
	scenario *scenario.Scenario
	player   demo.Player
}

// resolveScript checks the flags of the script, and gives a play for each strategy.
func (f *demoFlags) resolveScript(io.Reader) ([]demoPlay, error) {
	strategies := []string{f.strategy}
	if f.compare != "" {
		strategies = strings.Split(f.compare, ",")
	}
	if f.quick {
		f.script.Speed = demo.QuickSpeed
	}
	if !(f.script.Rate > 0 && f.script.Speed > 0) { // the zero options mean the defaults, a zero that was typed does not
		return nil, fmt.Errorf("--rate=%v --speed=%v: want more than 0", f.script.Rate, f.script.Speed)
	}
	if f.loss != string(scenario.Refuse) && f.loss != string(scenario.Hang) {
		return nil, fmt.Errorf("--zone-loss=%s: want refuse or hang", f.loss)
	}
	f.script.Loss = scenario.Verb(f.loss)
	sc, err := demo.Script(f.script)
	if err != nil {
		return nil, err
	}
	var plays []demoPlay
	for _, name := range strategies {
		p := demo.Player{Strategy: name, Mode: topology.Mode(f.mode), RetryOn: demo.DefaultRetryOn}
		if f.retryOn != "" {
			p.RetryOn += "," + f.retryOn
		}
		if err := demo.Playable(sc, p); err != nil {
			return nil, err
		}
		plays = append(plays, demoPlay{sc, p})
	}
	return plays, nil
}

// playScript plays the script and judges it.
func (f *demoFlags) playScript(ctx context.Context, p demoPlay) (*demo.Report, error) {
	o := f.options
	o.Player, o.Patience = p.player, demo.ScriptPatience
	report, err := demo.Play(ctx, p.scenario, o)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", p.player.Strategy, err)
	}
	report.Judge()
	return report, nil
}

// demoPrinter prints reports: as text one by one, as data at the end. The first one decides about the exit status of the
// script, every one about that of scenarios.
type demoPrinter struct {
	w       io.Writer
	output  string
	painter grid.Painter
	plays   []demoPlay
	reports []*demo.Report
}

func (p *demoPrinter) add(one demoPlay, r *demo.Report) error {
	p.plays, p.reports = append(p.plays, one), append(p.reports, r)
	switch p.output {
	case "markdown":
		if len(p.reports) == 1 {
			return p.print(demo.MarkdownHead, r.Agreement.Markdown())
		}
		return p.print(r.Agreement.Markdown())
	case "table":
		return p.print(append(r.Lines(p.painter), "")...)
	default: // at the end
		return nil
	}
}

func (p *demoPrinter) print(lines ...string) error {
	_, err := fmt.Fprintln(p.w, strings.Join(lines, "\n"))
	return err
}

// finish prints what is to be said of all plays together: the script's strategies side by side, or the data.
func (p *demoPrinter) finish() error {
	switch {
	case len(p.reports) == 0 || p.output == "markdown":
		return nil
	case p.output != "table":
		return printData(p.w, p.output, demoData{p.board(), p.reports})
	case len(p.reports) > 1 && p.reports[0].Agreement == nil && p.plays[0].scenario == p.plays[1].scenario:
		board := p.board()
		return board.Print(p.w, score.Style{Colour: p.painter.Colour, Width: terminalWidth(p.w)})
	default:
		return nil
	}
}

// demoData is what weir simulate prints, of what was measured, and what sockets add to it.
type demoData struct {
	score.Board
	Runs []*demo.Report `json:"runs"`
}

// board compares the runs as weir simulate does.
func (p *demoPrinter) board() score.Board {
	var (
		results []*sim.Result
		labels  score.Options
	)
	for i, r := range p.reports {
		results = append(results, r.Result)
		if sc := score.LabelOf(p.plays[i].scenario); !slices.ContainsFunc(labels.Scenarios, func(l score.Label) bool { return l.Name == sc.Name }) {
			labels.Scenarios = append(labels.Scenarios, sc)
		}
		if !slices.ContainsFunc(labels.Strategies, func(l score.Label) bool { return l.Name == r.Strategy }) {
			labels.Strategies = append(labels.Strategies, score.Label{Name: r.Strategy, Title: r.Title()})
		}
	}
	board := score.Compare(results, labels)
	board.Notice = "Measured at the clients, on real sockets of one machine."
	return board
}

// errDisagree means that what was measured is not what was simulated.
var errDisagree = errors.New("what was measured is not what was simulated")

// verdict gives an error where the exit status has to be 1.
func (p *demoPrinter) verdict() error {
	for i, r := range p.reports {
		switch {
		case r.Passed:
		case r.Agreement != nil:
			return errDisagree
		case i == 0:
			return demo.ErrShort
		}
	}
	return nil
}
