package strategy_test

import (
	"math"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/sim/strategy"
)

// reports are utilisations by endpoint; what is missing has not reported.
type reports map[int]strategy.Report

// locality has so many endpoints, some of which are usable.
type locality struct{ hosts, usable int }

// localities have endpoints all of which are usable.
func localities(hosts ...int) (all []locality) {
	for _, n := range hosts {
		all = append(all, locality{n, n})
	}
	return all
}

// shared steps Envoy's load-aware balancing at the times, and gives the shares of the localities.
func shared(t *testing.T, groups []locality, said func(at time.Duration) reports, at ...time.Duration) []float64 {
	t.Helper()
	c := named(t, "envoy-load-aware")
	var now time.Duration
	s := c.New(strategy.Client{Zone: "a", Reports: func(endpoint int) (strategy.Report, bool) {
		r, ok := said(now)[endpoint]
		return r, ok
	}})
	layout, counters, next := overflow.Layout{}, overflow.Counters{}, 0
	for i, l := range groups {
		g := overflow.Group{ID: i + 1, Zone: topology.Zone(rune('a' + i))}
		for range l.hosts {
			g.Endpoints = append(g.Endpoints, next)
			next++
		}
		layout.Groups = append(layout.Groups, g)
		counters.Groups = append(counters.Groups, overflow.GroupCounters{Usable: l.usable})
	}
	layout.Endpoints = next
	s.Reset(0, layout)
	var d overflow.Decision
	for _, now = range at {
		d = s.Step(now, &counters)
	}
	if d.Reason.Code != reason.FollowsReports || d.Confined || d.Shed > 0 {
		t.Errorf("decision %+v", d)
	}
	shares, sum := make([]float64, len(groups)), 0.0
	for _, r := range d.Routes {
		shares[r.Group] += r.Share
		sum += r.Share
	}
	if math.Abs(sum-1) > 1e-9 {
		t.Errorf("shares sum to %v", sum)
	}
	return shares
}

// all lets the endpoints of each group report the same.
func all(hosts []int, utilisations ...float64) func(time.Duration) reports {
	return func(now time.Duration) reports {
		said, next := reports{}, 0
		for i, n := range hosts {
			for range n {
				if utilisations[i] > 0 {
					said[next] = strategy.Report{Utilisation: utilisations[i], At: now}
				}
				next++
			}
		}
		return said
	}
}

// The first rows are the worked example of Envoy's page.
func TestEnvoyLoadAwareWeighsLocalitiesAsItsPageSays(t *testing.T) {
	ten := []int{10, 10, 10}
	for _, c := range []struct {
		name         string
		hosts        []int
		utilisations []float64
		want         []float64
	}{
		{"spillover", ten, []float64{0.7, 0.3, 0.4}, []float64{3. / 16, 7. / 16, 6. / 16}},
		{"alike: all local but the probes", ten, []float64{0.45, 0.45, 0.45}, []float64{0.97, 0.015, 0.015}},
		{"at the threshold", ten, []float64{0.5, 0.4, 0.4}, []float64{0.97, 0.015, 0.015}},
		{"above the threshold", ten, []float64{0.51, 0.4, 0.4}, []float64{49. / 169, 60. / 169, 60. / 169}},
		{"less loaded than the others", ten, []float64{0.1, 0.9, 0.9}, []float64{0.97, 0.015, 0.015}},
		{"probes by endpoints", []int{10, 5, 1}, []float64{0.2, 0.2, 0.2}, []float64{0.97, 0.025, 0.005}},
		{"never reported: idle", ten, []float64{0, 0, 0}, []float64{0.97, 0.015, 0.015}},
		{"all overloaded: by endpoints", []int{6, 3, 3}, []float64{1, 1, 1}, []float64{0.5, 0.25, 0.25}},
		{"the larger locality draws the mean", []int{10, 30, 10}, []float64{0.5, 0.2, 0.9}, []float64{5. / 30, 24. / 30, 1. / 30}},
		{"no other locality", []int{4}, []float64{0.9}, []float64{1}},
	} {
		got := shared(t, localities(c.hosts...), all(c.hosts, c.utilisations...), 0)
		for i := range got {
			if math.Abs(got[i]-c.want[i]) > 1e-9 {
				t.Errorf("%s: shares %.4f, want %.4f", c.name, got, c.want)
				break
			}
		}
	}
}

func TestEnvoyLoadAwareSmoothsOverFiveSecondsAndActsOnceASecond(t *testing.T) {
	hosts := []int{10, 10}
	said := func(now time.Duration) reports {
		if now < time.Second {
			return all(hosts, 0.1, 0.1)(now)
		}
		return all(hosts, 0.9, 0.1)(now)
	}
	share := func(at ...time.Duration) float64 { return shared(t, localities(hosts...), said, at...)[0] }
	if got := share(0, 900*time.Millisecond); math.Abs(got-0.97) > 1e-9 {
		t.Errorf("within the second the local share is %v, want 0.97", got)
	}
	alpha := 1 - math.Exp(-0.2)
	first := 0.1 + alpha*0.8
	if want := (1 - first) / (1 - first + 0.9); math.Abs(share(0, time.Second)-want) > 1e-9 {
		t.Errorf("after a second the local share is %v, want %v", share(0, time.Second), want)
	}
	second := first + alpha*(0.9-first)
	if want := (1 - second) / (1 - second + 0.9); math.Abs(share(0, time.Second, 2*time.Second)-want) > 1e-9 {
		t.Errorf("after two seconds the local share is %v, want %v", share(0, time.Second, 2*time.Second), want)
	}
}

func TestEnvoyLoadAwareTakesALocalityWithoutFreshReportsByItsEndpoints(t *testing.T) {
	hosts := []int{4, 4}
	once := func(time.Duration) reports { // at the beginning, and never again
		return reports{0: {Utilisation: 0.9}, 4: {Utilisation: 0.1}}
	}
	if got := shared(t, localities(hosts...), once, 0, time.Minute); math.Abs(got[0]-0.1) > 1e-9 {
		t.Errorf("with fresh reports shares are %v", got)
	}
	if got := shared(t, localities(hosts...), once, 0, 4*time.Minute); math.Abs(got[0]-0.5) > 1e-9 {
		t.Errorf("with stale reports shares are %v, want halves", got)
	}
}

func TestEnvoyLoadAwareLeavesALocalityWithoutEndpointsThatServe(t *testing.T) {
	hosts := []int{4, 4, 4}
	if got := shared(t, []locality{{4, 0}, {4, 4}, {4, 4}}, all(hosts, 0.2, 0.2, 0.2), 0); got[0] > 0 || math.Abs(got[1]-0.5) > 1e-9 {
		t.Errorf("shares %v, want none for a locality without endpoints", got)
	}
	if got := shared(t, []locality{{4, 0}, {4, 0}, {4, 4}}, all(hosts, 0.2, 0.2, 0.2), 0); math.Abs(got[0]-0.97) > 1e-9 {
		t.Errorf("in panic, when health is ignored, shares are %v", got)
	}
}
