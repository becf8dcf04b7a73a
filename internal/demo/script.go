package demo

import (
	"cmp"
	_ "embed" // the script
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weir-lb/weir/internal/sim/scenario"
)

// scriptName is the name of the script's scenario.
const scriptName = "demo"

//go:embed demo.txtar
var script []byte

// The defaults of ScriptOptions, as flags show them.
const (
	// DefaultRate is what the file has.
	DefaultRate = 220
	// DefaultSpeed is the script as written.
	DefaultSpeed = 1
	// QuickSpeed is for continuous integration: 76 s become 38 s. At four times the speed agents hardly have the time to
	// learn what normal is, and what the first second of each fault costs is as much as the whole may cost.
	QuickSpeed = 2
)

// ScriptOptions change the script. The zero value leaves it as it is written.
type ScriptOptions struct {
	Rate  float64       // requests per second of each zone when calm; 0: DefaultRate
	Speed float64       // divides the lengths of the phases; 0: 1
	Loss  scenario.Verb // what the endpoints of the lost zone do, Refuse or Hang; empty: Refuse
}

// The limits of ScriptOptions: what one machine's loopback and timers can do, and what a person would wait for.
const (
	maxRate  = 5000
	minSpeed = 0.1
	maxSpeed = 100
)

// Script gives the scenario of weir demo: a calm, each kind of fault once with a pause after it, 76 s divided by the speed.
//
// Errors: every option that is out of range, joined.
func Script(o ScriptOptions) (*scenario.Scenario, error) {
	o = ScriptOptions{cmp.Or(o.Rate, DefaultRate), cmp.Or(o.Speed, DefaultSpeed), cmp.Or(o.Loss, scenario.Refuse)}
	var errs []error
	if !(o.Rate > 0 && o.Rate <= maxRate) {
		errs = append(errs, fmt.Errorf("the rate is %v requests/s: want more than 0, at most %d", o.Rate, maxRate))
	}
	if !(o.Speed >= minSpeed && o.Speed <= maxSpeed) {
		errs = append(errs, fmt.Errorf("the speed is %v: want %v to %v", o.Speed, minSpeed, maxSpeed))
	}
	if o.Loss != scenario.Refuse && o.Loss != scenario.Hang {
		errs = append(errs, fmt.Errorf("a zone cannot be lost as %q: want %s or %s", o.Loss, scenario.Refuse, scenario.Hang))
	}
	sc, err := scenario.Parse(scriptName+".txtar", script)
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	for i := range sc.Clients {
		sc.Clients[i].Rate = o.Rate
	}
	for i := range sc.Steps {
		if sc.Steps[i].Verb == scenario.Refuse {
			sc.Steps[i].Verb = o.Loss
		}
		sc.Steps[i].At = divided(sc.Steps[i].At, o.Speed)
	}
	sc.Length = divided(sc.Length, o.Speed)
	sc.Stress = scenario.Window{From: divided(sc.Stress.From, o.Speed), To: divided(sc.Stress.To, o.Speed)}
	return sc, nil
}

func divided(d time.Duration, by float64) time.Duration { return time.Duration(float64(d) / by) }

// Phase is the time between two steps of a scenario.
type Phase struct {
	Title    string
	From, To time.Duration
	Zone     string // whose clients or endpoints the fault is about; empty: none, or more than one
	IsFault  bool   // something begins that clients have to be protected from
}

// The titles of phases in which no fault begins.
const (
	calm     = "calm"     // before the first step
	recovery = "recovery" // what was wrong is over
)

// Phases cuts a scenario into phases at the times of its steps: the first begins at 0, the last ends with the run.
func Phases(sc *scenario.Scenario) []Phase {
	phases := []Phase{{Title: calm, To: sc.Length}}
	for i := range sc.Steps {
		st := &sc.Steps[i]
		if last := &phases[len(phases)-1]; st.At > last.From {
			last.To = st.At
			phases = append(phases, Phase{Title: recovery, From: st.At, To: sc.Length})
		}
		phases[len(phases)-1].add(st)
	}
	return phases
}

// add is what one more step makes of the phase that begins with it.
func (p *Phase) add(st *scenario.Step) {
	title := fault(st)
	switch {
	case title == "":
		if !p.IsFault {
			p.Title = recovery
		}
	case p.IsFault:
		p.Title += ", " + title
		if p.Zone != string(st.Where.Zone) {
			p.Zone = ""
		}
	default:
		p.Title, p.Zone, p.IsFault = title, string(st.Where.Zone), true
	}
}

// fault says what a step does to its endpoints or clients; empty when it ends a fault.
func fault(st *scenario.Step) string {
	where := st.Where.String()
	switch {
	case st.Where == scenario.Where{}:
		where = "every zone"
	case st.Where.Part == 0.5:
		where = "half of " + string(st.Where.Zone)
	}
	switch st.Verb {
	case scenario.Rate, scenario.Slow:
		switch {
		case st.Factor == 1:
			return ""
		case st.Verb == scenario.Rate:
			return fmt.Sprintf("×%v in %s", st.Factor, where)
		default:
			return fmt.Sprintf("%s %v× slower", where, st.Factor)
		}
	case scenario.Delay:
		return fmt.Sprintf("%s %v away", where, st.Time)
	case scenario.Fail:
		if st.Ratio < 1 {
			return fmt.Sprintf("%s fails %v %%", where, st.Ratio*100)
		}
		return where + " fails"
	case scenario.Hang:
		return where + " hangs"
	case scenario.Refuse:
		return where + " gone"
	case scenario.Lose:
		return where + " lost"
	case scenario.Drain:
		return where + " drained"
	default: // heal, return; no agent plays the others
		return ""
	}
}

// phaseAt finds the phase of a moment, by its index.
func phaseAt(phases []Phase, at time.Duration) int {
	i := slices.IndexFunc(phases, func(p Phase) bool { return at < p.To })
	if i < 0 {
		return len(phases) - 1
	}
	return i
}
