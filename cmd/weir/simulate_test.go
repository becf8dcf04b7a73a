package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/golden"
	"github.com/weir-lb/weir/internal/sim/scenario"
	"github.com/weir-lb/weir/internal/simulate"
	"github.com/weir-lb/weir/test/scenarios"
)

const tiny = "testdata/tiny.txtar" // some seconds of a few requests

func TestSimulateComparesInEachFormat(t *testing.T) {
	for name, args := range map[string][]string{
		"simulate-table":    {"--wide"},
		"simulate-markdown": {"-o", "markdown"},
		"simulate-csv":      {"-o", "csv"},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"simulate", "--scenario", tiny, "--strategies", "weir,Random", "--seeds", "2"}, args...)
			status, out, err := weir(t, "", args...)
			if status != exitOK || strings.TrimSpace(strings.TrimPrefix(err, simulate.Disclaimer)) != "" {
				t.Fatalf("status %d, error %q", status, err)
			}
			if !strings.Contains(out+err, simulate.Disclaimer) {
				t.Errorf("the report does not say %q", simulate.Disclaimer)
			}
			golden.Check(t, name+".golden", out)
		})
	}
}

func TestSimulateDrawsScenarios(t *testing.T) {
	args := []string{"simulate", "--random", "2", "--seed", "11", "--strategies", "weir,random,oracle"}
	status, table, err := weir(t, "", args...)
	if status != exitOK || !strings.Contains(table, "means over 2 scenarios drawn with seed 11") || !strings.Contains(table, "random-11-2-surge") {
		t.Fatalf("status %d, error %q, output:\n%s", status, err, table)
	}
	if _, again, _ := weir(t, "", args...); again != table {
		t.Errorf("not the same twice:\n%s", cmp.Diff(table, again))
	}
	_, out, _ := weir(t, "", append(args, "-o", "json")...)
	var got struct {
		Drawn struct {
			Scenarios int
			Rivals    []struct{ Strategy string }
		}
		Scenarios []struct{ Scenario string }
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || got.Drawn.Scenarios != 2 || len(got.Drawn.Rivals) != 2 || len(got.Scenarios) != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	for _, format := range []string{"csv", "markdown"} {
		if status, out, err := weir(t, "", append(args, "-o", format)...); status != exitOK || !strings.Contains(out, "surge") {
			t.Errorf("%s: status %d, error %q, output:\n%s", format, status, err, out)
		}
	}
}

func TestADrawnScenarioIsPlayedAndPrintedByItsName(t *testing.T) {
	status, text, err := weir(t, "", "simulate", "--show", "random-11-2-surge")
	if status != exitOK || !strings.HasPrefix(text, "Drawn at random: one zone sends more\n-- cluster --\n") {
		t.Fatalf("status %d, error %q, output:\n%s", status, err, text)
	}
	path := filepath.Join(t.TempDir(), "random-11-2-surge.txtar")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, byName, _ := weir(t, "", "simulate", "random-11-2-surge", "--strategies", "weir", "--seeds", "1", "-o", "json")
	_, byFile, _ := weir(t, "", "simulate", "--scenario", path, "--strategies", "weir", "--seeds", "1", "-o", "json")
	if byName != byFile || !strings.Contains(byName, `"random-11-2-surge"`) {
		t.Errorf("by name and by file differ:\n%s", cmp.Diff(byName, byFile))
	}
}

func TestSimulateAnswersProgramsWithTheAssumptions(t *testing.T) {
	status, out, err := weir(t, "", "simulate", "--scenario", tiny, "--strategies", "weir,hazl", "--seeds", "1", "-o", "json")
	if status != exitOK {
		t.Fatalf("status %d, error %q", status, err)
	}
	var got struct {
		Notice      string
		Assumptions []string
		Scenarios   []struct {
			Scenario   string
			Strategies []struct{ Strategy string }
		}
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if got.Notice != simulate.Disclaimer || !slices.Equal(got.Assumptions, simulate.Assumptions()) {
		t.Errorf("notice %q, %d assumptions", got.Notice, len(got.Assumptions))
	}
	if len(got.Scenarios) != 1 || got.Scenarios[0].Scenario != "tiny" || len(got.Scenarios[0].Strategies) != 2 {
		t.Errorf("scenarios %+v", got.Scenarios)
	}
}

func TestSimulateListsAndShowsTheStandardScenarios(t *testing.T) {
	status, out, err := weir(t, "", "simulate", "--list")
	if status != exitOK || err != "" {
		t.Fatalf("status %d, error %q", status, err)
	}
	for _, name := range scenarios.Names() {
		if !strings.Contains(out, "\n"+name+" ") {
			t.Errorf("the list lacks %s:\n%s", name, out)
		}
	}
	status, shown, err := weir(t, "", "simulate", "--show", scenarios.Names()[0])
	want, _ := scenarios.Read(scenarios.Names()[0])
	if status != exitOK || shown != string(want) {
		t.Errorf("status %d, error %q, shown:\n%s", status, err, shown)
	}
	status, out, err = weir(t, "", "simulate", "--list", "-o", "json")
	var list struct {
		Scenarios []struct{ Name, Title string }
	}
	if bad := json.Unmarshal([]byte(out), &list); status != exitOK || bad != nil || len(list.Scenarios) != len(scenarios.Names()) {
		t.Errorf("status %d, error %q, %v, %d scenarios", status, err, bad, len(list.Scenarios))
	}
}

func TestAScenarioFromStandardInputIsPlayed(t *testing.T) {
	text, err := os.ReadFile(tiny)
	if err != nil {
		t.Fatal(err)
	}
	status, out, problem := weir(t, string(text), "simulate", "--scenario", "-", "--strategies", "weir", "--seeds", "1", "-o", "csv")
	if status != exitOK || !strings.Contains(out, "stdin,weir,inZone,") {
		t.Errorf("status %d, error %q, output:\n%s", status, problem, out)
	}
}

func TestMistakesInScenariosAreToldAllWithFileLineAndField(t *testing.T) {
	folder := t.TempDir()
	one, other := filepath.Join(folder, "one.txtar"), filepath.Join(folder, "other.txtar")
	text, err := os.ReadFile(tiny)
	if err != nil {
		t.Fatal(err)
	}
	write(t, one, strings.Replace(string(text), "workers=2", "workers=none", 1))
	write(t, other, strings.Replace(string(text), "stress 12s..18s", "stress 12s", 1))
	status, out, problem := weir(t, "", "simulate", "--scenario", one, "--scenario", other)
	if status != exitFailed || out != "" {
		t.Errorf("status %d, output %q", status, out)
	}
	for _, want := range []string{"\n" + one + ":9: ", "\n" + other + ":11: stress: "} {
		if !strings.Contains(problem, want) {
			t.Errorf("the error lacks %q:\n%s", want, problem)
		}
	}
	write(t, other, string(text))
	twice := filepath.Join(folder, "tiny.txtar")
	write(t, twice, string(text))
	if status, _, err := weir(t, "", "simulate", "--scenario", tiny, "--scenario", twice); status != exitFailed || !strings.Contains(err, "two scenarios are called tiny") {
		t.Errorf("status %d, error %q", status, err)
	}
}

func TestScenariosWhoseNamesReportsCannotUseAreRefused(t *testing.T) {
	text, err := os.ReadFile(tiny)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for name, want := range map[string]string{
		".txtar":           `a scenario is called "": give`,
		"two\nlines.txtar": `a scenario is called "two\nlines": give`,
		"overall.txtar":    "a scenario is called overall, as reports call all of them together",
	} {
		file := filepath.Join(folder, name)
		write(t, file, string(text))
		if status, out, err := weir(t, "", "simulate", "--scenario", file); status != exitFailed || out != "" || !strings.Contains(err, want) {
			t.Errorf("%q: status %d, output %q, error %q; want one with %q", name, status, out, err, want)
		}
	}
}

func TestAStandardScenarioIsNamedEitherWay(t *testing.T) {
	rest := []string{"--strategies", "random", "--seeds", "1", "-o", "csv"}
	_, want, _ := weir(t, "", append([]string{"simulate", "single"}, rest...)...)
	status, got, err := weir(t, "", append([]string{"simulate", "--scenario", "single"}, rest...)...)
	if status != exitOK || got != want || !strings.Contains(got, "single") {
		t.Errorf("status %d, error %q, and\n%s\nwant\n%s", status, err, got, want)
	}
	status, _, err = weir(t, "", "simulate", "--scenario", "singel")
	if status != exitFailed || !strings.Contains(err, `no scenario "singel": did you mean single?`) {
		t.Errorf("status %d, error %q", status, err)
	}
}

func TestAScenarioThatCannotBeReadIsToldWithItsFlag(t *testing.T) {
	folder := t.TempDir()
	large := filepath.Join(folder, "large.txtar")
	write(t, large, "A story\n"+strings.Repeat("x", 4<<20))
	missing := filepath.Join(folder, "none.txtar")
	for file, want := range map[string]string{
		large: "more than 4 MiB", missing: "no such file", folder: "is a directory",
	} {
		for _, command := range []string{"simulate", "demo"} {
			status, out, err := weir(t, "", command, "--scenario", file)
			if status == exitOK || out != "" || !strings.Contains(err, "--scenario="+file+": ") || !strings.Contains(err, want) {
				t.Errorf("%s: status %d, output %q, error %q; want one with %q", command, status, out, err, want)
			}
		}
	}
	status, out, err := weir(t, strings.Repeat("x", 4<<20+1), "simulate", "--scenario", "-")
	if status != exitFailed || out != "" || !strings.Contains(err, "--scenario=-: more than 4 MiB") {
		t.Errorf("status %d, output %q, error %q", status, out, err)
	}
}

// plain reads a comparison and leaves out what only its page has.
func plain(t *testing.T, text string) any {
	t.Helper()
	var document any
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		t.Fatal(err)
	}
	var prune func(part any)
	prune = func(part any) {
		switch part := part.(type) {
		case map[string]any:
			for _, name := range []string{"details", "timeline", "zones", "source"} {
				delete(part, name)
			}
			for _, p := range part {
				prune(p)
			}
		case []any:
			for _, p := range part {
				prune(p)
			}
		}
	}
	prune(document)
	return document
}

func TestSimulateWritesAWholePageOrNone(t *testing.T) {
	folder := t.TempDir()
	page := filepath.Join(folder, "report.html")
	args := []string{"simulate", "--scenario", tiny, "--strategies", "weir,random", "--seeds", "1"}
	status, _, err := weir(t, "", append(args, "--html", page)...)
	if status != exitOK {
		t.Fatalf("status %d, error %q", status, err)
	}
	text, problem := os.ReadFile(page) //nolint:gosec // the test's own file.
	if problem != nil || !strings.Contains(string(text), "</html>") {
		t.Errorf("the page: %v, %d bytes", problem, len(text))
	}
	_, data, _ := strings.Cut(string(text), `id="result">`)
	data, _, _ = strings.Cut(data, "</script>")
	for _, part := range []string{`"details":`, `"timeline":`, `"zones":`, `"source":`} {
		if !strings.Contains(data, part) {
			t.Errorf("the page has no %s to draw charts of", part)
		}
	}
	_, out, _ := weir(t, "", append(args, "-o", "json")...)
	if diff := cmp.Diff(plain(t, out), plain(t, data)); diff != "" {
		t.Errorf("the page does not show what -o json prints; -json +page:\n%s", diff)
	}

	missing := filepath.Join(folder, "none", "x.html")
	status, out, err = weir(t, "", append(args, "--html", missing)...)
	if status != exitFailed || out != "" || !strings.Contains(err, missing+": ") || !strings.Contains(err, "--html") {
		t.Errorf("status %d, output %q, error %q", status, out, err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 1 {
		t.Errorf("in the folder are %v, %v", left, err)
	}
}

func TestAMistakeInSimulateEndsWithStatus2(t *testing.T) {
	noCluster(t)
	for args, want := range map[string]string{
		"simulate stedy":                                 `no scenario "stedy": did you mean steady`,
		"simulate --show stedy":                          `did you mean steady`,
		"simulate -o xml":                                "--output=xml: want table, json, csv or markdown",
		"simulate --strategies luck":                     `--strategies: unknown strategy "luck"`,
		"simulate --strategies weir,Weir":                "weir is there twice",
		"simulate --seeds -1":                            "--seeds=-1",
		"simulate --strategies wier":                     `unknown strategy "wier": did you mean weir? There are random`,
		"simulate --strategies=":                         "--strategies names none",
		"simulate steady steady":                         "scenario steady is there twice",
		"simulate mine.txtar":                            "did you mean the file --scenario mine.txtar?",
		"simulate melt":                                  "there are steady, skew",
		"simulate --lose zone-a":                         "need a --service",
		"simulate steady --rate 100":                     "need a --service",
		"simulate --prefer some":                         `unknown preference "some"`,
		"simulate --hazl-low 3":                          "load band 3 to 2",
		"simulate --list --show steady":                  "[list show]",
		"simulate --random -1":                           "--random=-1: want 1 to 10000",
		"simulate --random 0":                            "--random=0: want at least 1",
		"simulate steady --seeds 0":                      "--seeds=0: want at least 1",
		"simulate steady --jobs 0":                       "--jobs=0: want at least 1",
		"simulate --random 5 steady":                     "--random draws its scenarios",
		"simulate --random 5 --seeds 2":                  "--random draws its scenarios",
		"simulate --random 5 --list":                     "[list random]",
		"simulate random-1-2-calm":                       "random-SEED-NUMBER-KIND",
		"simulate --show random-1":                       "random-SEED-NUMBER-KIND",
		"simulate --strategies static-balanced":          "static-balanced is called hints-balanced now",
		"simulate steady --show=":                        "--show is empty",
		"simulate steady --html=":                        "--html is empty",
		"simulate -f x --service a --write-scenario=":    "--write-scenario is empty",
		"simulate steady --list":                         "does not go with",
		"simulate steady --trace client=1":               "name one scenario, and one strategy",
		"simulate steady --strategies weir --trace a":    "want client=NUMBER",
		"simulate -f x":                                  "needs a --service",
		"simulate -f x --service a":                      "needs a --rate",
		"simulate -f x --service a --rate much":          `rate "much"`,
		"simulate -f x --service a --rate 1 --bytes big": `"big": want a size`,
		"simulate -f x --service a --rate 1 --cv 11":     "--cv=11",
		"simulate -f x --service a --rate 1 --clients 0": "--clients=0",
		"simulate -f x --service a --rate 1 --price -1":  "--price=-1",
		"simulate -f x --service a --rate 1 --html y":    "--html shows comparisons",
		"simulate --service a --rate 1":                  "no cluster and no manifests",
		"simulate -f x --service a --rate 1 --workers 1 --service-time 1s --utilisation 1": "two of them say what the third is",
	} {
		t.Run(args, func(t *testing.T) {
			status, out, err := weir(t, "", strings.Fields(args)...)
			if status != exitUsage || !strings.Contains(err, want) || out != "" {
				t.Errorf("status %d, output %q, error %q; want status 2 and an error with %q", status, out, err, want)
			}
		})
	}
}

func TestATraceIsPrintedInWords(t *testing.T) {
	status, out, err := weir(t, "", "simulate", "--scenario", tiny, "--strategies", "weir", "--trace", "client=a/1")
	if status != exitOK || !strings.Contains(out, "calm       a 100") || !strings.Contains(out, "the zone copes with its own traffic") {
		t.Errorf("status %d, error %q, output:\n%s", status, err, out)
	}
	status, _, err = weir(t, "", "simulate", "--scenario", tiny, "--strategies", "weir", "--trace", "client=9")
	if status != exitFailed || !strings.Contains(err, "scenario tiny has 4 clients, not 9") {
		t.Errorf("status %d, error %q", status, err)
	}
}

func TestInterruptedSimulationsPrintNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, err strings.Builder
	status := run(ctx, []string{"simulate"}, streams{in: strings.NewReader(""), out: &out, err: &err})
	if status != exitFailed || out.String() != "" || !strings.Contains(err.String(), "ended early") {
		t.Errorf("status %d, output %q, error %q", status, out.String(), err.String())
	}
}

func TestTheProgressBarFitsItsLine(t *testing.T) {
	p := simulate.Progress{Runs: 3, Of: 12, Done: 0.25, Elapsed: 10 * time.Second}
	if got, want := barText(p, 60), strings.Repeat("█", 7)+strings.Repeat("░", 23)+"  25 %  3 of 12 runs, 30s left"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for width := range 100 {
		if got := len([]rune(barText(p, width))); got > width {
			t.Errorf("%d columns in %d", got, width)
		}
	}
	var w strings.Builder
	b := &bar{w: &w, width: func() int { return 20 }}
	b.show(p)
	b.show(p) // too soon
	b.clear()
	if got := w.String(); strings.Count(got, "25 %") != 1 || !strings.HasSuffix(got, "\r\x1b[K") {
		t.Errorf("drawn: %q", got)
	}
	w.Reset()
	b = &bar{w: &w, width: func() int { return 0 }} // a terminal that does not say
	b.show(p)
	if got := w.String(); !strings.Contains(got, "25 %") {
		t.Errorf("drawn without a width: %q", got)
	}
}

func TestWhatIfAnswersFromManifests(t *testing.T) {
	args := []string{"simulate", "-f", "../../docs/examples/locality/cluster.yaml", "--service", "shop/cart", "--seeds", "1"}
	with := func(more ...string) []string { return slices.Concat(args, more) }
	file := filepath.Join(t.TempDir(), "cart.txtar")
	status, out, err := weir(t, "", with("--rate", "80", "--workers", "2", "--lose", "zone-a", "--traffic", "zone-b:x2",
		"--replicas", "zone-c:1", "--mode", "PreferSameZone", "--write-scenario", file)...)
	if status != exitOK || err != "" {
		t.Fatalf("status %d, error %q", status, err)
	}
	golden.Check(t, "simulate-what-if.golden", out)

	text, problem := os.ReadFile(file) //nolint:gosec // the test's own file.
	if problem != nil {
		t.Fatal(problem)
	}
	s, problem := scenario.Parse("cart.txtar", text)
	if problem != nil || s.String() != string(text) {
		t.Errorf("what was written is not what is read: %v", problem)
	}
	status, _, err = weir(t, "", "simulate", "--scenario", file, "--strategies", "weir", "--seeds", "1", "-o", "csv")
	if status != exitOK {
		t.Errorf("the written scenario: status %d, error %q", status, err)
	}

	status, _, err = weir(t, "", with("--rate", "80", "--service", "shop/carts")...)
	if want := "no service shop/carts: did you mean shop/cart?"; status == exitOK || !strings.Contains(err, want) {
		t.Errorf("status %d, error %q; want one with %q", status, err, want)
	}
	for text, want := range map[string]string{
		"--lose zone-x":                             "--lose=zone-x: lose zone zone-x: it has no endpoints; there are some in zone-a, zone-b, zone-c, zone-d",
		"--traffic zone-x:x2":                       "it has no clients; there are some in zone-a",
		"--traffic zone-a:2":                        "--traffic=zone-a:2: want ZONE:xFACTOR",
		"--replicas many":                           "--replicas=many: want NUMBER or ZONE:NUMBER",
		"--replicas 0":                              "--replicas=0: 0 replicas: want 1",
		"--mode Fair":                               `--mode=Fair: unknown distribution mode "Fair"`,
		"--strategies luck":                         `unknown strategy "luck"`,
		"--strategies=":                             "--strategies names none",
		"--strategies today,Today":                  "--strategies: today is there twice",
		"--lose zone-a --lose zone-a":               "--lose=zone-a: it is asked twice",
		"--traffic zone-a:x2 --traffic zone-a:x2.0": "--traffic=zone-a:x2.0: it is asked twice",
	} {
		if status, _, err := weir(t, "", with(append([]string{"--rate", "80"}, strings.Fields(text)...)...)...); status != exitUsage || !strings.Contains(err, want) {
			t.Errorf("%s: status %d, error %q; want 2 and one with %q", text, status, err, want)
		}
	}
}

func TestEachFormOfSimulateIsCSVWithOneMeaningForEachColumn(t *testing.T) {
	play := []string{"simulate", "--scenario", tiny, "--seeds", "1", "-o", "csv"}
	for name, args := range map[string][]string{
		"comparison": append(slices.Clone(play), "--strategies", "random"),
		"trace":      append(slices.Clone(play), "--strategies", "weir", "--trace", "client=1"),
		"what if":    {"simulate", "-f", "../../docs/examples/locality/cluster.yaml", "--service", "shop/cart", "--rate", "20", "--workers", "1", "--lose", "zone-a", "--seeds", "1", "-o", "csv"},
	} {
		t.Run(name, func(t *testing.T) {
			status, out, problem := weir(t, "", args...)
			rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
			if status != exitOK || err != nil || len(rows) < 2 {
				t.Fatalf("status %d, %d rows, %v, error %q", status, len(rows), err, problem)
			}
			if head := slices.Compact(slices.Sorted(slices.Values(rows[0]))); len(head) != len(rows[0]) {
				t.Errorf("two columns have one name: %v", rows[0])
			}
			for _, cell := range slices.Concat(rows...) {
				if strings.Contains(cell, "→") {
					t.Errorf("two values in one cell: %q", cell)
				}
			}
		})
	}
}

func TestSimulateCompletesWhatFlagsMayBe(t *testing.T) {
	for args, want := range map[string]string{
		"br": "brownout", "--strategies weir,": "weir,hazl\t", "--output ": "markdown", "--mode ": "PreferSameZone",
		"--prefer ": "latency", "--show ": "zone-loss",
	} {
		_, out, _ := weir(t, "", append([]string{"__complete", "simulate"}, strings.Split(args, " ")...)...)
		if !strings.Contains("\n"+out, "\n"+want) {
			t.Errorf("%q is completed with\n%s", args, out)
		}
	}
}
