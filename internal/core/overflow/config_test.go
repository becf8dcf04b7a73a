package overflow_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/core/overflow"
)

func TestStrategiesAreFoundByNameInAnyCase(t *testing.T) {
	if diff := cmp.Diff([]string{"Weir", "Hazl", "Static", "Random"}, overflow.Names()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	for _, name := range append(overflow.Names(), "", "weir", "HAZL") {
		if _, err := overflow.New(name, overflow.Config{}); err != nil {
			t.Errorf("New(%q): %v", name, err)
		}
	}
}

func TestRefusalsSayWhatWouldDo(t *testing.T) {
	for _, c := range []struct {
		name   string
		config overflow.Config
		want   string
	}{
		{"magic", overflow.Config{}, `unknown overflow strategy "magic": want one of Weir, Hazl, Static, Random`},
		{"", overflow.Config{Prefer: "speed"}, `unknown preference "speed": want cost, balanced or latency`},
		{"Hazl", overflow.Config{Low: 3, High: 2}, "load band 3 to 2: want two finite numbers above 0"},
		{"Hazl", overflow.Config{Low: 3}, "load band 3 to 2"},
		{"Hazl", overflow.Config{Low: math.NaN()}, "load band NaN to 2"},
		{"Hazl", overflow.Config{High: math.Inf(1)}, "load band 0.8 to +Inf"},
	} {
		_, err := overflow.New(c.name, c.config)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("New(%q, %+v) gives %v: want %q", c.name, c.config, err, c.want)
		}
	}
}

func TestOnlyStaticKeepsRequestsOnItsRoutesWhateverHappens(t *testing.T) {
	for _, name := range overflow.Names() {
		s, err := overflow.New(name, overflow.Config{})
		if err != nil {
			t.Fatal(err)
		}
		s.Reset(0, overflow.Layout{Groups: []overflow.Group{{Zone: "a", Endpoints: []int{0}}, {Zone: "b", Endpoints: []int{1}}}, Endpoints: 2})
		c := overflow.Counters{Groups: make([]overflow.GroupCounters, 2), Endpoints: make([]overflow.EndpointCounters, 2)}
		if d := s.Step(0, &c); d.Confined != (name == "Static") || overflow.KeepsHome(name) != d.Confined {
			t.Errorf("%s: confined %v", name, d.Confined)
		}
	}
}

func TestUnconfinedLetsRequestsGoOn(t *testing.T) {
	static, err := overflow.New("Static", overflow.Config{})
	if err != nil {
		t.Fatal(err)
	}
	layout := overflow.Layout{Endpoints: 1, Groups: []overflow.Group{{Zone: "a", Endpoints: []int{0}}}}
	for want, s := range map[bool]overflow.Strategy{true: static, false: overflow.Unconfined(static)} {
		s.Reset(0, layout)
		d := s.Step(0, &overflow.Counters{Groups: make([]overflow.GroupCounters, 1)})
		if d.Confined != want || len(d.Routes) != 1 {
			t.Errorf("confined %v to %d routes, want %v to 1", d.Confined, len(d.Routes), want)
		}
	}
}
