package plots_test

import (
	"bytes"
	"html"
	"image"
	"image/color"
	"image/png"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/font/liberation"
	"gonum.org/v1/plot/vg"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/plots"
	"github.com/weir-lb/weir/internal/sim"
	"github.com/weir-lb/weir/internal/sim/scenario"
)

// colorsOf counts the pixels of each colour.
func colorsOf(t *testing.T, file []byte) (image.Rectangle, map[color.RGBA]int) {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[color.RGBA]int{}
	flat, ok := img.(*image.RGBA)
	if !ok {
		t.Fatalf("the picture is a %T, want one without holes", img)
	}
	for p := range slices.Chunk(flat.Pix, 4) {
		seen[color.RGBA{R: p[0], G: p[1], B: p[2], A: p[3]}]++
	}
	return flat.Rect, seen
}

func TestPicturesComeInTheOrderOfNamesSharpAndWithEveryStrategiesColour(t *testing.T) {
	pictures, err := plots.PNG(report(habits(), brownout()), "brownout")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range pictures {
		names = append(names, p.Name)
		size, seen := colorsOf(t, p.PNG)
		if size.Dx() != 1240 || size.Dy() < 320 || size.Dy() > 1600 {
			t.Errorf("%s is %v, want 1240 wide and of a height that fits a page", p.Name, size)
		}
		for _, hex := range []uint32{0x0072b2, 0xe69f00, 0x56b4e9, 0x009e73, 0xd55e00, 0xcc79a7, 0x000000, 0x8c8c8c} {
			c := color.RGBA{R: uint8(hex >> 16), G: uint8(hex >> 8), B: uint8(hex), A: 0xff}
			if seen[c] == 0 {
				t.Errorf("%s has nothing in %06x", p.Name, hex)
			}
		}
		if !strings.Contains(p.Alt, "weir") {
			t.Errorf("%s says %q, want what it comes to for weir", p.Name, p.Alt)
		}
	}
	if diff := cmp.Diff(plots.Names(), names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestTheSameReportGivesTheSameBytes(t *testing.T) {
	var pages [2]bytes.Buffer
	var files [2][]plots.Picture
	for i := range pages {
		r := report(habits()[4:], brownout())
		if err := plots.Page(&pages[i], r); err != nil {
			t.Fatal(err)
		}
		var err error
		if files[i], err = plots.PNG(r, ""); err != nil { // what else there is, the page has too
			t.Fatal(err)
		}
	}
	if !bytes.Equal(pages[0].Bytes(), pages[1].Bytes()) {
		t.Error("the pages differ")
	}
	for i, p := range files[0] {
		if other := files[1][i]; p.Name != other.Name || p.Alt != other.Alt || !bytes.Equal(p.PNG, other.PNG) {
			t.Errorf("the pictures of %s differ", p.Name)
		}
	}
}

func TestAnUnknownScenarioIsAnError(t *testing.T) {
	_, err := plots.PNG(report(habits(), brownout()), "brown")
	if want := `scenario "brown": not in the report`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestTheEmptyNameStandsForAllScenarios(t *testing.T) {
	pictures, err := plots.PNG(report(habits(), brownout()), "")
	if err != nil {
		t.Fatal(err)
	}
	if len(pictures) != 2 || pictures[0].Name != "cost" || pictures[1].Name != "tradeoff" {
		t.Errorf("got %d pictures", len(pictures))
	}
}

func TestAStressWithoutRequestsHasNoNumbers(t *testing.T) {
	r := report(habits()[6:], brownout())
	for _, result := range r.Results {
		result.Affected = sim.Figures{InZone: 1, Success: 1, Good: 1} // as the simulator has it without requests
		result.Window = result.Affected
	}
	pictures, err := plots.PNG(r, "brownout")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pictures[:3] {
		if !strings.HasSuffix(p.Alt, ": no data.") {
			t.Errorf("%s tells of numbers: %s", p.Name, p.Alt)
		}
	}
	if page := write(t, r); strings.Contains(page, "NaN") {
		t.Error("the page shows what is not a number")
	}
}

func TestASeedWithoutRequestsIsLeftOutOfMeans(t *testing.T) {
	r := report(habits()[7:], brownout())
	for i, result := range r.Results {
		result.Affected = sim.Figures{InZone: 1, Success: 1, Good: 1}
		if i == 0 {
			result.Affected = sim.Figures{Requests: 10, InZone: 0.25, Good: 0.5}
		}
	}
	pictures, err := plots.PNG(r, "brownout")
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Results) < 2 || !strings.Contains(pictures[0].Alt, "75.00 %") || !strings.Contains(pictures[1].Alt, "50.00 %") {
		t.Errorf("of %d results: %s %s", len(r.Results), pictures[0].Alt, pictures[1].Alt)
	}
}

// oddities are reports at the edges of what there can be.
func oddities() map[string]plots.Report {
	many := brownout()
	many.Title = strings.Repeat("Everything at once, and then some more of it; ", 6)
	many.Affected = []topology.Zone{"a", "b"}
	for i := range 12 {
		many.Steps = append(many.Steps, scenario.Step{
			At: 30*time.Second + time.Duration(i)*4*time.Second, Verb: scenario.Rollout, Where: scenario.Where{Zone: "a"}, Count: 2,
		})
	}
	crowded := report(crowd(12), many)

	calm := brownout()
	calm.Stress, calm.Steps, calm.Affected = scenario.Window{}, nil, nil

	gaps := report(habits()[6:], brownout())
	for _, r := range gaps.Results {
		for i := range r.Line {
			if i%3 != 1 { // single seconds between gaps, too
				r.Line[i] = sim.Point{At: r.Line[i].At}
			}
		}
	}
	lineless := report(habits()[6:], brownout())
	for _, r := range lineless.Results {
		r.Line, r.Endpoints = nil, nil
	}
	boardless := report(habits()[6:], brownout())
	boardless.Board = nil
	unknown := report(habits(), brownout())
	for i := range unknown.Board.Tables[0].Rows {
		for j := range unknown.Board.Tables[0].Rows[i].Cells {
			unknown.Board.Tables[0].Rows[i].Cells[j].Known = 0
		}
	}
	regions := report(habits(), brownout())
	for _, r := range regions.Results {
		for i := range r.Endpoints {
			r.Endpoints[i].Cluster = []string{"", "elsewhere", "somewhere-quite-far-away"}[i%3]
		}
	}
	long := brownout()
	long.Length = 40 * time.Minute
	return map[string]plots.Report{
		"eight":       report(habits(), brownout()),
		"twelve":      crowded,
		"one":         report(habits()[1:2], brownout()),
		"no stress":   report(habits(), calm),
		"gaps":        gaps,
		"no lines":    lineless,
		"no board":    boardless,
		"no numbers":  unknown,
		"no results":  {Scenarios: []*scenario.Scenario{brownout()}, Strategies: gaps.Strategies},
		"no scenario": {Strategies: gaps.Strategies},
		"nothing":     {},
		"regions":     regions,
		"long":        report(habits()[6:], long),
		"bare":        report(habits()[:1], &scenario.Scenario{Name: "bare"}),
	}
}

// words is a text of a picture and where it stands.
type words struct {
	text                     string
	left, right, top, bottom float64
}

var (
	pictureTag = regexp.MustCompile(`(?s)<svg viewBox="0 0 ([0-9.]+) ([0-9.]+)".*?</svg>`)
	textTag    = regexp.MustCompile(`<text x="([-0-9.]+)" y="([-0-9.]+)" font-size="([0-9.]+)"([^>]*)>([^<]*)</text>`)
)

// texts measures the texts of a picture that are not turned.
func texts(fonts *font.Cache, svg string) []words {
	var all []words
	for _, m := range textTag.FindAllStringSubmatch(svg, -1) {
		if strings.Contains(m[4], "rotate") {
			continue
		}
		face := font.Font{Typeface: "Liberation", Variant: "Sans"}
		if strings.Contains(m[4], "bold") {
			face.Weight = xfont.WeightBold
		}
		x, size := float(m[1]), float(m[3])
		measured := fonts.Lookup(face, vg.Length(size))
		width := measured.Width(html.UnescapeString(m[5])).Points()
		all = append(all, words{m[5], x, x + width, float(m[2]) - 0.7*size, float(m[2]) + 0.2*size})
	}
	return all
}

// float reads a number that a picture has.
func float(text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(err)
	}
	return v
}

func TestNoTextIsCutOffOrCoversAnother(t *testing.T) {
	fonts := font.NewCache(liberation.Collection())
	for name, r := range oddities() {
		var page bytes.Buffer
		if err := plots.Page(&page, r); err != nil {
			t.Fatal(err)
		}
		for i, m := range pictureTag.FindAllStringSubmatch(page.String(), -1) {
			all := texts(fonts, m[0])
			if len(all) < 2 {
				t.Errorf("%s, picture %d has only %d texts", name, i, len(all))
			}
			for j, w := range all {
				if w.left < 0 || w.right > float(m[1]) || w.top < 0 || w.bottom > float(m[2]) {
					t.Errorf("%s, picture %d: %+v is not inside of %s × %s", name, i, w, m[1], m[2])
				}
				for _, o := range all[:j] {
					if w.left < o.right && o.left < w.right && w.top < o.bottom && o.top < w.bottom {
						t.Errorf("%s, picture %d: %q covers %q", name, i, w.text, o.text)
					}
				}
			}
		}
	}
}

func TestOddReportsHavePictures(t *testing.T) {
	all := oddities()
	for _, name := range []string{"gaps", "no results"} { // the others are as good as the page's
		r := all[name]
		for _, sc := range r.Scenarios {
			pictures, err := plots.PNG(r, sc.Name)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range pictures {
				if _, seen := colorsOf(t, p.PNG); len(seen) < 3 {
					t.Errorf("%s: %s has %d colours", name, p.Name, len(seen))
				}
			}
		}
	}
}

// ways are the paths of a picture that are drawn with this attribute: the points of each.
func ways(svg, attribute string) [][][2]float64 {
	var all [][][2]float64
	for _, m := range regexp.MustCompile(`<path d="M([^"]*)"([^>]*)>`).FindAllStringSubmatch(svg, -1) {
		if !strings.Contains(m[2], attribute) {
			continue
		}
		var points [][2]float64
		var x, y float64
		for i, part := range strings.Split(strings.TrimRight(m[1], "z"), "l") {
			words := strings.Fields(part)
			if i > 0 {
				x, y = x+float(words[0]), y+float(words[1])
			} else {
				x, y = float(words[0]), float(words[1])
			}
			points = append(points, [2]float64{x, y})
		}
		all = append(all, points)
	}
	return all
}

func TestNoEffectIsDrawnBeforeItsCause(t *testing.T) {
	r := report(habits()[7:], brownout())
	for _, result := range r.Results {
		for i := range result.Line {
			for j := range result.Line[i].Zones {
				z := &result.Line[i].Zones[j]
				z.Crossed = 0
				if result.Line[i].At >= r.Scenarios[0].Stress.From {
					z.Crossed = z.Answered
				}
			}
		}
	}
	svg := pictureTag.FindString(write(t, r))
	fault := ways(svg, `fill="#f3f1ea"`)[0][0][0]
	lines := ways(svg, `stroke="#0072b2" stroke-width="2.6"`) // of the legend, and over time
	line := lines[len(lines)-1]
	rise := slices.IndexFunc(line, func(p [2]float64) bool { return p[1] < line[0][1]-1 })
	if rise < 1 || line[rise-1][0] < fault-0.5 {
		t.Errorf("the line rises at point %d of %v, want it not before %v", rise, line, fault)
	}
}
