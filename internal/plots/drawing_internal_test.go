package plots

import (
	"image/color"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/weir-lb/weir/internal/sim/scenario"
	"github.com/weir-lb/weir/internal/sim/score"
)

func TestSVGSaysWhatIsDrawn(t *testing.T) {
	d := drawing{name: "x", alt: `a "b" & c`, width: 100, height: 50, draw: func(c draw.Canvas) {
		c.StrokeLines(draw.LineStyle{Color: color.Black, Width: 1}, []vg.Point{{X: 0, Y: 0}, {X: 10.04, Y: 20}, {X: 20.08, Y: 0.26}})
		c.StrokeLine2(draw.LineStyle{Color: rgb(0x0072b2), Width: 2.6, Dashes: []vg.Length{6, 1.5}, DashOffs: 2}, 1, 2, 3, 4)
		c.FillPolygon(rgb(0xe69f00), []vg.Point{{X: 1, Y: 1}, {X: 2, Y: 1}, {X: 2, Y: 2}})
		var circle vg.Path
		circle.Move(vg.Point{X: 60, Y: 25})
		circle.Arc(vg.Point{X: 50, Y: 25}, 10, 0, 2*math.Pi)
		circle.Close()
		c.SetColor(rgb(0xff0000))
		c.Fill(circle)
		c.Push()
		c.Translate(vg.Point{X: 10, Y: 10})
		c.Rotate(math.Pi / 2)
		c.Scale(2, 2)
		c.SetColor(nil)
		var line vg.Path
		line.Move(vg.Point{})
		line.Line(vg.Point{X: 5})
		c.Fill(line)
		c.Pop()
		write(c, bold(10), vg.Point{X: 5, Y: 40}, "a < b")
		turned := plain(10)
		turned.Rotation = math.Pi / 2
		c.FillText(turned, vg.Point{X: 5, Y: 5}, "up")
	}}
	want := `<svg viewBox="0 0 100 50" role="img" aria-label="a &#34;b&#34; &amp; c">
<path d="M0 50l10 -20l10.1 19.7" fill="none" stroke="#000000"/>
<path d="M1 48l2 -2" fill="none" stroke="#0072b2" stroke-width="2.6" stroke-dasharray="6 1.5" stroke-dashoffset="2"/>
<path d="M1 49l1 0l0 -1z" fill="#e69f00"/>
<path d="M60 25l0 0a10 10 0 0 0 -20 0a10 10 0 0 0 20 0z" fill="#ff0000"/>
<path d="M10 40l0 -10" fill="#000000"/>
<text x="5" y="13.2" font-size="10" font-weight="bold">a &lt; b</text>
<text x="9.6" y="45" font-size="10" transform="rotate(-90 9.6 45)">up</text>
</svg>`
	if diff := cmp.Diff(want, d.svg()); diff != "" {
		t.Errorf("svg (-want +got):\n%s", diff)
	}
}

// labels are the words of an axis.
func labels(axis *plot.Axis) string {
	var words []string
	for _, t := range axis.Tick.Marker.Ticks(axis.Min, axis.Max) {
		words = append(words, t.Label)
	}
	return strings.Join(words, " | ")
}

func TestAxesHaveTicksThatReadWell(t *testing.T) {
	for _, c := range []struct {
		want string
		set  func(*plot.Axis)
	}{
		{"0 % | 20 % | 40 % | 60 % | 80 %", func(a *plot.Axis) { upTo(a, 0.667, percent) }},
		{"0 % | 1 % | 2 % | 3 % | 4 % | 5 %", func(a *plot.Axis) { upTo(a, 0.05, percent) }},
		{"$0 | $0.2 | $0.4 | $0.6 | $0.8 | $1", func(a *plot.Axis) { upTo(a, 0, dollars) }},
		{"$0 | $500 | $1000 | $1500", func(a *plot.Axis) { upTo(a, 1234, dollars) }},
		{"0 | 0.5 | 1 | 1.5", func(a *plot.Axis) { upTo(a, 1.2, short) }},
		{"90 % | 92 % | 94 % | 96 % | 98 % | 100 %", func(a *plot.Axis) { fractionsFrom(a, 0.93, 5) }},
		{"60 % | 70 % | 80 % | 90 % | 100 %", func(a *plot.Axis) { fractionsFrom(a, 0.71, 4) }},
		{"99 % | 99.5 % | 100 %", func(a *plot.Axis) { fractionsFrom(a, 0.999, 4) }},
		{"0 % | 50 % | 100 %", func(a *plot.Axis) { fractionsFrom(a, 0, 2) }},
		{"50 ms | 100 ms | 200 ms | 500 ms | 1 s", func(a *plot.Axis) { overLatency(a, 0.06, 0.97) }},
		{"20 ms | 50 ms", func(a *plot.Axis) { overLatency(a, 0.04, 0.04) }},
		{"5 ms | 10 ms | 20 ms | 50 ms | 100 ms | 200 ms | 500 ms | 1 s | 2 s", func(a *plot.Axis) { overLatency(a, math.Inf(1), math.Inf(-1)) }},
		{"0 | 10 | 20 | 30 | 40 | 50 | 60 | 70 | 80 | 90 | 100", func(a *plot.Axis) { overTime(a, 100*time.Second) }},
		{"0 | 2 | 4 | 6 | 8 | 10 | 12 | 14", func(a *plot.Axis) { overTime(a, 15*time.Minute) }},
		{"0 | 3 | 6 | 9 | 12 | 15 | 18 | 21 | 24", func(a *plot.Axis) { overTime(a, 24*time.Hour) }},
	} {
		var axis plot.Axis
		c.set(&axis)
		if got := labels(&axis); got != c.want {
			t.Errorf("from %v to %v: ticks %s, want %s", axis.Min, axis.Max, got, c.want)
		}
	}
}

func TestLongLatencyAxesNameOnlyThePowers(t *testing.T) {
	ticks := logTicks(0.001, 10)
	for _, tick := range ticks {
		power := math.Log10(tick.Value)
		if isPower := math.Abs(power-math.Round(power)) < 1e-9; isPower == (tick.Label == "") {
			t.Errorf("the tick at %v is called %q", tick.Value, tick.Label)
		}
	}
	if len(ticks) != 13 {
		t.Errorf("%d ticks from 1 ms to 10 s, want 13", len(ticks))
	}
}

func TestNumbersAreWrittenInTheirUnit(t *testing.T) {
	for want, got := range map[string]string{
		"33.12 %":  quantity(score.Percent, 0.3312),
		"99.84 %":  quantity(score.Percent, 0.99841),
		">99.99 %": quantity(score.Percent, 0.99996),
		"<0.01 %":  quantity(score.Percent, 0.00001),
		"<$0.01/h": quantity(score.Dollars, 0.001),
		"1234":     quantity("", 1234),
		"0.125":    quantity("", 0.125),
		"100.00 %": quantity(score.Percent, 1),
		"110 ms":   quantity(score.Millis, 110.4),
		"8.3 ms":   quantity(score.Millis, 8.31),
		"1.4 s":    quantity(score.Seconds, 1.44),
		"$0.03/h":  quantity(score.Dollars, 0.0271),
		"$12.35/h": quantity(score.Dollars, 12.345678),
		"1.16×":    quantity(score.Ratio, 1.157),
		"2.6 pt":   quantity(score.Points, 0.026),
		"850 µs":   latency(850 * time.Microsecond),
		"1.23 ms":  latency(1234 * time.Microsecond),
		"1.5 s":    latency(1500 * time.Millisecond),
		"0 µs":     latency(0),
		"30 s":     seconds(30 * time.Second),
		"0.5 s":    seconds(500 * time.Millisecond),
		"90 min":   seconds(90 * time.Minute),
		"1 seed":   count(1, "seed"),
		"3 seeds":  count(3, "seed"),
		"slow ×10, zone a, endpoints 1 to 3": describe(&scenario.Step{
			Verb: scenario.Slow, Factor: 10, Where: scenario.Where{Zone: "a", First: 1, Last: 3},
		}),
		"fail 50 %, cluster west, 50 % of the endpoints": describe(&scenario.Step{
			Verb: scenario.Fail, Ratio: 0.5, Where: scenario.Where{Cluster: "west", Part: 0.5},
		}),
		"rate ×3, zone a, over 10 s": describe(&scenario.Step{
			Verb: scenario.Rate, Factor: 3, Where: scenario.Where{Zone: "a"}, Over: 10 * time.Second,
		}),
		"delay 200 ms, zone b, endpoint 2": describe(&scenario.Step{
			Verb: scenario.Delay, Time: 200 * time.Millisecond, Where: scenario.Where{Zone: "b", First: 2, Last: 2},
		}),
		"scale 3, zone a": describe(&scenario.Step{Verb: scenario.Scale, Count: 3, Where: scenario.Where{Zone: "a"}}),
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestWordsAreCutToFit(t *testing.T) {
	style := plain(10)
	whole := "Static, PreferSameZone"
	if got := fit(style, whole, 500); got != whole {
		t.Errorf("got %q, want all of it", got)
	}
	got := fit(style, whole, 60)
	if !strings.HasSuffix(got, "…") || !strings.HasPrefix(whole, strings.TrimSuffix(got, "…")) || style.Width(got) > 60 {
		t.Errorf("got %q of %v points", got, style.Width(got))
	}
}

func TestWordsAreCutAsIfLetterByLetter(t *testing.T) {
	style := plain(10)
	letterByLetter := func(words string, width vg.Length) string {
		letters := []rune(words)
		if style.Width(words) <= width {
			return words
		}
		for len(letters) > 0 && style.Width(string(letters)+"…") > width {
			letters = letters[:len(letters)-1]
		}
		return string(letters) + "…"
	}
	for _, words := range []string{"", "i", "Wii", "kube-proxy, PreferSameZone", "größer – ünïcode", "Willi fill"} {
		for width := vg.Length(-5); width < 150; width += 0.5 {
			if got, want := fit(style, words, width), letterByLetter(words, width); got != want {
				t.Errorf("%q in %v points: %q, want %q", words, width, got, want)
			}
		}
	}
}

// Cut from their end, a letter at a time, words of this length take hours.
func TestLongWordsAreCutAtOnce(t *testing.T) {
	style := plain(10)
	const long = 1 << 20
	if got, want := fit(style, strings.Repeat("word ", long), 60), fit(style, strings.Repeat("word ", 20), 60); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestLegendTellsTheFavouriteTheMostAndTheLeast(t *testing.T) {
	e := func(name string, value float64, words string) entry {
		return entry{look: look{name: name, title: name}, value: value, words: words}
	}
	for want, entries := range map[string][]entry{
		"no data":  nil,
		"weir (1)": {e("weir", 1, "1"), e("hazl", math.NaN(), "–")},
		"most with hazl (2), least with weir (1)": {e("weir", 1, "1"), e("hazl", 2, "2")},
		"2 with each": {e("hazl", 2.01, "2"), e("weir", 2.02, "2")},
		"most with random (3), least with hazl and 1 more (1)": {e("weir", 1.01, "1"), e("hazl", 1, "1"), e("random", 3, "3")},
		"weir (2); most with random (3), least with hazl (1)":  {e("hazl", 1, "1"), e("weir", 2, "2"), e("random", 3, "3")},
	} {
		l := legend{entries: entries}
		if got := l.conclusion(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
