package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/weir-lb/weir/internal/golden"
)

// asWeir is the environment variable that makes the test program be weir, so that a test can run it as a process of its
// own and send it signals.
const asWeir = "WEIR_TEST_AS_WEIR"

func TestMain(m *testing.M) {
	if os.Getenv(asWeir) != "" {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

// weir runs a command in this process and gives its status and what it wrote.
func weir(t *testing.T, stdin string, args ...string) (status int, out, err string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	status = run(t.Context(), args, streams{in: strings.NewReader(stdin), out: &stdout, err: &stderr})
	return status, stdout.String(), stderr.String()
}

func TestEachCommandSaysHowItIsUsed(t *testing.T) {
	for name, args := range map[string][]string{
		"help":            nil,
		"help-agent":      {"agent", "--help"},
		"help-explain":    {"explain", "--help"},
		"help-completion": {"completion", "--help"},
		"help-controller": {"controller", "--help"},
		"help-simulate":   {"simulate", "--help"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("NODE_NAME", "")
			status, out, err := weir(t, "", args...)
			if status != exitOK || err != "" {
				t.Errorf("status %d, error %q", status, err)
			}
			golden.Check(t, name+".golden", out)
		})
	}
}

func TestAMistakeInTheCommandEndsWithStatus2(t *testing.T) {
	t.Setenv("NODE_NAME", "")
	noCluster(t)
	for args, want := range map[string]string{
		"walk":                        `unknown command "walk" for "weir"`,
		"explain --colour":            "unknown flag: --colour",
		"explain a b":                 "accepts at most 1 arg(s), received 2",
		"explain":                     "no cluster and no manifests",
		"explain --manage some":       "--manage=some: want weir or all",
		"explain -f x --preview Fair": `--preview: unknown distribution mode "Fair"`,
		"explain -f x --preview Auto --mode Auto":              "[mode preview]",
		"explain -f x -o xml":                                  "--output=xml: want table, wide, json or yaml",
		"explain -f x --mode Fair":                             `unknown distribution mode "Fair"`,
		"explain -f x --traffic much":                          `traffic "much": want an amount`,
		"explain -f x --price-per-gb -1":                       "--price-per-gb=-1: want 0 to 1e+06",
		"explain -f x --price-per-gb Inf":                      "--price-per-gb=+Inf: want 0 to 1e+06",
		"explain -f x --manage some":                           "--manage=some: want weir or all",
		"agent -f x":                                           "no node: name it with --node or in $NODE_NAME",
		"agent --node a":                                       "no cluster",
		"agent --node a --nodes own --hints plan":              "--nodes=own: a plan is made of all nodes",
		"agent --node a --nodes some":                          "--nodes=some: want own or all",
		"agent --node a --serve some":                          "--serve=some: want labelled or all",
		"agent --node a -f x --hints native --nodes own":       "--nodes=own: manifests are read whole",
		"agent --node a --kube-api-qps 0":                      "--kube-api-qps=0: want more than 0",
		"agent --node a -f x --map web":                        `mapping "web": no = in it`,
		"agent --node a -f x --strategy Luck":                  `unknown overflow strategy "Luck"`,
		"agent --node a -f x --algorithm Luck":                 `unknown algorithm "Luck"`,
		"agent --node a -f x --retry-attempts 9":               "retry attempts are 9: want 1 to 8",
		"agent --node a -f x --retry-on rain":                  `retry on "rain"`,
		"agent --node a -f x --hints mine":                     `unknown source of hints "mine"`,
		"agent --node a -f x --retry-attempts 0":               "want 1 to 8",
		"agent --node a -f x --retry-budget NaN":               "the retry budget is NaN",
		"agent --node a -f x --drain-timeout -1s":              "the drain limit is -1s",
		"agent --node a -f x --log-level loud":                 `unknown log level "loud"`,
		"agent --node a -f x --log-format xml":                 `unknown log format "xml"`,
		"agent --node a -f x --default-distribution Sometimes": `unknown distribution mode "Sometimes"`,
		"completion tcsh":                                      `invalid argument "tcsh"`,
		"version -o xml":                                       `unknown output "xml"`,
	} {
		t.Run(args, func(t *testing.T) {
			status, out, err := weir(t, "", strings.Fields(args)...)
			if status != exitUsage || !strings.Contains(err, want) || out != "" {
				t.Errorf("status %d, output %q, error %q; want status 2 and an error with %q", status, out, err, want)
			}
			if !strings.HasPrefix(err, "weir: ") {
				t.Errorf("error %q does not name the program", err)
			}
		})
	}
}

func TestAMistakeInTheManifestsEndsWithStatus1(t *testing.T) {
	good, empty := writeManifests(t, fixture{}), t.TempDir()
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"an unknown node": {[]string{"agent", "-f", good, "--node", "node-x"}, `no node is called "node-x": did you mean node-a`},
		"an unknown node among none": {
			[]string{"explain", "-f", empty, "--node", "node-x"}, `no node is called "node-x": the manifests hold no node`,
		},
		"an unknown service": {[]string{"explain", "-f", good, "shop/wob"}, "no service shop/wob: did you mean shop/web?"},
		"no such file":       {[]string{"explain", "-f", good + "-not"}, "-not"},
		"an admin address that cannot be had": {
			[]string{"agent", "-f", good, "--node", "node-a", "--admin-bind-address", "192.0.2.1:1"},
			"listen for admin requests on 192.0.2.1:1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			status, _, err := weir(t, "", c.args...)
			if status != exitFailed || !strings.Contains(err, c.want) {
				t.Errorf("status %d, error %q; want status 1 and an error with %q", status, err, c.want)
			}
		})
	}
}

func TestCompletionAndVersionAnswer(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if status, out, _ := weir(t, "", "completion", shell); status != exitOK || !strings.Contains(out, "weir") {
			t.Errorf("completion %s: status %d, %d bytes", shell, status, len(out))
		}
	}
	if status, out, _ := weir(t, "", "version"); status != exitOK || !strings.HasPrefix(out, "weir ") {
		t.Errorf("version: status %d, %q", status, out)
	}
	if status, out, _ := weir(t, "", "version", "-o", "json"); status != exitOK || !strings.Contains(out, `"platform": `) {
		t.Errorf("version -o json: status %d, %q", status, out)
	}
}
