package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/demo"
)

const demoLong = `Run three zones on loopback with nine real HTTP endpoints, a node agent in each zone, and clients that keep their
rate whatever happens. A script overloads, slows down, breaks and removes endpoints; nobody tells the agents.

What is printed was measured at the clients. A request is answered well when a 2xx arrives within a second of the
moment at which it was due. The exit status is 1 if the run, or the first one of --compare, falls short of:

  at least 99 % in zone when calm
  a spill visible within a second of each fault
  at least 99.5 % answered well over the whole script, 99.9 % with --retry-on=5xx

With --scenario the world and the story are those of a scenario, as weir simulate plays them. What was measured under
stress is compared with the simulator: in-zone share and success within 10 %, p99 within 25 %.`

const demoExample = `  # 76 seconds, and a verdict
  weir demo

  # All strategies, or these two in half the time, side by side
  weir demo --compare
  weir demo --compare=Weir,Static --quick

  # Keep the world's manifests, and ask about them
  weir demo --write-manifests world
  weir explain shop/web -f world

  # Is the simulator right? A scenario on real sockets, beside what it says
  weir demo --scenario spike`

// demoFlags are the command's flags as typed.
type demoFlags struct {
	options  demo.Options
	strategy string
	compare  string
	mode     string
	loss     string
	output   string
	quick    bool
	stories  demoScenarioFlags
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
	for _, g := range []flagGroup{f.balancing(), f.script(), f.stories.group(), f.results()} {
		g.addTo(c)
	}
	c.MarkFlagsMutuallyExclusive("strategy", "compare")
	c.MarkFlagsMutuallyExclusive("speed", "quick")
	for _, name := range []string{"strategy", "compare", "mode", "retry-on", "rate", "speed", "quick", "zone-loss", "write-manifests"} {
		c.MarkFlagsMutuallyExclusive("scenario", name)
	}
	return c
}

func (f *demoFlags) balancing() flagGroup {
	names := strings.Join(overflow.Names(), ",")
	g := group("Balancing")
	g.StringVar(&f.strategy, "strategy", demo.DefaultStrategy, "overflow strategy: one of "+names)
	g.StringVar(&f.compare, "compare", "", "run several strategies one after the other; without names all of them")
	g.Lookup("compare").NoOptDefVal = names
	g.StringVar(&f.mode, "mode", string(topology.ModeBalanced), "distribution mode of the service: "+modeNames())
	g.StringVar(&f.options.RetryOn, "retry-on", "",
		"when agents try another endpoint, beside connect-failure and reset: gateway-error, 5xx")
	return g
}

func (f *demoFlags) script() flagGroup {
	g := group("Script")
	g.Float64Var(&f.options.Rate, "rate", demo.DefaultRate,
		"requests per second in each zone when calm; the endpoints of a zone can do 600")
	g.Uint64Var(&f.options.Seed, "seed", demo.DefaultSeed, "seed of arrivals and service times")
	g.Float64Var(&f.options.Speed, "speed", demo.DefaultSpeed, "divide the lengths of the phases by this")
	g.BoolVar(&f.quick, "quick", false, fmt.Sprintf("the same as --speed=%d", demo.QuickSpeed))
	g.StringVar(&f.loss, "zone-loss", "refuse",
		"how the lost zone goes: refuse (connections refused and reset) or hang (no answer)")
	return g
}

func (f *demoFlags) results() flagGroup {
	g := group("Results")
	g.StringVar(&f.options.ManifestDir, "write-manifests", "", "keep the world's Kubernetes manifests in this folder")
	g.StringVarP(&f.output, "output", "o", "table", "table; or json or yaml, then progress goes to standard error; or markdown, with --scenario")
	return g
}

// run plays the script and prints what was measured.
func (f *demoFlags) run(c *cobra.Command) error {
	if len(f.stories.files) > 0 {
		return f.stories.run(c, demo.PlayOptions{Seed: f.options.Seed}, f.output)
	}
	o, err := f.resolve()
	if err != nil {
		return err
	}
	c.SilenceUsage = true
	if f.output == "table" {
		o.Progress, o.Summary = demo.NewDisplay(os.Stdout), c.OutOrStdout()
		_, err = demo.Run(c.Context(), o)
		return err
	}
	o.Progress = demo.NewDisplay(os.Stderr)
	reports, err := demo.Run(c.Context(), o)
	if len(reports) == 0 {
		return err
	}
	return errors.Join(printData(c.OutOrStdout(), f.output, struct {
		Runs []demo.Report `json:"runs"`
	}{reports}), err)
}

// resolve checks the flags and turns words into options.
func (f *demoFlags) resolve() (demo.Options, error) {
	o := f.options
	o.Mode = topology.Mode(f.mode)
	o.Strategies = []string{f.strategy}
	if f.compare != "" {
		o.Strategies = strings.Split(f.compare, ",")
	}
	if f.quick {
		o.Speed = demo.QuickSpeed
	}
	if !(o.Rate > 0 && o.Speed > 0) { // the zero Options mean the defaults, a zero that was typed does not
		return o, fmt.Errorf("--rate=%v --speed=%v: want more than 0", o.Rate, o.Speed)
	}
	switch f.loss {
	case "refuse":
		o.Lost = demo.Gone
	case "hang":
		o.Lost = demo.Hanging
	default:
		return o, fmt.Errorf("--zone-loss=%s: want refuse or hang", f.loss)
	}
	switch f.output {
	case "table", "json", "yaml":
		return o, o.Validate()
	default:
		return o, fmt.Errorf("--output=%s: want table, json or yaml", f.output)
	}
}
