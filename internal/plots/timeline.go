package plots

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/weir-lb/weir/internal/sim"
	"github.com/weir-lb/weir/internal/sim/score"
)

// timeline is a picture of lines over the time of a run, one for each strategy.
type timeline struct {
	story  *story
	head   head
	legend legend
	yLabel string
	at     func([]sim.Point) float64 // of some seconds in a row; not a number: a gap
	// scale sets the axis for the values that are drawn; infinite when there are none.
	scale func(axis *plot.Axis, smallest, largest float64)
}

// mostPoints is how many points a line has at most: about one for each point of the picture's width. Longer runs are
// drawn by several seconds together.
const mostPoints = 400

// stretches divides a line into parts of equal length, one for each point that is drawn.
func stretches(line []sim.Point) iter.Seq[[]sim.Point] {
	return slices.Chunk(line, max(1, (len(line)+mostPoints-1)/mostPoints))
}

// spill is how much leaves the zone over time.
func (s *story) spill() drawing {
	t := timeline{
		story:  s,
		head:   head{"Spill: requests that leave their zone, " + s.who(), title(s.scenario)},
		legend: legend{heading: s.span("spill")},
		yLabel: "share of requests",
		at:     s.spillAt,
		scale: func(axis *plot.Axis, _, largest float64) {
			upTo(axis, math.Max(math.Min(largest, 1), 0.05), percent) // below 5 % the noise would look like a storm
		},
	}
	t.entries(score.Percent, func(r *sim.Result) float64 { return known(&r.Affected, 1-r.Affected.InZone) })
	return t.drawing(spillName, "%s this share of the requests of %s leaves the zone: %s")
}

// good is how many requests are answered well in time over time.
func (s *story) good() drawing {
	t := timeline{
		story:  s,
		head:   head{"Good answers: in time and no error, " + s.who(), title(s.scenario)},
		legend: legend{heading: s.span("good")},
		yLabel: "share of requests",
		at:     s.goodAt,
		scale:  func(axis *plot.Axis, smallest, _ float64) { fractionsFrom(axis, math.Min(smallest, 0.95), 5) },
	}
	t.entries(score.Percent, func(r *sim.Result) float64 { return known(&r.Affected, r.Affected.Good) })
	return t.drawing(goodName, "%s this share of the requests of %s is answered well and in time: %s")
}

// latency is the 99th percentile over time.
func (s *story) latency() drawing {
	who := "all clients"
	if s.hasOneZone() {
		who = s.who()
	}
	t := timeline{
		story:  s,
		head:   head{"Latency: p99 of " + s.resolution() + ", " + who + s.timeout(), title(s.scenario)},
		legend: legend{heading: s.span("p99")},
		yLabel: "p99 (logarithmic)",
		at:     s.p99At,
		scale:  overLatency,
	}
	t.entries(score.Seconds, s.p99)
	d := t.drawing(latencyName, "%s the slowest 1 %% of the requests of %s take at least: %s")
	return d
}

// timeout says what a line runs along that does not get worse.
func (s *story) timeout() string {
	if s.scenario.Request.Timeout == 0 {
		return ""
	}
	return "; timeout " + latency(s.scenario.Request.Timeout)
}

// resolution names what a point of the latency is of.
func (s *story) resolution() string {
	for i := range s.runs {
		for points := range stretches(s.runs[i].line()) {
			if len(points) > 1 {
				return fmt.Sprintf("the worst second of each %d", len(points))
			}
			break
		}
	}
	return "each second"
}

// span names what the numbers of a legend are, and of when.
func (s *story) span(what string) string {
	if w := s.scenario.Stress; w.To > w.From {
		return what + " in the stress"
	}
	return what
}

// entries fills the legend with means over the seeds, and a dash where none has a number. Seconds are written as latencies.
func (t *timeline) entries(u score.Unit, of func(*sim.Result) float64) {
	for i := range t.story.runs {
		r := &t.story.runs[i]
		e := entry{look: r.look, value: r.mean(of)}
		switch {
		case math.IsNaN(e.value):
			e.words = "–"
		case u == score.Seconds:
			e.words = latency(asDuration(e.value))
		default:
			e.words = quantity(u, e.value)
		}
		t.legend.entries = append(t.legend.entries, e)
	}
}

// drawing is the timeline as a picture. The words are of when, who and what it comes to.
func (t timeline) drawing(name, words string) drawing {
	who := t.story.who()
	if name == latencyName && !t.story.hasOneZone() {
		who = "all clients"
	}
	return drawing{
		name:   name,
		alt:    sentence(words, t.story.when(), who, t.legend.conclusion()),
		width:  fullWidth,
		height: max(fullHeight, headHeight+t.legend.height()+2*margin),
		draw:   t.draw,
	}
}

// draw draws the picture.
func (t timeline) draw(c draw.Canvas) {
	body := t.head.draw(c)
	if len(t.story.runs) == 0 {
		note(body, "no results")
		return
	}
	t.legend.draw(draw.Crop(body, body.Max.X-body.Min.X-legendWidth, 0, 0, 0))
	p := axes("", t.yLabel)
	overTime(&p.X, t.story.length())
	smallest, largest := math.Inf(1), math.Inf(-1)
	for i := range t.story.runs {
		for points := range stretches(t.story.runs[i].line()) {
			if v := t.at(points); !math.IsNaN(v) {
				smallest, largest = math.Min(smallest, v), math.Max(largest, v)
			}
		}
	}
	t.scale(&p.Y, smallest, largest)
	p.Add(paint(t.stress), lines(false, true), paint(t.faults))
	for _, isOurs := range []bool{false, true} { // ours last, over all others
		for i := range t.story.runs {
			if r := &t.story.runs[i]; (r.look.name == favourite) == isOurs {
				p.Add(t.path(r))
			}
		}
	}
	if math.IsInf(smallest, 0) {
		p.Add(paint(func(c draw.Canvas, _ *plot.Plot) { note(c, "no data over time") }))
	}
	p.Draw(draw.Crop(body, 0, -legendWidth-2*margin, 0, -14)) // the faults' names stand in the 14
}

// path is the line of a strategy.
func (t *timeline) path(r *run) plot.Plotter {
	return paint(func(c draw.Canvas, p *plot.Plot) {
		trX, trY := p.Transforms(&c)
		var pieces [][]vg.Point
		var piece []vg.Point
		for points := range stretches(r.line()) {
			v := t.at(points)
			if math.IsNaN(v) {
				if len(piece) > 0 {
					pieces, piece = append(pieces, piece), nil
				}
				continue
			}
			// At its end, when it is known: at its beginning an effect would stand before its cause.
			end := min(points[len(points)-1].At+time.Second, t.story.length())
			piece = append(piece, vg.Point{X: trX(end.Seconds()), Y: trY(v)})
		}
		if len(piece) > 0 {
			pieces = append(pieces, piece)
		}
		for _, piece := range pieces {
			if len(piece) == 1 { // a second between two gaps would have no length
				piece = append(piece, piece[0].Add(vg.Point{X: 1}))
			}
			c.StrokeLines(r.look.line(), piece)
		}
	})
}

// stress shades the time that counts.
func (t *timeline) stress(c draw.Canvas, p *plot.Plot) {
	w := t.story.scenario.Stress
	if w.To <= w.From {
		return
	}
	trX, _ := p.Transforms(&c)
	left := trX(w.From.Seconds())
	right := trX(math.Min(w.To.Seconds(), p.X.Max))
	c.FillPolygon(shade(), []vg.Point{{X: left, Y: c.Min.Y}, {X: right, Y: c.Min.Y}, {X: right, Y: c.Max.Y}, {X: left, Y: c.Max.Y}})
}

// faults marks the steps of the scenario, with names as far as there is room for them.
func (t *timeline) faults(c draw.Canvas, p *plot.Plot) {
	trX, _ := p.Transforms(&c)
	style := muted(plain(9.5))
	thin := draw.LineStyle{Color: rgb(0x9a9a9a), Width: 0.7, Dashes: []vg.Length{1, 2}}
	free := c.Min.X - margin // up to where names stand
	for _, m := range moments(t.story.scenario) {
		if m.at.Seconds() > p.X.Max {
			continue
		}
		x := trX(m.at.Seconds())
		c.StrokeLine2(thin, x, c.Min.Y, x, c.Max.Y+3)
		words := fit(style, strings.Join(m.what, ", "), 110)
		start := min(max(x-style.Width(words)/2, c.Min.X), c.Max.X+margin-style.Width(words))
		if start < free {
			continue
		}
		write(c, aligned(style, text.XLeft), vg.Point{X: start, Y: c.Max.Y + 9}, words)
		free = start + style.Width(words) + 6
	}
}
