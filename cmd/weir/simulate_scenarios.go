package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/sim/scenario"
	"github.com/weir-lb/weir/internal/sim/strategy"
	"github.com/weir-lb/weir/internal/simulate"
	"github.com/weir-lb/weir/test/scenarios"
)

// scenarios reads what is to be played: the standard scenarios of these names, all of them when there is neither a name
// nor a file, and then the files.
//
// Errors: all mistakes of all files, as FILE:LINE: FIELD: MESSAGE.
func (f *simulateFlags) scenarios(c *cobra.Command, names []string) ([]*scenario.Scenario, error) {
	if len(names) == 0 && len(f.files) == 0 {
		names = scenarios.Names()
	}
	var all []*scenario.Scenario
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return nil, fmt.Errorf("scenario %s is there twice", name)
		}
		s, err := standardScenario(name)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	c.SilenceUsage = true
	var mistakes []error
	for _, name := range f.files {
		s, err := scenarioOf(name, c.InOrStdin())
		if _, ok := errors.AsType[*scenario.Error](err); ok {
			mistakes = append(mistakes, err)
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	if len(mistakes) > 0 {
		return nil, fmt.Errorf("there are mistakes in scenarios:\n%w", errors.Join(mistakes...))
	}
	return all, distinct(all)
}

// scenarioOf reads what --scenario names: a standard scenario, a file, or - for standard input.
func scenarioOf(name string, stdin io.Reader) (*scenario.Scenario, error) {
	if slices.Contains(scenarios.Names(), name) {
		return standardScenario(name)
	}
	var (
		text []byte
		err  error
	)
	file := name
	if name == "-" {
		file = "stdin"
		text, err = readBounded(stdin)
	} else {
		text, err = readScenarioFile(name)
	}
	switch {
	case errors.Is(err, os.ErrNotExist) && filepath.Ext(name) == "" && filepath.Base(name) == name:
		return nil, unknownScenario(name)
	case err != nil:
		return nil, fmt.Errorf("--scenario=%s: %w", name, err)
	}
	return scenario.Parse(file, text)
}

func readScenarioFile(path string) ([]byte, error) {
	file, err := os.Open(path) //nolint:gosec // the user named it.
	if err != nil {
		return nil, err
	}
	text, err := readBounded(file)
	return text, errors.Join(err, file.Close())
}

// maxScenario bounds a scenario's text, in bytes: several times what --write-scenario makes of 10,000 endpoints.
const maxScenario = 4 << 20

// readBounded reads a scenario's text, and refuses what is too long for one before memory is full of it.
func readBounded(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxScenario+1))
	if err == nil && len(text) > maxScenario {
		err = fmt.Errorf("more than %d MiB: that is no scenario", maxScenario>>20)
	}
	return text, err
}

// distinct refuses names with which no table and no folder of pictures could tell two scenarios apart.
func distinct(all []*scenario.Scenario) error {
	names := namesOf(all)
	for i, name := range names {
		switch {
		case name == "" || strings.ContainsFunc(name, unicode.IsControl):
			return fmt.Errorf("a scenario is called %q: give its file a name that can be printed", name)
		case name == overallName:
			return fmt.Errorf("a scenario is called %s, as reports call all of them together: give its file another name", name)
		case slices.Contains(names[:i], name):
			return fmt.Errorf("two scenarios are called %s: give one of the files another name", name)
		}
	}
	return nil
}

// overallName stands for all scenarios together, in reports and in names of pictures.
const overallName = "overall"

// standardScenario reads a scenario of the standard set, or draws the one of that name. Errors: a name that is none of it, with the one that was meant.
func standardScenario(name string) (*scenario.Scenario, error) {
	if simulate.IsDrawn(name) {
		return simulate.DrawNamed(name)
	}
	text, err := standardText(name)
	if err != nil {
		return nil, err
	}
	return scenario.Parse(name+".txtar", text)
}

// standardText gives a scenario of the standard set as it is written.
func standardText(name string) ([]byte, error) {
	if simulate.IsDrawn(name) {
		sc, err := simulate.DrawNamed(name)
		if err != nil {
			return nil, err
		}
		return []byte(sc.String()), nil
	}
	if !slices.Contains(scenarios.Names(), name) {
		return nil, unknownScenario(name)
	}
	return scenarios.Read(name)
}

func unknownScenario(name string) error {
	if strings.ContainsAny(name, `/\.`) {
		return fmt.Errorf("no scenario %q: did you mean the file --scenario %s?", name, name)
	}
	if near, ok := topology.Nearest(name, scenarios.Names()); ok {
		return fmt.Errorf("no scenario %q: did you mean %s? weir simulate --list names them all; a file is given with --scenario", name, near)
	}
	return fmt.Errorf("no scenario %q: there are %s; a file is given with --scenario", name, strings.Join(scenarios.Names(), ", "))
}

// printList lists the standard scenarios.
func (f *simulateFlags) printList(w io.Writer) error {
	type item struct {
		Name  string `json:"name"`
		Title string `json:"title"`
	}
	t := simulate.Table{Columns: []string{"SCENARIO", "WHAT HAPPENS"}}
	items := []item{}
	for _, name := range scenarios.Names() {
		s, err := standardScenario(name)
		if err != nil {
			return err
		}
		items = append(items, item{name, s.Title})
		t.Rows = append(t.Rows, []string{name, s.Title})
	}
	if f.output == "json" {
		return printData(w, f.output, struct {
			Scenarios []item `json:"scenarios"`
		}{items})
	}
	return f.printTable(w, &t, len(t.Columns))
}

// printScenario prints a standard scenario as it is written.
func printScenario(w io.Writer, name string) error {
	text, err := standardText(name)
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// completeScenarios completes names of standard scenarios.
func completeScenarios(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	for _, name := range scenarios.Names() {
		if !slices.Contains(args, name) {
			names = append(names, name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeStrategies completes the last of a list of strategies.
func completeStrategies(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	before := typed[:strings.LastIndex(typed, ",")+1]
	var names []string
	for _, c := range strategy.All() {
		if !slices.Contains(strings.Split(before, ","), c.Name) {
			names = append(names, before+c.Name+"\t"+cmp.Or(c.Title, c.Name))
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
