package main

import (
	"strings"
	"testing"
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
