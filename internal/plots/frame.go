package plots

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// drawing is a picture that is yet to be drawn.
type drawing struct {
	name, alt     string
	width, height vg.Length
	draw          func(draw.Canvas)
}

// Measures of a picture, in points.
const (
	fullWidth   = 620
	fullHeight  = 300
	leastHeight = 160 // of a picture whose height depends on its rows
	margin      = 8
	headHeight  = 42 // title and subtitle
	legendWidth = 214
	entryHeight = 16
	sampleWidth = 26 // of a legend: long enough for each pattern of dashes to repeat
)

// head is what stands above each picture.
type head struct{ title, subtitle string }

// disclaimer is on each picture, as pictures travel alone.
const disclaimer = "simulation, not a measurement"

// draw writes the head and returns what is left below it.
func (h head) draw(c draw.Canvas) draw.Canvas {
	c.SetColor(rgb(0xffffff))
	c.Fill(c.Path())
	inner := draw.Crop(c, margin, -margin, margin, -margin)
	width := inner.Max.X - inner.Min.X
	big, small := bold(titleSize), muted(plain(smallSize))
	write(inner, big, vg.Point{X: inner.Min.X, Y: inner.Max.Y - 7}, fit(big, h.title, width))
	end := " · " + disclaimer
	line := fit(small, h.subtitle, 0.92*width-small.Width(end)) + end // a page's fonts may be wider than ours
	write(inner, small, vg.Point{X: inner.Min.X, Y: inner.Max.Y - 23}, line)
	return draw.Crop(inner, 0, 0, 0, -headHeight+margin)
}

// entry is a line of a legend.
type entry struct {
	look  look
	value float64 // what the entries are sorted by, falling; not a number: last
	words string  // the value with its unit
}

// legend stands right of the data, so that it covers none of it. Its entries are in the order of the lines from top to
// bottom, with the number that orders them.
type legend struct {
	heading string
	entries []entry
	marks   bool // samples are marks, not lines
}

// height is how high the legend is.
func (l *legend) height() vg.Length { return vg.Length(len(l.entries)+1) * entryHeight }

// sorted are the entries, the largest value first.
func (l *legend) sorted() []entry {
	entries := slices.Clone(l.entries)
	// Compare puts what is not a number below all numbers, so that it comes last.
	slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Compare(b.value, a.value) })
	return entries
}

// draw writes the legend at the top of a canvas.
func (l *legend) draw(c draw.Canvas) {
	y := c.Max.Y - entryHeight/2
	small := muted(plain(smallSize))
	write(c, aligned(small, text.XRight), vg.Point{X: c.Max.X, Y: y}, l.heading)
	for _, e := range l.sorted() {
		y -= entryHeight
		if l.marks {
			c.DrawGlyphNoClip(e.look.glyph(), vg.Point{X: c.Min.X + sampleWidth/2, Y: y})
		} else {
			c.StrokeLine2(e.look.line(), c.Min.X, y, c.Min.X+sampleWidth, y)
		}
		words := e.look.words()
		free := c.Max.X - c.Min.X - sampleWidth - 6 - words.Width(e.words) - 6
		write(c, words, vg.Point{X: c.Min.X + sampleWidth + 6, Y: y}, fit(words, e.look.title, free))
		write(c, aligned(words, text.XRight), vg.Point{X: c.Max.X, Y: y}, e.words)
	}
}

// conclusion says in words what the entries come to.
func (l *legend) conclusion() string {
	var known []entry
	for _, e := range l.sorted() {
		if !math.IsNaN(e.value) {
			known = append(known, e)
		}
	}
	if len(known) == 0 {
		return "no data"
	}
	tell := func(e entry) string { return e.look.title + " (" + e.words + ")" }
	if len(known) == 1 {
		return tell(known[0])
	}
	first, last := known[0], known[len(known)-1]
	if first.words == last.words {
		return first.words + " with each"
	}
	// What looks alike is not told apart by digits that nobody sees.
	extreme := func(e entry) string {
		others := -1
		for _, k := range known {
			if k.words == e.words {
				others++
			}
		}
		if others == 0 {
			return tell(e)
		}
		return fmt.Sprintf("%s and %d more (%s)", e.look.title, others, e.words)
	}
	words := "most with " + extreme(first) + ", least with " + extreme(last)
	i := slices.IndexFunc(known, func(e entry) bool { return e.look.name == favourite })
	if i > 0 && i < len(known)-1 && known[i].words != first.words && known[i].words != last.words {
		words = tell(known[i]) + "; " + words
	}
	return words
}

// axes is a plot of this package's style without anything in it.
func axes(x, y string) *plot.Plot {
	p := plot.New()
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Padding = 0
		axis.LineStyle = draw.LineStyle{Color: faint(), Width: 0.8}
		axis.Tick.LineStyle = axis.LineStyle
		axis.Tick.Length = 3
		axis.Label.Padding = 3
		axis.Label.TextStyle = muted(plain(textSize))
		axis.Label.TextStyle.XAlign, axis.Label.TextStyle.YAlign = text.XCenter, text.YBottom
		axis.Tick.Label = plain(smallSize)
	}
	p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign = text.XCenter, text.YTop
	p.Y.Tick.Label.XAlign, p.Y.Tick.Label.YAlign = text.XRight, text.YCenter
	p.X.Label.Text, p.Y.Label.Text = x, y
	return p
}

// paint is a plotter that is a function.
type paint func(c draw.Canvas, p *plot.Plot)

// Plot is as plot.Plotter has it.
func (f paint) Plot(c draw.Canvas, p *plot.Plot) { f(c, p) }

// lines are the thin lines across a plot, at the ticks of one axis.
func lines(ofX, ofY bool) plot.Plotter { //nolint:revive // which axes have lines is what it is about.
	g := plotter.NewGrid()
	g.Vertical = draw.LineStyle{}
	g.Horizontal = draw.LineStyle{}
	if ofX {
		g.Vertical = draw.LineStyle{Color: rule(), Width: 0.6}
	}
	if ofY {
		g.Horizontal = draw.LineStyle{Color: rule(), Width: 0.6}
	}
	return g
}

// note writes a sentence in the middle of a canvas: what stands where data would.
func note(c draw.Canvas, words string) {
	s := muted(plain(textSize))
	write(c, aligned(s, text.XCenter), c.Center(), fit(s, words, c.Max.X-c.Min.X))
}

// sentence makes one of its parts, beginning with a capital letter.
func sentence(format string, parts ...any) string {
	words := fmt.Sprintf(format, parts...)
	return strings.ToUpper(words[:1]) + words[1:] + "."
}
