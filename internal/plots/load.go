package plots

import (
	"cmp"
	"math"
	"slices"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/weir-lb/weir/internal/sim"
	"github.com/weir-lb/weir/internal/sim/score"
)

// Measures of the picture of loads, in points.
const (
	bandHeight  = 11  // of a zone of a strategy
	bandGap     = 7   // between strategies
	namesWidth  = 158 // left, of strategies: room for kube-proxy, PreferSameZone
	zonesWidth  = 70  // beside them, of zones
	valuesWidth = 50  // right, of numbers
	axisHeight  = 36  // below
)

// mostLoad is where the axis of loads ends: what is overloaded threefold is not told from worse by length, but by its
// number.
const mostLoad = 3

// band is the endpoints of a zone.
type band struct {
	cluster, zone string
	means         []float64 // of each endpoint that had anything to do; of none: a zero
	peak          float64   // the largest of any
}

// bands groups a run's endpoints by cluster and zone, sorted; the clients' own cluster has no name and comes first.
// Endpoints without a request in the stress, as those of a rollout that was over before, have no mark.
func bands(result *sim.Result) []band {
	endpoints := slices.Clone(result.Endpoints)
	slices.SortStableFunc(endpoints, func(a, b sim.Endpoint) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Zone, b.Zone))
	})
	var all []band
	for i := range endpoints {
		e := &endpoints[i]
		zone := string(e.Zone)
		if last := len(all) - 1; last < 0 || all[last].zone != zone || all[last].cluster != e.Cluster {
			all = append(all, band{cluster: e.Cluster, zone: zone})
		}
		b := &all[len(all)-1]
		b.peak = math.Max(b.peak, e.Peak)
		if e.Peak > 0 {
			b.means = append(b.means, e.Load)
		}
	}
	for i := range all {
		if len(all[i].means) == 0 {
			all[i].means = []float64{0}
		}
	}
	return all
}

// label names the zone, and its cluster as far as there is room.
func (b *band) label(s text.Style) string {
	const width = zonesWidth - 6
	zone := fit(s, b.zone, width)
	if b.cluster == "" {
		return zone
	}
	cluster := fit(s, b.cluster, width-s.Width("/"+zone))
	return cluster + "/" + zone
}

// loadRow is a strategy's bands and how far down they begin.
type loadRow struct {
	look  look
	bands []band
	from  vg.Length
	peak  float64 // the mean over seeds; the bands are of one
}

// load is how much each endpoint has to do.
func (s *story) load() drawing {
	var rows []loadRow
	var down vg.Length
	l := legend{}
	for i := range s.runs {
		r := &s.runs[i]
		row := loadRow{look: r.look, bands: bands(r.results[0]), from: down}
		row.peak = r.mean(func(result *sim.Result) float64 { return result.PeakLoad })
		if len(row.bands) == 0 {
			continue
		}
		rows = append(rows, row)
		down += vg.Length(len(row.bands))*bandHeight + bandGap
		l.entries = append(l.entries, entry{look: r.look, value: row.peak, words: quantity(score.Ratio, row.peak)})
	}
	h := head{"Load by zone: mark = mean of an endpoint, bar = busiest second of any", title(s.scenario)}
	return drawing{
		name:   loadName,
		alt:    sentence("%s the busiest second of any endpoint brings this many times what it can do: %s", s.when(), l.conclusion()),
		width:  fullWidth,
		height: max(leastHeight, headHeight+margin+axisHeight+20+down),
		draw:   func(c draw.Canvas) { drawLoads(h.draw(c), rows, down) },
	}
}

// drawLoads draws the rows into a canvas; down is how high they are together.
func drawLoads(c draw.Canvas, rows []loadRow, down vg.Length) {
	if len(rows) == 0 {
		note(c, "no results")
		return
	}
	p := axes("load while the stress is on", "")
	p.HideY()
	p.Y.Padding = 0
	p.Y.Min, p.Y.Max = -down.Points(), 0
	largest := 1.2
	for i := range rows {
		for _, b := range rows[i].bands {
			largest = math.Max(largest, b.peak)
		}
	}
	upTo(&p.X, math.Min(largest, mostLoad), short)
	p.Add(lines(true, false))
	p.Add(paint(func(c draw.Canvas, p *plot.Plot) {
		for i := range rows {
			rows[i].draw(c, p)
		}
		trX, _ := p.Transforms(&c)
		x := trX(1)
		c.StrokeLine2(draw.LineStyle{Color: ink(), Width: 1.1}, x, c.Min.Y, x, c.Max.Y+3)
		small := muted(plain(9.5))
		write(c, aligned(small, text.XCenter), vg.Point{X: x, Y: c.Max.Y + 9}, "1 = all it can do")
		write(c, aligned(small, text.XRight), vg.Point{X: c.Max.X + valuesWidth, Y: c.Max.Y + 9}, "peak")
	}))
	p.Draw(draw.Crop(c, namesWidth+zonesWidth, -valuesWidth, 0, -14))
}

// draw draws the bands of a strategy with its names left and its peak right of the data.
func (r *loadRow) draw(c draw.Canvas, p *plot.Plot) {
	trX, trY := p.Transforms(&c)
	words := r.look.words()
	small := muted(plain(9.5))
	middle := trY(-r.from.Points()) - vg.Length(len(r.bands))*bandHeight/2 - bandGap/2
	left := c.Min.X - namesWidth - zonesWidth
	write(c, words, vg.Point{X: left, Y: middle}, fit(words, r.look.title, namesWidth-6))
	write(c, aligned(words, text.XRight), vg.Point{X: c.Max.X + valuesWidth, Y: middle}, number(score.Ratio, r.peak)+"×")
	end := func(load float64) vg.Length { return trX(math.Min(load, p.X.Max)) }
	for i := range r.bands {
		b := &r.bands[i]
		y := trY(-r.from.Points()) - bandGap/2 - (vg.Length(i)+0.5)*bandHeight
		write(c, aligned(small, text.XRight), vg.Point{X: c.Min.X - 5, Y: y}, b.label(small))
		x := end(b.peak)
		c.FillPolygon(r.look.tint(), []vg.Point{{X: c.Min.X, Y: y - 3.5}, {X: x, Y: y - 3.5}, {X: x, Y: y + 3.5}, {X: c.Min.X, Y: y + 3.5}})
		for _, mean := range b.means {
			if mean <= p.X.Max {
				c.StrokeLine2(draw.LineStyle{Color: r.look.color, Width: 1.4}, end(mean), y-4.5, end(mean), y+4.5)
			}
		}
		if b.peak > p.X.Max { // it goes on
			c.FillPolygon(r.look.color, []vg.Point{{X: c.Max.X, Y: y - 4}, {X: c.Max.X + 5, Y: y}, {X: c.Max.X, Y: y + 4}})
		}
	}
}

// asDuration makes a duration of seconds.
func asDuration(seconds float64) time.Duration {
	return time.Duration(math.Round(seconds * float64(time.Second)))
}
