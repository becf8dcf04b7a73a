package plots

import (
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/weir-lb/weir/internal/sim/score"
)

// The measures of the board that are drawn.
const (
	dollarsKey = "dollarsPerHour"
	successKey = "success"
	goodKey    = "good"
)

// rowHeight is how high a strategy's row is in the picture of costs, in points.
const rowHeight = 24

// entries are a measure of all rows that have it.
func (s *scores) entries(key string, unit score.Unit) []entry {
	var entries []entry
	for i := range s.rows {
		if cell, ok := s.cell(&s.rows[i], key); ok {
			entries = append(entries, entry{look: s.rows[i].look, value: cell.Mean, words: quantity(unit, cell.Mean)})
		}
	}
	return entries
}

// cost is what cross-zone bytes cost, and what success comes with it.
func (s *scores) cost() drawing {
	h := head{"Cost of cross-zone bytes, and success", s.subtitle}
	spent := legend{entries: s.entries(dollarsKey, score.Dollars)}
	answered := legend{entries: s.entries(successKey, score.Percent)}
	return drawing{
		name:   costName,
		alt:    sentence("cost while the stress is on: %s. Success: %s", spent.conclusion(), answered.conclusion()),
		width:  fullWidth,
		height: max(leastHeight, headHeight+margin+axisHeight+14+vg.Length(len(s.rows))*rowHeight),
		draw:   func(c draw.Canvas) { s.drawCost(h.draw(c)) },
	}
}

// drawCost draws bars of dollars on the left and marks of success on the right, a row for each strategy.
func (s *scores) drawCost(c draw.Canvas) {
	if len(s.rows) == 0 {
		note(c, "no results")
		return
	}
	for i := range s.rows {
		words := s.rows[i].look.words()
		write(c, words, vg.Point{X: c.Min.X, Y: s.rowAt(c, i)}, fit(words, s.rows[i].look.title, namesWidth-6))
	}
	width := (c.Max.X - c.Min.X - namesWidth) / 2
	s.panel(draw.Crop(c, namesWidth, -width-margin, 0, 0), dollarsKey, "cost while the stress is on ($/h)")
	s.panel(draw.Crop(c, namesWidth+width+margin, 0, 0, 0), successKey, "success")
}

// rowAt is the middle of a row in a canvas: rows divide what is above the axis evenly.
func (s *scores) rowAt(c draw.Canvas, row int) vg.Length {
	height := (c.Max.Y - c.Min.Y - axisHeight) / vg.Length(len(s.rows))
	return c.Max.Y - height*(vg.Length(row)+0.5)
}

// panel draws one measure of all rows with its confidence interval and its number right of the data.
func (s *scores) panel(c draw.Canvas, key, label string) {
	p := axes(label, "")
	p.HideY()
	p.Y.Padding, p.Y.Min, p.Y.Max = 0, 0, 1
	smallest, largest := math.Inf(1), 0.0
	for i := range s.rows {
		if cell, ok := s.cell(&s.rows[i], key); ok {
			smallest = math.Min(smallest, cell.Mean-cell.Half)
			largest = math.Max(largest, cell.Mean+cell.Half)
		}
	}
	unit := score.Dollars
	if key == successKey {
		unit = score.Percent
		fractionsFrom(&p.X, math.Min(smallest, 0.99), 4)
	} else {
		upTo(&p.X, largest, dollars)
	}
	p.Add(lines(true, false), paint(func(data draw.Canvas, p *plot.Plot) {
		for i := range s.rows {
			y := s.rowAt(c, i)
			words := aligned(s.rows[i].look.words(), text.XRight)
			cell, ok := s.cell(&s.rows[i], key)
			if !ok {
				write(c, words, vg.Point{X: c.Max.X, Y: y}, "–")
				continue
			}
			write(c, words, vg.Point{X: c.Max.X, Y: y}, number(unit, cell.Mean))
			s.rows[i].look.bar(data, p, bar{cell: cell, y: y, isMark: key == successKey})
		}
	}))
	// the axis has its height from its texts, the rows have theirs from axisHeight: both end at the same line.
	below := axisHeight - (p.DataCanvas(c).Min.Y - c.Min.Y)
	p.Draw(draw.Crop(c, 0, -valuesWidth, below, 0))
}

// bar is a number in a row.
type bar struct {
	cell   score.Cell
	y      vg.Length
	isMark bool // only the end is drawn, as the axis does not begin at zero; it covers a short interval
}

// bar draws a number in a row, with its confidence interval.
func (l *look) bar(c draw.Canvas, p *plot.Plot, b bar) {
	trX, _ := p.Transforms(&c)
	at := func(v float64) vg.Length { return trX(math.Min(math.Max(v, p.X.Min), p.X.Max)) }
	x := at(b.cell.Mean)
	if !b.isMark {
		c.FillPolygon(l.color, []vg.Point{{X: c.Min.X, Y: b.y - 6}, {X: x, Y: b.y - 6}, {X: x, Y: b.y + 6}, {X: c.Min.X, Y: b.y + 6}})
	}
	if b.cell.Half > 0 && (!b.isMark || at(b.cell.Mean+b.cell.Half)-at(b.cell.Mean-b.cell.Half) > 2*l.glyph().Radius) {
		interval(c, vg.Point{X: at(b.cell.Mean - b.cell.Half), Y: b.y}, vg.Point{X: at(b.cell.Mean + b.cell.Half), Y: b.y})
	}
	if b.isMark {
		c.DrawGlyphNoClip(l.glyph(), vg.Point{X: x, Y: b.y})
	}
}

// interval draws a confidence interval between two points, with a short line across each end, and a white rim so that
// it shows on every colour.
func interval(c draw.Canvas, from, to vg.Point) {
	across := vg.Point{Y: 3}
	if from.X == to.X {
		across = vg.Point{X: 3}
	}
	for _, style := range []draw.LineStyle{{Color: rgb(0xffffff), Width: 2.4}, {Color: ink(), Width: 0.9}} {
		c.StrokeLines(style, []vg.Point{from, to}, []vg.Point{from.Sub(across), from.Add(across)}, []vg.Point{to.Sub(across), to.Add(across)})
	}
}
