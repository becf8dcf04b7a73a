package simulate_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/sim/scenario"
	"github.com/weir-lb/weir/internal/simulate"
)

func TestDrawnScenariosAreWithinTheirBounds(t *testing.T) {
	within := func(sc *scenario.Scenario, what string, value, least, most float64) {
		t.Helper()
		if value < least || value > most {
			t.Errorf("%s: %s is %v, want %v to %v", sc.Name, what, value, least, most)
		}
	}
	for number := range 330 {
		sc := simulate.Draw(7, number+1)
		if errs := sc.Validate(); errs != nil {
			t.Fatalf("%s: %v", sc.Name, errs)
		}
		endpoints := make(map[topology.Zone]int)
		for _, e := range sc.Service().Endpoints {
			endpoints[e.Zone]++
		}
		within(sc, "zones", float64(len(sc.Clients)), 2, 5)
		within(sc, "the mean service time in ms", float64(sc.Server.Service.Mean)/float64(time.Millisecond), 1.99, 200)
		within(sc, "cv", sc.Server.Service.CV, 0.3, 2.5)
		within(sc, "workers", float64(sc.Server.Workers), 1, 16)
		for _, c := range sc.Clients {
			within(sc, "endpoints of a zone", float64(endpoints[c.Zone]), 1, 12)
			within(sc, "clients of a zone", float64(c.Count), 1, 300)
			load := c.Rate * sc.Server.Service.Mean.Seconds() / float64(endpoints[c.Zone]*sc.Server.Workers)
			within(sc, "load", load, 0.199, 0.76)
		}
		if last := sc.Steps; number%11 != 0 && len(last) == 0 {
			t.Errorf("%s: nothing happens", sc.Name)
		}
	}
}

func TestEqualSeedsDrawEqualScenarios(t *testing.T) {
	seen := make(map[string]int)
	for number := 1; number <= 44; number++ {
		text := simulate.Draw(3, number).String()
		if diff := cmp.Diff(text, simulate.Draw(3, number).String()); diff != "" {
			t.Fatalf("not the same twice:\n%s", diff)
		}
		if other, ok := seen[text]; ok {
			t.Errorf("numbers %d and %d are alike", other, number)
		}
		seen[text] = number
		if text == simulate.Draw(4, number).String() {
			t.Errorf("number %d is the same with another seed", number)
		}
	}
}

func TestEveryKindIsDrawnInTurn(t *testing.T) {
	kinds, titles := simulate.Kinds()
	if len(kinds) != 11 || len(titles) != len(kinds) {
		t.Fatalf("%d kinds and %d titles", len(kinds), len(titles))
	}
	for i, kind := range kinds {
		for _, number := range []int{i + 1, i + 1 + len(kinds)} {
			if sc := simulate.Draw(1, number); !strings.HasSuffix(sc.Name, "-"+kind) || simulate.KindOf(number) != kind {
				t.Errorf("number %d is %s, want a %s", number, sc.Name, kind)
			}
		}
	}
}

func TestADrawnScenarioIsFoundByItsName(t *testing.T) {
	want := simulate.Draw(5, 24)
	got, err := simulate.DrawNamed(want.Name)
	if err != nil || got.String() != want.String() {
		t.Errorf("%s: got %v, %v", want.Name, got, err)
	}
	for _, name := range []string{"random-5-24", "random-5-24-calm", "random-5-0-calm", "random-x-1-calm", "random--1-1-calm", "skew", "random-05-24-surge"} {
		if got, err := simulate.DrawNamed(name); err == nil {
			t.Errorf("%s is found as %s", name, got.Name)
		}
	}
}

func TestSomethingIsLeftToCarryTheLoad(t *testing.T) {
	for number := 6; number <= 330; number += 11 { // the loss of a zone
		sc := simulate.Draw(2, number)
		lost, left, rate := sc.Affected[0], 0, 0.0
		for _, e := range sc.Service().Endpoints {
			if e.Zone != lost {
				left++
			}
		}
		least := math.Inf(1)
		for _, c := range sc.Clients {
			rate += c.Rate
			least = min(least, c.Rate)
		}
		busy := rate * sc.Server.Service.Mean.Seconds() / float64(left*sc.Server.Workers)
		total := rate * sc.Server.Service.Mean.Seconds() / float64(len(sc.Service().Endpoints)*sc.Server.Workers)
		if busy > 0.96 && total > 0.21 {
			t.Errorf("%s: without zone %s the others are %.2f busy", sc.Name, lost, busy)
		}
	}
}
