package demo

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/sim"
	"github.com/weir-lb/weir/internal/sim/scenario"
)

func scriptOf(t *testing.T, o ScriptOptions) *scenario.Scenario {
	t.Helper()
	sc, err := Script(o)
	if err != nil {
		t.Fatal(err)
	}
	return sc
}

func TestTheScriptHasEachKindOfFaultOnceAndAPauseAfterIt(t *testing.T) {
	second := func(n int) time.Duration { return time.Duration(n) * time.Second }
	want := []Phase{
		{"calm", 0, second(10), "", false},
		{"×3 in zone-a", second(10), second(20), "zone-a", true},
		{"recovery", second(20), second(24), "", false},
		{"zone-b 10× slower", second(24), second(34), "zone-b", true},
		{"recovery", second(34), second(40), "", false},
		{"half of zone-c fails", second(40), second(50), "zone-c", true},
		{"recovery", second(50), second(54), "", false},
		{"zone-a gone", second(54), second(64), "zone-a", true},
		{"recovery", second(64), second(76), "", false},
	}
	if diff := cmp.Diff(want, Phases(scriptOf(t, ScriptOptions{}))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	hangs := Phases(scriptOf(t, ScriptOptions{Loss: scenario.Hang}))
	if got := hangs[7].Title; got != "zone-a hangs" {
		t.Errorf("the lost zone reads %q", got)
	}
}

func TestSpeedShortensEveryPhase(t *testing.T) {
	slow, fast := scriptOf(t, ScriptOptions{}), scriptOf(t, ScriptOptions{Speed: 4})
	for i, p := range Phases(slow) {
		if f := Phases(fast)[i]; p.From != 4*f.From || p.To != 4*f.To {
			t.Errorf("%v, and at speed 4 %v", p, f)
		}
	}
	if slow.Stress.From != 4*fast.Stress.From || slow.Stress.To != 4*fast.Stress.To {
		t.Errorf("the stress is %v, and at speed 4 %v", slow.Stress, fast.Stress)
	}
}

func TestASurgeOverloadsItsZoneAndNoFaultTheRest(t *testing.T) {
	sc := scriptOf(t, ScriptOptions{})
	const zones = 3
	zone := float64(len(sc.Service().Endpoints)/zones*sc.Server.Workers) / sc.Server.Service.Mean.Seconds()
	surge := sc.Clients[0].Rate * sc.Steps[0].Factor
	if surge <= zone {
		t.Errorf("a surge of %v/s does not overload a zone that can do %v/s", surge, zone)
	}
	// The same bound as that of the outlier detectors: a zone at nine tenths of what it can is slow.
	if all := sim.Peak(sc); all >= 0.9*zones*zone {
		t.Errorf("a surge of %v/s in all is too much for the whole", all)
	}
	if all := zones * sc.Clients[0].Rate; all >= 0.9*(zones-1)*zone {
		t.Errorf("two zones cannot carry %v/s", all)
	}
}

func TestScriptsThatMakeNoSenseAreRefused(t *testing.T) {
	_, err := Script(ScriptOptions{Rate: -1, Speed: 1e9, Loss: scenario.Slow})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, part := range []string{"rate", "speed", `"slow"`} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%v says nothing of %s", err, part)
		}
	}
}

func TestPhasesOfAnyScenario(t *testing.T) {
	in := scenario.Where{Zone: "a"}
	at := func(s int, st scenario.Step) scenario.Step {
		st.At = time.Duration(s) * time.Second
		return st
	}
	sc := story(t,
		at(0, scenario.Step{Verb: scenario.Rate, Factor: 2}),
		at(3, scenario.Step{Verb: scenario.Fail, Where: scenario.Where{Zone: "a", First: 1, Last: 1}, Ratio: 0.05}),
		at(3, scenario.Step{Verb: scenario.Delay, Where: scenario.Where{Zone: "b"}, Time: 20 * time.Millisecond}),
		at(5, scenario.Step{Verb: scenario.Heal}),
		at(5, scenario.Step{Verb: scenario.Lose, Where: in}),
		at(7, scenario.Step{Verb: scenario.Return, Where: in}),
		at(8, scenario.Step{Verb: scenario.Drain, Where: in}),
	)
	var got []string
	for _, p := range Phases(sc) {
		got = append(got, p.Title+"|"+p.Zone)
	}
	want := []string{"×2 in every zone|", "a/1 fails 5 %, b 20ms away|", "a lost|a", "recovery|", "a drained|a"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := Phases(story(t)); len(got) != 1 || got[0].Title != "calm" {
		t.Errorf("without steps there is %v", got)
	}
}
