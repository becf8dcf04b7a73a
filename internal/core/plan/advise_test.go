package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// adviceOn plans and lists the advice, one piece a line, as far as the colon.
func adviceOn(in plan.Input) string {
	var lines []string
	for _, r := range plan.Advise(in, plan.Compute(in)) {
		change, _, _ := strings.Cut(r.String(), ":")
		lines = append(lines, change)
	}
	return strings.Join(lines, "; ")
}

func TestAdviceIsWhatHelpsMost(t *testing.T) {
	equal := cores(1, 1, 1)
	lost := append(cores(1, 1, 1), topology.Node{Name: "n4", CPU: 1000, Ready: true})
	silent := append(cores(1, 1, 1), topology.Node{Name: "n5", Zone: "zone-a", Ready: true})
	tests := []struct {
		name      string
		mode      topology.Mode
		nodes     []topology.Node
		endpoints []int
		want      string
	}{
		{"nothing to gain", topology.ModeBalanced, equal, []int{3, 3, 3}, ""},
		{
			"one short", topology.ModeBalanced, equal,
			[]int{4, 4, 3},
			"one more endpoint in zone-c; allow 30 % overload from the start",
		},
		{
			"all in one zone", topology.ModeBalanced, equal,
			[]int{12, 0, 0},
			"one more endpoint in zone-b; one endpoint moved from zone-a to zone-b",
		},
		{"Auto gives up", topology.ModeAuto, equal, []int{1, 1, 2}, "mode Balanced"},
		{"no hints asked for", topology.ModeDisabled, equal, []int{3, 3, 3}, "mode Balanced"},
		{
			"a node without a label stops Auto", topology.ModeAuto, lost,
			[]int{3, 3, 3},
			"label n4 with topology.kubernetes.io/zone; mode Balanced",
		},
		{
			"a node without CPU stops Auto", topology.ModeAuto, silent,
			[]int{3, 3, 3},
			"see that n5 report their zone and their allocatable CPU; mode Balanced",
		},
		{"a node without a label does not matter", topology.ModeBalanced, lost, []int{3, 3, 3}, ""},
		{
			"a zone drowns by its own hints", topology.ModePreferSameZone, equal,
			[]int{8, 8, 1},
			"mode Balanced; one endpoint moved from zone-a to zone-c; one more endpoint in zone-c",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := adviceOn(inputOf(test.mode, test.nodes, endpointsIn(test.endpoints...))); got != test.want {
				t.Errorf("want %q\ngot  %q", test.want, got)
			}
		})
	}
}

func TestAdviceGivesTheNumbers(t *testing.T) {
	in := inputOf(topology.ModeBalanced, cores(1, 1, 1), endpointsIn(4, 4, 3))
	want := "one more endpoint in zone-c: 100 % of the requests stay in their zone instead of 70 %, " +
		"0 % overload is expected instead of 13 %"
	if got := plan.Advise(in, plan.Compute(in))[0].String(); got != want {
		t.Errorf("want %q\ngot  %q", want, got)
	}
}

func TestThereIsNoAdviceWithoutReadyEndpoints(t *testing.T) {
	in := inputOf(topology.ModeBalanced, cores(1, 1, 1), nil)
	if got := adviceOn(in); got != "" {
		t.Errorf("want none, got %q", got)
	}
}

func TestAdviceKeepsItsWord(t *testing.T) {
	random := newRandom(t)
	for range 300 {
		in := anyInput(random, topology.Modes()[random.IntN(len(topology.Modes()))])
		p := plan.Compute(in)
		before := p.String()
		list := plan.Advise(in, p)
		if p.String() != before {
			t.Fatalf("advice changed the plan\n%sto\n%s", before, &p)
		}
		if len(list) > 4 {
			t.Fatalf("%d pieces of advice are too many", len(list))
		}
		for _, r := range list {
			values := fmt.Sprint(r.Values)
			if strings.Contains(values, "NaN") || strings.Contains(r.String(), "{") {
				t.Fatalf("%s: %s", r.Code, r)
			}
			inZone := slices.IndexFunc(r.Values, func(v reason.Value) bool { return v.Name == "inZone" })
			if n := r.Values[inZone].Number; n < 0 || n > 1+1e-9 {
				t.Fatalf("%s promises %v", r, n)
			}
		}
	}
}

func BenchmarkAdvise(b *testing.B) {
	in := inputOf(topology.ModeBalanced, cores(3, 2, 1), endpointsIn(20, 40, 40))
	p := plan.Compute(in)
	b.ReportAllocs()
	for b.Loop() {
		plan.Advise(in, p)
	}
}
