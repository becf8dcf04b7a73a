package pick_test

import (
	"slices"
	"time"

	"github.com/weir-lb/weir/internal/core/overflow"
)

// fixed is a strategy that decides the same each time.
type fixed struct {
	shares   []float64 // by group
	baseline time.Duration
	shed     float64
	confined bool
	panics   bool
}

func (fixed) Reset(time.Duration, overflow.Layout) {}

func (f fixed) Step(_ time.Duration, c *overflow.Counters) overflow.Decision {
	d := overflow.Decision{
		Baseline: f.baseline, Cap: 8, Shed: f.shed, Confined: f.confined, Panic: f.panics,
		Groups: make([]overflow.GroupStatus, len(c.Groups)),
	}
	for i := range min(len(f.shares), len(c.Groups)) {
		d.Routes = append(d.Routes, overflow.Route{Group: i, Share: f.shares[i]})
		d.Groups[i].Share = f.shares[i]
	}
	return d
}

// recorder remembers what a strategy is told, and decides what its fields say.
type recorder struct {
	decision overflow.Decision
	resets   int
	layout   overflow.Layout
	last     overflow.Counters // of the last step
	total    []overflow.GroupCounters
}

func (r *recorder) Reset(_ time.Duration, s overflow.Layout) {
	r.resets++
	r.layout = s
	r.total = make([]overflow.GroupCounters, len(s.Groups))
}

func (r *recorder) Step(_ time.Duration, c *overflow.Counters) overflow.Decision {
	r.last = overflow.Counters{Groups: slices.Clone(c.Groups), Endpoints: slices.Clone(c.Endpoints)}
	for i, g := range c.Groups {
		t := &r.total[i]
		t.Sent += g.Sent
		t.OK += g.OK
		t.Failed += g.Failed
		t.Latency += g.Latency
	}
	d := r.decision
	d.Routes = slices.Clone(d.Routes)
	return d
}

// seconds and millis make times readable.
func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
func millis(n float64) time.Duration  { return time.Duration(n * float64(time.Millisecond)) }
