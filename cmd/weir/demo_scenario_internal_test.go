package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestScenariosThatSocketsCannotPlayAreRefusedBeforeAnythingRuns(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "broken.txtar")
	if err := os.WriteFile(broken, []byte("A story\n-- world --\nnodes a:1x1\n-- run --\nclients a:many\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"--scenario nowhere":                                `no scenario "nowhere": there are steady, skew`,
		"--scenario stedy":                                  `no scenario "stedy": did you mean steady? weir simulate --list`,
		"--scenario no/such.txtar":                          "no/such.txtar",
		"--scenario " + broken:                              "broken.txtar:5",
		"--scenario rollout":                                "rollout cannot be played on real sockets: line",
		"--scenario steady,autoscale":                       "autoscale",
		"--scenario steady --contender envoy-zone":          "envoy-zone",
		"--scenario steady --contender nobody":              "nobody",
		"--scenario steady --output html":                   "html",
		"--scenario steady --output markdown --agree=false": "--agree",
		"--scenario steady --peak -1":                       "--peak=-1",
		"--scenario steady --peak NaN":                      "--peak=NaN: want 1 or more",
		"--scenario steady --peak 1e-300":                   "--peak=1e-300: want 1 or more",
		"--scenario steady --speed 2":                       "speed",
		"--scenario steady --strategy Hazl":                 "strategy",
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
	if status == 0 || !strings.Contains(errors.String(), "play steady") {
		t.Errorf("status %d, %s%s", status, out.String(), errors.String())
	}
}
