package demo

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/golden"
	"github.com/weir-lb/weir/internal/sim"
)

// told is a result with these figures under stress.
func told(inZone, success float64, p99 time.Duration) *sim.Result {
	f := sim.Figures{Requests: 1000, InZone: inZone, Success: success, Good: success, P50: 20 * time.Millisecond, P99: p99}
	return &sim.Result{
		Scenario: "brownout", Strategy: "weir", Window: f, Affected: f, Calm: f, Whole: sim.Figures{Requests: 4321}, PeakLoad: 0.9,
	}
}

// seeds numbers results.
func seeds(results ...*sim.Result) []*sim.Result {
	for i, r := range results {
		r.Seed = uint64(i)
	}
	return results
}

func TestAgreementIsWithinATenthOfSharesAndAQuarterOfP99(t *testing.T) {
	simulated := seeds(told(0.6, 0.99, 90*time.Millisecond), told(0.7, 0.99, 110*time.Millisecond))
	for _, c := range []struct {
		name     string
		measured *sim.Result
		want     bool
	}{
		{"equal", told(0.65, 0.99, 100*time.Millisecond), true},
		{"within", told(0.6, 0.9, 124*time.Millisecond), true},
		{"less in zone", told(0.58, 0.99, 100*time.Millisecond), false},
		{"less success", told(0.65, 0.89, 100*time.Millisecond), false},
		{"later", told(0.65, 0.99, 126*time.Millisecond), false},
		{"sooner", told(0.65, 0.99, 74*time.Millisecond), false},
	} {
		if a := Agree(c.measured, simulated); a.Agrees != c.want {
			t.Errorf("%s: agrees is %v:\n%s", c.name, a.Agrees, joined(a.Lines()))
		}
	}
}

func TestWhatIsMeasuredOfNothingSimulatedDisagreesAndIsValidJSON(t *testing.T) {
	a := Agree(told(0.1, 0.99, time.Millisecond), []*sim.Result{told(0, 0.99, time.Millisecond)})
	if a.Agrees {
		t.Error("10 % in zone agree with none")
	}
	if !strings.Contains(joined(a.Lines()), "OUT of 10 %") {
		t.Errorf("the table does not say so:\n%s", joined(a.Lines()))
	}
	text, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	if want := `"measured":0.1,"simulated":0,"half":0,"difference":null,`; !strings.Contains(string(text), want) {
		t.Errorf("the data is %s, want %s in it", text, want)
	}
	if a := Agree(told(0, 0.99, time.Millisecond), []*sim.Result{told(0, 0.99, time.Millisecond)}); !a.Agrees {
		t.Error("nothing does not agree with nothing")
	}
}

func TestAgreementReads(t *testing.T) {
	simulated := seeds(told(0.6, 0.99, 90*time.Millisecond), told(0.7, 0.99, 110*time.Millisecond))
	a := Agree(told(0.62, 0.985, 130*time.Millisecond), simulated)
	alone := Agree(told(0.62, 0.985, 130*time.Millisecond), nil)
	if !alone.Agrees {
		t.Error("with nothing to compare it does not agree")
	}
	golden.Check(t, "agreement.txt", strings.Join([]string{
		joined(a.Lines()), MarkdownHead + "\n" + a.Markdown() + "\n", joined(alone.Lines()),
	}, "\n"))
}
