package agent

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/core/topology"
)

func parse(tb testing.TB, text string) *topology.Snapshot {
	tb.Helper()
	s, err := topology.ParseSnapshot(text)
	if err != nil {
		tb.Fatal(err)
	}
	return &s
}

func planning() *planner { return newPlanner(Config{Node: "a-1"}.withDefaults()) }

// hints lists the hints of the only plan.
func hints(d *desired) []string {
	var all []string
	for _, e := range planOf(d, 0).Endpoints {
		all = append(all, fmt.Sprint(e.Zone, ">", e.Hints.Zones))
	}
	return all
}

func planOf(d *desired, i int) *plan.Plan { return d.services[i].plans[topology.IPv4] }

func TestOnlyServicesThatChangedArePlannedAgain(t *testing.T) {
	const nodes = "nodes a:4 b:4 c:4; "
	p := planning()
	first := p.next(parse(t, nodes+"service one ip=10.9.0.1; endpoints a:3 b:3 c:3; service two ip=10.9.0.2; endpoints a:1"), nil)
	second := p.next(parse(t, nodes+"service one ip=10.9.0.1; endpoints a:3 b:3 c:3; service two ip=10.9.0.2; endpoints a:2"), nil)
	same := func(i int) bool { return planOf(first, i) == planOf(second, i) }
	if !same(0) || same(1) {
		t.Errorf("planned again: one %v, two %v; want two alone", !same(0), !same(1))
	}
	third := p.next(parse(t, "nodes a:4 b:4 c:8; service one ip=10.9.0.1; endpoints a:3 b:3 c:3"), nil)
	if planOf(third, 0) == planOf(second, 0) {
		t.Error("a change of the nodes planned nothing again")
	}
}

func TestAChangeKeepsTheHintsItCan(t *testing.T) {
	p := planning()
	before := hints(p.next(parse(t, "nodes a:4 b:4 c:4; service web ip=10.9.0.1; endpoints a:4 b:4 c:3"), nil))
	after := hints(p.next(parse(t, "nodes a:4 b:4 c:4; service web ip=10.9.0.1 port=81->80; endpoints a:4 b:4 c:3"), nil))
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("hints moved for nothing (-before +after)\n%s", diff)
	}
}

func TestWithoutTheOtherNodesTheHintsThatAreThereAreTold(t *testing.T) {
	p := newPlanner(Config{Node: "a-1", Hints: HintsNative, OneNode: true}.withDefaults())
	text := "nodes a-1=a:4; service web mode=Auto ip=10.9.0.1; endpoints a:1>a b:1>b c:2"
	d := p.next(parse(t, text), nil)
	if diff := cmp.Diff([]string{"a>[a]", "b>[b]", "c>[]", "c>[]"}, hints(d)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if p := planOf(d, 0); !p.Hinted || len(p.Zones) > 0 || p.Mode != topology.ModeAuto {
		t.Errorf("want no shares, got %+v", p)
	}
	text = strings.ReplaceAll(text, ">a", "")
	if d = p.next(parse(t, strings.ReplaceAll(text, ">b", "")), nil); planOf(d, 0).Hinted {
		t.Error("the plan is said to be hinted without a hint")
	}
}

// services writes n services of six endpoints each.
func services(n int) string {
	var text strings.Builder
	text.WriteString("nodes a:4 b:4 c:4\n")
	for i := range n {
		fmt.Fprintf(&text, "service s%d ip=10.%d.%d.%d\nendpoints a:2 b:2 c:2\n", i, 100+i>>16, i>>8&255, i&255)
	}
	return text.String()
}

// BenchmarkAChangeAmongAThousandServices measures what a change of one service costs when nothing else changed.
func BenchmarkAChangeAmongAThousandServices(b *testing.B) {
	p := planning()
	one, other := parse(b, services(1000)), parse(b, services(1000))
	p.next(one, nil)
	b.ReportAllocs()
	for b.Loop() {
		one, other = other, one
		p.next(one, nil)
	}
}
