package plots

import (
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/weir-lb/weir/internal/sim/score"
)

// tradeoff sets what is paid against what is got for it.
func (s *scores) tradeoff() drawing {
	h := head{"Trade-off: good answers for the cost (better: up and to the left)", s.subtitle}
	l := legend{heading: "good in the stress", entries: s.entries(goodKey, score.Percent), marks: true}
	return drawing{
		name:   tradeoffName,
		alt:    sentence("good answers of all clients while the stress is on: %s. Cost: %s", l.conclusion(), s.spent()),
		width:  fullWidth,
		height: max(fullHeight, headHeight+l.height()+2*margin),
		draw:   func(c draw.Canvas) { s.drawTradeoff(h.draw(c), l) },
	}
}

// spent says what the strategies cost, in words.
func (s *scores) spent() string {
	l := legend{entries: s.entries(dollarsKey, score.Dollars)}
	return l.conclusion()
}

// drawTradeoff draws a mark for each strategy that has both numbers.
func (s *scores) drawTradeoff(c draw.Canvas, l legend) {
	if len(s.rows) == 0 {
		note(c, "no results")
		return
	}
	l.draw(draw.Crop(c, c.Max.X-c.Min.X-legendWidth, 0, 0, 0))
	p := axes("cost while the stress is on ($/h)", "good answers")
	most, worst := 0.0, 1.0
	for i := range s.rows {
		paid, ok := s.cell(&s.rows[i], dollarsKey)
		got, both := s.cell(&s.rows[i], goodKey)
		if ok && both {
			most = math.Max(most, paid.Mean+paid.Half)
			worst = math.Min(worst, got.Mean-got.Half)
		}
	}
	upTo(&p.X, most, dollars)
	fractionsFrom(&p.Y, worst, 5)
	p.Add(lines(true, true), paint(func(c draw.Canvas, p *plot.Plot) {
		for i := range s.rows {
			s.mark(c, p, &s.rows[i])
		}
	}))
	p.Draw(draw.Crop(c, 0, -legendWidth-2*margin, 0, -6))
}

// mark draws a strategy's mark with both confidence intervals.
func (s *scores) mark(c draw.Canvas, p *plot.Plot, row *scoreRow) {
	paid, ok := s.cell(row, dollarsKey)
	got, both := s.cell(row, goodKey)
	if !ok || !both {
		return
	}
	trX, trY := p.Transforms(&c)
	x := func(v float64) vg.Length { return trX(math.Min(math.Max(v, p.X.Min), p.X.Max)) }
	y := func(v float64) vg.Length { return trY(math.Min(math.Max(v, p.Y.Min), p.Y.Max)) }
	at := vg.Point{X: x(paid.Mean), Y: y(got.Mean)}
	hidden := 2 * row.look.glyph().Radius // an interval that the mark covers
	if from, to := x(paid.Mean-paid.Half), x(paid.Mean+paid.Half); to-from > hidden {
		interval(c, vg.Point{X: from, Y: at.Y}, vg.Point{X: to, Y: at.Y})
	}
	if from, to := y(got.Mean-got.Half), y(got.Mean+got.Half); to-from > hidden {
		interval(c, vg.Point{X: at.X, Y: from}, vg.Point{X: at.X, Y: to})
	}
	c.DrawGlyphNoClip(row.look.glyph(), at)
}
