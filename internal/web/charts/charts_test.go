package charts_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"github.com/weir-lb/weir/internal/sim/scenario"
	"github.com/weir-lb/weir/internal/sim/score"
	"github.com/weir-lb/weir/internal/sim/strategy"
	"github.com/weir-lb/weir/internal/simulate"
	"github.com/weir-lb/weir/internal/web/charts"
)

// evil is what a user's file may have for a title: it would end the script's element, and run.
const evil = `</script><img src=x onerror="alert('&')"><!--`

// scenarios are two short ones; the first hits one zone, the second all.
func scenarios(t *testing.T) []*scenario.Scenario {
	t.Helper()
	var all []*scenario.Scenario
	for name, stress := range map[string]string{"one": "affected a", "all": "affected a b"} {
		sc, err := scenario.Parse(name+".txtar", []byte(evil+`

About `+evil+`
-- cluster --
nodes eu/a:4x2 eu/b:4x2
service shop/web
endpoints a:2 b:2
-- run --
clients a:2 b:2
rate a:40 b:20
`+stress+`
length 20s
stress 12s..17s
-- steps --
12s rate a x2
`))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, sc)
	}
	return all
}

// result is a comparison as weir simulate makes it.
func result(t *testing.T) *score.Board {
	t.Helper()
	all, strategies := scenarios(t), strategy.All()
	out, err := simulate.Run(t.Context(), simulate.Options{Scenarios: all, Strategies: strategies, Seeds: 2, First: 1})
	if err != nil {
		t.Fatal(err)
	}
	var o score.Options
	for _, sc := range all {
		o.Scenarios = append(o.Scenarios, score.LabelOf(sc))
	}
	for i := range strategies {
		o.Strategies = append(o.Strategies, score.Label{Name: strategies[i].Name, Title: strategies[i].Title, Limit: strategies[i].Omniscient})
	}
	board := score.Compare(out.Results, o)
	board.Assumptions = []string{evil}
	board.AddDetails(strategies, all, out.Results)
	return &board
}

// page writes the page of a result.
func page(t *testing.T, result any) string {
	t.Helper()
	var b bytes.Buffer
	if err := charts.WriteReport(&b, result); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// elements lists a document's elements of a name, in order.
func elements(t *testing.T, document, name string) []*html.Node {
	t.Helper()
	root, err := html.Parse(strings.NewReader(document))
	if err != nil {
		t.Fatal(err)
	}
	var found []*html.Node
	for n := range root.Descendants() {
		if n.Type == html.ElementNode && n.Data == name {
			found = append(found, n)
		}
	}
	return found
}

// attribute reads an attribute; empty: it has none.
func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// text is all text in an element.
func text(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

func TestAPageHoldsItsResultAndNothingThatComesFromElsewhere(t *testing.T) {
	want := result(t)
	document := page(t, want)
	scripts := elements(t, document, "script")
	if len(scripts) != 2 || attribute(scripts[0], "type") != "application/json" || len(elements(t, document, "img")) > 0 {
		t.Fatalf("the page has %d scripts: names of the result have become elements", len(scripts))
	}
	read := func(text []byte, err error) (document any) {
		if err := errors.Join(err, json.Unmarshal(text, &document)); err != nil {
			t.Fatal(err)
		}
		return document
	}
	if diff := cmp.Diff(read(json.Marshal(want)), read([]byte(text(scripts[0])), nil)); diff != "" {
		t.Errorf("the page holds another result; -want +got:\n%s", diff)
	}
	for _, name := range []string{"link", "iframe", "object", "base", "form"} {
		if len(elements(t, document, name)) > 0 {
			t.Errorf("the page has <%s>", name)
		}
	}
	policy := ""
	for _, meta := range elements(t, document, "meta") {
		if attribute(meta, "http-equiv") == "Content-Security-Policy" {
			policy = attribute(meta, "content")
		}
	}
	hash := func(n *html.Node) string {
		sum := sha256.Sum256([]byte(text(n)))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	if want := "default-src 'none'; script-src " + hash(scripts[1]) + "; style-src " + hash(elements(t, document, "style")[0]) + "; img-src blob:"; policy != want {
		t.Errorf("the policy is %q, want %q", policy, want)
	}
	if len(document) > 250_000 {
		t.Errorf("two scenarios of 20 s take %d bytes, want at most 250 kB", len(document))
	}
}

// full is a disk without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

var errFull = errors.New("no space left")

func TestAPageTellsOfTheWritersError(t *testing.T) {
	if err := charts.WriteReport(full{}, &score.Board{}); !errors.Is(err, errFull) {
		t.Errorf("got %v, want the writer's error", err)
	}
}

// open loads a page in a browser without a window, and gives the document that its script made of it, and what the browser's
// console says.
func open(t *testing.T, document string) (made, console string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, []byte(document), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	browser := exec.CommandContext(ctx, "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", //nolint:gosec // the test's own file.
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--user-data-dir="+t.TempDir(),
		"--enable-logging=stderr", "--dump-dom", "file://"+file)
	var out, logged bytes.Buffer
	browser.Stdout, browser.Stderr = &out, &logged
	if err := browser.Run(); err != nil {
		t.Fatalf("chromium, which make clients installs: %v\n%s", err, logged.String())
	}
	var lines []string
	for line := range strings.Lines(logged.String()) {
		if strings.Contains(line, ":CONSOLE:") {
			lines = append(lines, line)
		}
	}
	return out.String(), strings.Join(lines, "")
}

func TestABrowserDrawsEachChartWithAMarkForEachStrategy(t *testing.T) {
	document, console := open(t, page(t, result(t)))
	if console != "" || len(elements(t, document, "img")) > 0 {
		t.Errorf("the page has an error, or a name in it became an element:\n%s", console)
	}
	strategies := len(strategy.All())
	figures := elements(t, document, "figure")
	if want := 2 + 2*6; len(figures) != want { // of all scenarios, and of each
		t.Fatalf("there are %d charts, want %d", len(figures), want)
	}
	for _, figure := range figures {
		id, drawn := attribute(figure, "id"), 0
		for n := range figure.Descendants() {
			if class := attribute(n, "class"); (class == "series" && strings.HasPrefix(attribute(n, "d"), "M")) || class == "mark" {
				drawn++
			}
			for _, a := range n.Attr {
				if strings.Contains(a.Val, "NaN") || strings.Contains(a.Val, "Infinity") || strings.Contains(a.Val, "undefined") {
					t.Errorf("%s: <%s %s=%q>", id, n.Data, a.Key, a.Val)
				}
			}
		}
		want := map[string]int{"cost": 2 * strategies, "load": 2 * strategies, "tradeoff": 2 * strategies}[id[strings.LastIndex(id, "-")+1:]]
		if want == 0 {
			want = strategies
		}
		if drawn != want { // in the trade-off half of the marks are the legend's
			t.Errorf("%s: %d marks are drawn, want %d", id, drawn, want)
		}
		if all := text(figure); !strings.Contains(all, "simulation, not a measurement") || !strings.Contains(all, "Save as SVG PNG") {
			t.Errorf("%s says %q", id, all)
		}
	}
	for _, th := range elements(t, document, "th") {
		if scope := attribute(th, "scope"); scope != "row" && scope != "col" {
			t.Errorf("a head of a table has the scope %q", scope)
		}
	}
	headings := elements(t, document, "h2")
	if n := strings.Count(document, "Simulation, not a measurement."); n < 2 || len(headings) < 3 || text(headings[2]) != evil {
		t.Errorf("the page says %d times that it is a simulation, and has %d headings", n, len(headings))
	}
}

func TestAPageWithoutAnyResultSaysSo(t *testing.T) {
	document, console := open(t, page(t, nil))
	if !strings.Contains(document, `id="failure"`) || !strings.Contains(console, "TypeError") {
		t.Errorf("the console says %q, the page:\n%s", console, elements(t, document, "body")[0].Data)
	}
}

func TestAPageOfOneSeedAndStrategyIsDrawn(t *testing.T) {
	b := result(t)
	b.Seeds, b.Tables = 1, b.Tables[:1]
	for i := range b.Tables[0].Rows {
		b.Tables[0].Rows[i].Cells = map[string]score.Cell{} // nothing was measured
	}
	b.Tables[0].Rows[0].Timeline.Spill = make([]*float64, 20) // nothing was sent
	document, console := open(t, page(t, b))
	if console != "" || len(elements(t, document, "figure")) != 6 {
		t.Errorf("%d charts, console:\n%s", len(elements(t, document, "figure")), console)
	}
}

func TestAPageOfDrawnScenariosHasTheirTables(t *testing.T) {
	weir, err := strategy.Named("weir")
	if err != nil {
		t.Fatal(err)
	}
	oracle, err := strategy.Named(strategy.OracleName)
	if err != nil {
		t.Fatal(err)
	}
	all := scenarios(t)
	out, err := simulate.Run(t.Context(), simulate.Options{Scenarios: all, Strategies: []strategy.Strategy{weir, oracle}})
	if err != nil {
		t.Fatal(err)
	}
	draw := score.Draw{Seed: 7, Against: "weir", Kind: func(i int) int { return i % 2 }, Kinds: []score.Label{{Name: "some"}, {Name: "others"}}}
	for _, sc := range all {
		draw.Names = append(draw.Names, sc.Name)
	}
	b := score.CompareDrawn(out.Results, draw, score.Options{Strategies: []score.Label{
		{Name: "weir", Title: "weir"}, {Name: strategy.OracleName, Title: "limit", Limit: true},
	}})
	document, console := open(t, page(t, &b))
	if console != "" || !strings.Contains(document, "2 scenarios drawn at random with seed 7") || strings.Count(document, "weir against limit") != 3 {
		t.Errorf("console:\n%s\npage:\n%s", console, document)
	}
}
