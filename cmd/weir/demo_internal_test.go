package main

import (
	"strings"
	"testing"

	"github.com/weir-lb/weir/internal/demo"
	"github.com/weir-lb/weir/internal/sim"
)

func TestDemoRefusesWhatMakesNoSenseBeforeItStarts(t *testing.T) {
	for _, args := range []string{
		"--speed=0", "--rate=-1", "--rate=1e9", "--strategy=hope", "--compare=Weir,hope", "--mode=Sideways",
		"--zone-loss=explode", "--retry-on=4xx", "--output=xml", "--strategy=Weir --compare", "--speed=2 --quick", "unexpected",
	} {
		t.Run(args, func(t *testing.T) {
			var out, errors strings.Builder
			status := run(t.Context(), append([]string{"demo"}, strings.Fields(args)...), streams{out: &out, err: &errors})
			if status != exitUsage || out.Len() != 0 {
				t.Errorf("exit status %d, want %d; output %q, errors %q", status, exitUsage, out.String(), errors.String())
			}
			if !strings.Contains(errors.String(), "weir demo --help") {
				t.Errorf("no word of help: %q", errors.String())
			}
		})
	}
}

func TestRunsOfTheScriptAreComparedAsSimulationsAre(t *testing.T) {
	sc, err := demo.Script(demo.ScriptOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	p := demoPrinter{w: &out, output: "table"}
	for _, name := range []string{"weir", "hazl"} {
		result := &sim.Result{Scenario: sc.Name, Strategy: name, Seed: 1}
		p.plays = append(p.plays, demoPlay{scenario: sc})
		p.reports = append(p.reports, &demo.Report{Strategy: name, Result: result})
	}
	if err := p.finish(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"weir", "hazl", "in zone", "Measured at the clients"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "Simulation, not") {
		t.Errorf("what was measured is called a simulation:\n%s", out.String())
	}
}
