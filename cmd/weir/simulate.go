package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/explain"
	"github.com/weir-lb/weir/internal/sim/scenario"
	"github.com/weir-lb/weir/internal/sim/strategy"
	"github.com/weir-lb/weir/internal/simulate"
)

const simulateLong = `Play scenarios with several strategies, in simulated time and with the code that weir's agents run, and compare how much
traffic stays in its zone, what the rest costs, and what that does to success and latency.

Without arguments the standard scenarios are played with all strategies. A scenario is a text file; --show prints one to
start from. With --random scenarios are drawn that no constant was chosen with. With --service the scenario is a service of a cluster or of manifests, with a change: another mode, fewer
endpoints, a zone lost, more traffic.

The results are simulated, not measured. Equal seeds give equal results.`

const simulateExample = `  # The standard scenarios with all strategies
  weir simulate

  # Two scenarios, three strategies, and a page with charts
  weir simulate zone-loss brownout --strategies weir,hazl,static-auto --html report.html

  # Your own scenario
  weir simulate --show brownout > mine.txtar
  weir simulate --scenario mine.txtar

  # A hundred scenarios drawn at random, and then the one that weir was worst in
  weir simulate --random 100 --seed 7 --html report.html
  weir simulate random-7-46-surge --seed 7 --seeds 1
  weir simulate --show random-7-46-surge > mine.txtar

  # What would happen to a service: each mode, a zone lost, twice the traffic, an endpoint more or less
  weir simulate -f manifests/ --service shop/web --rate 2000

  # The same of a live cluster, with one question
  weir simulate --service shop/web --rate zone-a:1200,zone-b:400,zone-c:400 --lose zone-b

  # What one client decided, and why
  weir simulate brownout --strategies weir --trace client=a/1`

// simulateFlags are the command's flags as typed.
type simulateFlags struct {
	list, quiet, wide bool
	show              string
	files             []string
	strategies        []string
	seeds, jobs       int
	random            int
	seed              uint64
	output            string
	html              string

	config overflow.Config
	prefer string
	trace  string

	asks    whatIfFlags
	objects explainFlags // its source and cluster
}

// simulateCommand makes weir simulate.
func simulateCommand() *cobra.Command {
	var f simulateFlags
	c := &cobra.Command{
		Use:               "simulate [SCENARIO…]",
		Short:             "Compare strategies in simulated scenarios, and ask what if",
		Long:              simulateLong,
		Example:           simulateExample,
		ValidArgsFunction: completeScenarios,
		RunE: func(c *cobra.Command, args []string) error {
			err := f.run(c, args)
			if errors.Is(err, context.Canceled) {
				return errors.New("the simulation was ended early: there is no report")
			}
			return err
		},
	}
	cluster, source := f.objects.cluster.group(), f.objects.sourceGroup()
	const unmanaged = string(topology.ModeDisabled) // what a service without weir has
	f.objects.source.defaultMode = unmanaged
	source.Lookup(defaultFlag).Usage = strings.Replace(source.Lookup(defaultFlag).Usage,
		string(topology.ModeBalanced)+";", unmanaged+";", 1)
	for _, g := range []flagGroup{f.what(), f.results(), f.law(), f.asks.group(), cluster, source} {
		g.addTo(c)
	}
	for flag, names := range f.completions() {
		_ = c.RegisterFlagCompletionFunc(flag, names) // fails for a flag that there is not
	}
	c.MarkFlagsMutuallyExclusive("list", "show", "trace", "service", "random")
	return c
}

// completions are what a shell may offer for the values of flags.
func (f *simulateFlags) completions() map[string]cobra.CompletionFunc {
	one := func(values ...string) cobra.CompletionFunc {
		return cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
	}
	var modes []string
	for _, m := range topology.Modes() {
		modes = append(modes, string(m))
	}
	return map[string]cobra.CompletionFunc{
		"show": completeScenarios, "strategies": completeStrategies, "mode": one(modes...),
		"output": one("table", "json", "csv", "markdown"), "prefer": one("cost", "balanced", "latency"),
	}
}

func (f *simulateFlags) what() flagGroup {
	g := group("What to simulate")
	g.BoolVar(&f.list, "list", false, "list the standard scenarios")
	g.StringVar(&f.show, "show", "", "print a standard or a drawn scenario, to start your own from")
	g.IntVar(&f.random, "random", 0, "draw this many scenarios at random, by --seed, and play each once; a name such as random-7-46-surge plays one of them")
	g.StringArrayVar(&f.files, "scenario", nil, "play the scenario of this file, or a standard one by its name, or - for standard input; may be repeated")
	g.StringSliceVar(&f.strategies, "strategies", nil, "strategies to compare, of "+strings.Join(strategyNames(), ", ")+
		" (default all; with --service: "+simulate.TodayName+", which is kube-proxy in the service's mode, and weir)")
	g.IntVar(&f.seeds, "seeds", 0, fmt.Sprintf("runs of each scenario with each strategy (default %d; %d of more than %d scenarios; %d with --service)",
		compareSeeds, manySeeds, few, askSeeds))
	g.Uint64Var(&f.seed, "seed", 1, "seed of the first run; the next runs have the next numbers")
	g.IntVar(&f.jobs, "jobs", 0, "runs at once (default as many as there are processors)")
	return g
}

func (f *simulateFlags) results() flagGroup {
	g := group("Results")
	g.StringVarP(&f.output, "output", "o", "table", "table, json, csv or markdown")
	g.BoolVar(&f.wide, "wide", false, "show half of each 95 % confidence interval")
	g.StringVar(&f.html, "html", "", "write a page with tables and charts to this file")
	g.StringVar(&f.trace, "trace", "", "print instead what one client decided: client=NUMBER or client=ZONE/NUMBER; of one scenario and one strategy")
	g.BoolVarP(&f.quiet, "quiet", "q", false, "show no progress")
	return g
}

func (f *simulateFlags) law() flagGroup {
	g := group("Weir and Hazl")
	g.StringVar(&f.prefer, "prefer", "", "weir: cost, balanced or latency (default balanced)")
	g.BoolVar(&f.config.Shed, "shed", false, "weir: reject requests that no zone has capacity for")
	g.Float64Var(&f.config.Low, "hazl-low", 0, "Hazl: the band's low end, requests in flight per active endpoint (default 0.8)")
	g.Float64Var(&f.config.High, "hazl-high", 0, "Hazl: its high end (default 2)")
	return g
}

// Default numbers of seeds: as many as it takes to be sure of differences that matter, in a time that a user waits.
const (
	compareSeeds = 5
	manySeeds    = 3 // of more scenarios than few
	few          = 4
	askSeeds     = 3
)

// maxDrawn bounds how many scenarios are drawn: more take a day.
const maxDrawn = 10_000

// run does what was asked for.
func (f *simulateFlags) run(c *cobra.Command, args []string) error {
	f.asks.isAsking = slices.ContainsFunc(f.asks.names(), c.Flags().Changed)
	for _, name := range []string{"show", "trace", "html", "write-scenario"} {
		if c.Flags().Changed(name) && c.Flag(name).Value.String() == "" { // a script's variable that is not set
			return fmt.Errorf("--%s is empty", name)
		}
	}
	for _, name := range []string{"seeds", "jobs", "random"} { // 0 is not typed, and then it has a default
		if c.Flags().Changed(name) && c.Flag(name).Value.String() == "0" {
			return fmt.Errorf("--%s=0: want at least 1", name)
		}
	}
	if err := f.check(args); err != nil {
		return err
	}
	switch {
	case f.list:
		return f.printList(c.OutOrStdout())
	case f.show != "":
		return printScenario(c.OutOrStdout(), f.show)
	case f.asks.service != "":
		return f.ask(c)
	}
	strategies, err := f.compared(c.Flags().Changed("strategies"))
	if err != nil {
		return err
	}
	if f.random > 0 {
		c.SilenceUsage = true
		return f.compareDrawn(c, strategies)
	}
	scenarios, err := f.scenarios(c, args)
	if err != nil {
		return err
	}
	if f.trace != "" {
		return f.printTrace(c, scenarios, strategies)
	}
	return f.compare(c, scenarios, strategies)
}

// check refuses flags that make no sense, and completes the others.
func (f *simulateFlags) check(args []string) error {
	if !slices.Contains([]string{"table", "json", "csv", "markdown"}, f.output) {
		return fmt.Errorf("--output=%s: want table, json, csv or markdown", f.output)
	}
	const most = 1000 // more seeds tell nothing new
	if f.seeds < 0 || f.seeds > most || f.jobs < 0 {
		return fmt.Errorf("--seeds=%d --jobs=%d: want 1 to %d seeds, and 1 job at least", f.seeds, f.jobs, most)
	}
	if (f.list || f.show != "" || f.asks.service != "") && (len(args) > 0 || len(f.files) > 0) {
		return errors.New("a scenario does not go with --list, --show and --service")
	}
	if f.random < 0 || f.random > maxDrawn {
		return fmt.Errorf("--random=%d: want 1 to %d", f.random, maxDrawn)
	}
	if f.random > 0 && (len(args) > 0 || len(f.files) > 0 || f.seeds > 1) {
		return errors.New("--random draws its scenarios and plays each once: it goes neither with a scenario nor with --seeds")
	}
	if f.asks.service == "" && f.asks.isAsking {
		return errors.New("--rate, --lose and what else is under What if need a --service to ask about")
	}
	if f.html != "" && (f.list || f.show != "" || f.asks.service != "" || f.trace != "") {
		return errors.New("--html shows comparisons of strategies")
	}
	if f.asks.service == "" && len(f.objects.source.files) > 0 {
		return errors.New("--filename (-f) needs a --service to ask about")
	}
	return f.checkLaw()
}

// checkLaw reads the flags about weir and Hazl.
func (f *simulateFlags) checkLaw() error {
	f.config.Prefer = overflow.Prefer(f.prefer)
	for _, strategy := range []string{"Weir", "Hazl"} {
		if _, err := overflow.New(strategy, f.config); err != nil {
			return err
		}
	}
	return nil
}

// options are what all kinds of runs have in common.
func (f *simulateFlags) options(seeds int) simulate.Options {
	if f.seeds > 0 {
		seeds = f.seeds
	}
	return simulate.Options{Seeds: seeds, First: f.seed, Parallel: f.jobs}
}

// strategyNames lists the strategies, weir's own first.
func strategyNames() []string {
	var names []string
	for _, c := range strategy.All() {
		names = append(names, c.Name)
	}
	return names
}

// compared are the strategies to compare.
func (f *simulateFlags) compared(chosen bool) ([]strategy.Strategy, error) { //nolint:revive // whether the flag was typed.
	made := strategy.With(f.config)
	if !chosen {
		return made, nil
	}
	return f.named(func(name string) (strategy.Strategy, error) { return strategyNamed(made, name) })
}

// named finds the strategies that were typed, each once.
func (f *simulateFlags) named(find func(name string) (strategy.Strategy, error)) ([]strategy.Strategy, error) {
	if len(f.strategies) == 0 {
		return nil, errors.New("--strategies names none: want some of " + strings.Join(strategyNames(), ", "))
	}
	var all []strategy.Strategy
	for _, name := range f.strategies {
		found, err := find(name)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(all, func(c strategy.Strategy) bool { return c.Name == found.Name }) {
			return nil, fmt.Errorf("--strategies: %s is there twice", found.Name)
		}
		all = append(all, found)
	}
	return all, nil
}

// strategyNamed finds one of those that were made, in upper or lower case.
func strategyNamed(made []strategy.Strategy, name string) (strategy.Strategy, error) {
	for _, c := range made {
		if strings.EqualFold(c.Name, strings.TrimSpace(name)) {
			return c, nil
		}
	}
	c, err := strategy.Named(strings.TrimSpace(name)) // and the variants of weir
	if err != nil {
		return c, fmt.Errorf("--strategies: %w", err)
	}
	return c, nil
}

// defaultPrice is what explain takes, too.
const defaultPrice = explain.DefaultPrice

// namesOf lists scenarios' names.
func namesOf(scenarios []*scenario.Scenario) []string {
	names := make([]string, 0, len(scenarios))
	for _, s := range scenarios {
		names = append(names, s.Name)
	}
	return names
}
