package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/weir-lb/weir/internal/golden"
	"github.com/weir-lb/weir/internal/kube/apitest"
)

// asking is a fixture whose service asks for hints that it does not have yet.
func asking(t *testing.T) cluster {
	t.Helper()
	w := fixture{mode: "PreferSameZone"}
	for i, z := range []string{"zone-a", "zone-b", "zone-c"} {
		w.endpoints = append(w.endpoints, member{ip: "10.0.0." + string(rune('1'+i)), port: 8080, zone: z})
	}
	return newCluster(t, writeManifests(t, w))
}

func TestADryRunOfTheControllerTellsWhatItWouldWrite(t *testing.T) {
	c := asking(t)
	for name, args := range map[string][]string{
		"controller-dry-run":      nil,
		"controller-dry-run-yaml": {"-o", "yaml"},
		"controller-dry-run-gate": {"--feature-gates", "PreferSameTrafficDistribution=false"},
		"controller-dry-run-all":  {"--manage", "all", "--default-distribution", "Disabled", "--feature-gates", "PreferSameTrafficDistribution=false"},
	} {
		t.Run(name, func(t *testing.T) {
			status, out, err := weir(t, "", c.flags(t, append([]string{"controller", "--dry-run"}, args...)...)...)
			if status != exitOK {
				t.Fatalf("status %d, error %q", status, err)
			}
			golden.Check(t, name+".golden", err+out)
		})
	}
}

func TestADryRunOfTheControllerIsReadByPrograms(t *testing.T) {
	status, out, err := weir(t, "", asking(t).flags(t, "controller", "--dry-run", "-o", "json")...)
	if status != exitOK {
		t.Fatalf("status %d, error %q", status, err)
	}
	var page struct {
		Services []struct{ Service, Asked, Mode string }
		Plans    []any
		Edits    []struct {
			EndpointSlice string
			Operations    []struct{ Op, Path string }
		}
	}
	if err := json.Unmarshal([]byte(out), &page); err != nil {
		t.Fatal(err)
	}
	if len(page.Services) != 1 || page.Services[0].Asked != "label" || len(page.Plans) == 0 {
		t.Errorf("%+v", page)
	}
	var paths []string
	for _, e := range page.Edits {
		for _, op := range e.Operations {
			paths = append(paths, op.Op+" "+op.Path)
		}
	}
	want := slices.Repeat([]string{"add /endpoints/0/hints", "add /metadata/annotations"}, 3) // each endpoint has a slice
	if !slices.Equal(want, paths) {
		t.Errorf("operations %q, want %q", paths, want)
	}
}

func TestAMistakeInTheControllersFlagsEndsWithStatus2(t *testing.T) {
	noCluster(t)
	for args, want := range map[string]string{
		"":                            "no cluster",
		"web":                         `unknown command "web" for "weir controller"`,
		"--manage some":               "--manage=some: want weir or all",
		"--default-distribution":      "flag needs an argument",
		"--default-distribution Fair": `--default-distribution: unknown distribution mode "Fair"`,
		"--feature-gates Other=true":  "unrecognized feature gate: Other",
		"--feature-gates TopologyAwareHints=perhaps":  "invalid value of TopologyAwareHints",
		"--concurrent-service-syncs 0":                "--concurrent-service-syncs=0: want at least 1",
		"--output xml":                                "--output=xml: want table, json or yaml",
		"--cleanup --output json":                     "--cleanup prints lines",
		"--kube-api-qps 0":                            "--kube-api-qps=0: want more than 0",
		"--log-level loud":                            `unknown log level "loud"`,
		"--leader-elect-lease-duration 15":            "missing unit",
		"--leader-elect-lease-duration 10s":           "could have two leaders",
		"--leader-elect-retry-period 9s":              "more than 1.2 tries",
		"--leader-elect-retry-period -1s":             "want more than 0",
		"--leader-elect-renew-deadline 20s --dry-run": "could have two leaders",
	} {
		t.Run(args, func(t *testing.T) {
			status, out, err := weir(t, "", append([]string{"controller"}, strings.Fields(args)...)...)
			if status != exitUsage || !strings.Contains(err, want) || out != "" {
				t.Errorf("status %d, output %q, error %q; want status 2 and an error with %q", status, out, err, want)
			}
		})
	}
}

func TestTheTimesOfAnElectionThatIsOffDoNotMatter(t *testing.T) {
	status, out, err := weir(t, "", asking(t).flags(t, "controller", "--dry-run", "--leader-elect=false", "--leader-elect-retry-period=1h")...)
	if status != exitOK || !strings.Contains(out, "would write 3 EndpointSlices") {
		t.Errorf("status %d, output %q, error %q", status, out, err)
	}
}

func TestAControllerThatCannotListenEndsWithStatus1(t *testing.T) {
	c := cluster{apitest.New(t)}
	status, _, err := weir(t, "", c.flags(t, "controller", "--health-probe-bind-address=", "--admin-bind-address=192.0.2.1:1", "--webhook=false")...)
	if want := "listen for admin requests on 192.0.2.1:1"; status != exitFailed || !strings.Contains(err, want) {
		t.Errorf("status %d, error %q; want status 1 and an error with %q", status, err, want)
	}
}
