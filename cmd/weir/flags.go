package main

import (
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/convert"
	"github.com/weir-lb/weir/internal/manifest"
)

// groupKey is the annotation of a flag that names the group it is listed under.
const groupKey = "weir_group"

// flagGroup collects the flags of one group, in the order in which they are to be listed.
type flagGroup struct {
	*pflag.FlagSet
	title string
}

func group(title string) flagGroup {
	return flagGroup{pflag.NewFlagSet(title, pflag.ContinueOnError), title}
}

// addTo gives the group's flags to a command.
func (g flagGroup) addTo(c *cobra.Command) {
	g.VisitAll(func(f *pflag.Flag) {
		f.Annotations = map[string][]string{groupKey: {g.title}}
	})
	c.Flags().SortFlags = false
	c.Flags().AddFlagSet(g.FlagSet)
}

// usage prints a command's usage with its flags in groups.
func usage(c *cobra.Command) error {
	out := c.OutOrStderr()
	_, _ = fmt.Fprint(out, "Usage:\n")
	if c.Runnable() {
		_, _ = fmt.Fprintf(out, "  %s\n", c.UseLine())
	}
	if c.HasAvailableSubCommands() {
		_, _ = fmt.Fprintf(out, "  %s [command]\n", c.CommandPath())
	}
	if c.HasExample() {
		_, _ = fmt.Fprintf(out, "\nExamples:\n%s\n", c.Example)
	}
	if c.HasAvailableSubCommands() {
		_, _ = fmt.Fprint(out, "\nCommands:\n")
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				_, _ = fmt.Fprintf(out, "  %-12s %s\n", sub.Name(), sub.Short)
			}
		}
	}
	printFlags(out, c.LocalFlags())
	if c.HasAvailableSubCommands() {
		_, _ = fmt.Fprintf(out, "\nSee '%s [command] --help' for more about a command.\n", c.CommandPath())
	}
	return nil
}

// printFlags lists flags by group; those without a group come last.
func printFlags(out io.Writer, flags *pflag.FlagSet) {
	const rest = "Flags"
	sets := make(map[string]*pflag.FlagSet)
	var titles []string
	flags.SortFlags = false
	flags.VisitAll(func(f *pflag.Flag) {
		title := rest
		if g := f.Annotations[groupKey]; len(g) > 0 {
			title = g[0]
		}
		if sets[title] == nil {
			sets[title] = pflag.NewFlagSet(title, pflag.ContinueOnError)
			sets[title].SortFlags = false
			if title != rest {
				titles = append(titles, title)
			}
		}
		sets[title].AddFlag(f)
	})
	const width = 120
	if sets[rest] != nil {
		titles = append(titles, rest)
	}
	for _, title := range titles {
		_, _ = fmt.Fprintf(out, "\n%s:\n%s", title, sets[title].FlagUsagesWrapped(width))
	}
}

// sourceFlags say where the manifests are and how they are understood. agent and explain share them.
type sourceFlags struct {
	files     []string
	recursive bool
	readingFlags
}

// readingFlags say how services are understood, wherever they come from. The controller has them, too.
type readingFlags struct {
	costs       string
	manage      string
	defaultMode string
}

// The flags that say what may set the distribution mode, and the values of the first.
const (
	manageFlag  = "manage"
	defaultFlag = "default-distribution"

	manageWeir = "weir"
	manageAll  = "all"
)

func (f *sourceFlags) group() flagGroup {
	g := group("Manifests")
	g.StringSliceVarP(&f.files, "filename", "f", nil,
		"files or folders of Kubernetes manifests (YAML or JSON), or - for standard input; may be repeated")
	g.BoolVarP(&f.recursive, "recursive", "R", false, "read the folders within folders, too")
	f.addCosts(g)
	g.StringVar(&f.manage, manageFlag, manageAll,
		"what may set the distribution mode: all (the label weir.dev/distribution, then the native annotations "+
			"and spec.trafficDistribution) or weir (the label alone)")
	g.StringVar(&f.defaultMode, defaultFlag, string(topology.ModeBalanced),
		"distribution mode of services that ask for none: "+modeNames())
	return g
}

func (f *readingFlags) addCosts(g flagGroup) {
	g.StringVar(&f.costs, "costs", "",
		"file with the costs between zones; without it 1 between zones of a region, 4 between regions, "+
			"2 more into another cluster (which an EndpointSlice, a Secret or cluster= of a scenario names)")
}

func modeNames() string {
	names := make([]string, 0, len(topology.Modes()))
	for _, m := range topology.Modes() {
		names = append(names, string(m))
	}
	return strings.Join(names, ", ")
}

// source checks the flags and turns them into what to read and how.
func (f *sourceFlags) source(in io.Reader) (manifest.Source, manifest.Options, error) {
	if len(f.files) == 0 {
		return manifest.Source{}, manifest.Options{}, &usageError{fmt.Errorf("no manifests: give them with --filename (-f)")}
	}
	o, err := f.options()
	if err != nil {
		return manifest.Source{}, o, err
	}
	return manifest.Source{Paths: f.files, Recursive: f.recursive, Stdin: in}, o, nil
}

// options checks the flags that say how services are understood.
func (f *readingFlags) options() (o manifest.Options, err error) {
	if f.manage != manageWeir && f.manage != manageAll {
		return o, &usageError{fmt.Errorf("--manage=%s: want weir or all", f.manage)}
	}
	mode, err := topology.ParseMode(f.defaultMode)
	if err != nil {
		return o, &usageError{fmt.Errorf("--default-distribution: %w", err)}
	}
	o.Convert = convert.Options{ManageAll: f.manage == manageAll, Default: mode}
	if f.costs != "" {
		o.Costs, err = manifest.ReadCosts(f.costs)
	}
	return o, err
}

// settings lists the values of all flags, for the log.
func settings(flags *pflag.FlagSet) []any {
	var attrs []any
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" {
			attrs = append(attrs, slog.String(strings.ReplaceAll(f.Name, "-", "_"), f.Value.String()))
		}
	})
	return attrs
}
