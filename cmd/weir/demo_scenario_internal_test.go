package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/demo"
	"github.com/weir-lb/weir/internal/sim"
	"github.com/weir-lb/weir/internal/sim/scenario"
	"github.com/weir-lb/weir/internal/sim/strategy"
)

func TestScenariosThatSocketsCannotPlayAreRefusedBeforeAnythingRuns(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "broken.txtar")
	if err := os.WriteFile(broken, []byte("A story\n-- cluster --\nnodes a:1x1\n-- run --\nclients a:many\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"--scenario nowhere":                                `no scenario "nowhere": there are steady, skew`,
		"--scenario stedy":                                  `no scenario "stedy": did you mean steady? weir simulate --list`,
		"--scenario no/such.txtar":                          "no/such.txtar",
		"--scenario " + broken:                              "broken.txtar:5",
		"--scenario rollout":                                "rollout cannot be played on real sockets: line",
		"--scenario steady,autoscale":                       "autoscale",
		"--scenario steady --strategy envoy-zone":           "envoy-zone",
		"--scenario steady --strategy none":                 "none",
		"--scenario steady --output html":                   "html",
		"--scenario steady --output markdown --agree=false": "--agree",
		"--scenario steady --peak -1":                       "--peak=-1",
		"--scenario steady --peak NaN":                      "--peak=NaN: want 1 or more",
		"--scenario steady --peak 1e-300":                   "--peak=1e-300: want 1 or more",
		"--scenario steady --speed 2":                       "speed",
		"--output markdown":                                 "markdown",
	} {
		t.Run(args, func(t *testing.T) {
			var out, errors strings.Builder
			status := run(t.Context(), append([]string{"demo"}, strings.Fields(args)...), streams{out: &out, err: &errors})
			if status == 0 || !strings.Contains(errors.String(), want) || strings.Contains(out.String(), "|") {
				t.Errorf("status %d, %s%s", status, out.String(), errors.String())
			}
		})
	}
}

func TestAnInterruptedScenarioEndsWithAnError(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	var out, errors strings.Builder
	status := run(ctx, []string{"demo", "--scenario", "steady", "--peak", "50"}, streams{out: &out, err: &errors})
	if status == 0 || !strings.Contains(errors.String(), "the run of steady was ended early") {
		t.Errorf("status %d, %s%s", status, out.String(), errors.String())
	}
}

func TestAScenarioThatItsUserEndsIsToldWithoutInternals(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer time.AfterFunc(500*time.Millisecond, cancel).Stop()
	var out, errors strings.Builder
	status := run(ctx, []string{"demo", "--scenario", "steady", "--peak", "50"}, streams{out: &out, err: &errors})
	if want := "weir: the run of steady was ended early: it has no result\n"; status != exitFailed || errors.String() != want {
		t.Errorf("status %d, %q; want %q", status, errors.String(), want)
	}
}

func TestTheSimulatedRunsBesideADemoHaveTheirSeedsAndEndEarly(t *testing.T) {
	text, err := os.ReadFile(tiny)
	if err != nil {
		t.Fatal(err)
	}
	sc, err := scenario.Parse(tiny, text)
	if err != nil {
		t.Fatal(err)
	}
	way, err := strategy.Named("weir")
	if err != nil {
		t.Fatal(err)
	}
	player, err := demo.PlayerFor(way.Name, way.Mode)
	if err != nil {
		t.Fatal(err)
	}
	o := demo.Options{Player: player, Seed: 7}
	results, err := simulateSeeds(t.Context(), sc, o)
	if err != nil || len(results) != demoSeeds {
		t.Fatalf("%d results, %v", len(results), err)
	}
	for i, r := range results {
		alone, err := sim.Run(sim.Options{Scenario: sc, Strategy: player.Simulated(), Seed: 7 + uint64(i)})
		if err != nil {
			t.Fatal(err)
		}
		if r.Seed != alone.Seed || r.Digest != alone.Digest {
			t.Errorf("run %d has seed %d and digest %x, want %d and %x", i, r.Seed, r.Digest, alone.Seed, alone.Digest)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := simulateSeeds(ctx, sc, o); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
}
