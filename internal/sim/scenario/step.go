package scenario

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weir-lb/weir/internal/core/topology"
)

// scope is what a verb's place may name.
type scope uint8

const (
	ofClients   scope = iota // all clients, or a zone's
	ofEndpoints              // any place
	ofZones                  // whole zones and clusters
	ofOneZone                // one zone, of any cluster
	ofHomeZone               // one zone of the clients' own cluster
)

// verb is how a step of one Verb is written: TIME VERB PLACE and its operands.
type verb struct {
	name  Verb
	form  string // of the operands, for people
	scope scope
	parse func(st *Step, words []string) error
	print func(st Step) string
	check func(st Step) error
	// only gives the fields that the verb uses.
	only func(st Step) Step
}

// verbs lists all of them in the order of the constants.
func verbs() []verb {
	factor := verb{
		form: "xFACTOR", scope: ofEndpoints,
		parse: one(func(st *Step, word string) error { return assign(&st.Factor, word, parseFactor) }),
		print: func(st Step) string { return "x" + formatNumber(st.Factor) },
		check: func(st Step) error { return between("the factor", st.Factor, 0, maxFactor) },
		only:  func(st Step) Step { return Step{Factor: st.Factor} },
	}
	wait := verb{
		form:  "TIME",
		parse: one(func(st *Step, word string) error { return assign(&st.Time, word, parseTime) }),
		print: func(st Step) string { return formatTime(st.Time) },
		check: func(st Step) error { return checkTime("the time", st.Time) },
		only:  func(st Step) Step { return Step{Time: st.Time} },
	}
	bare := verb{
		parse: func(_ *Step, words []string) error {
			if len(words) > 0 {
				return fmt.Errorf("does not understand %q: nothing follows the place", strings.Join(words, " "))
			}
			return nil
		},
		print: func(Step) string { return "" },
		check: func(Step) error { return nil },
		only:  func(Step) Step { return Step{} },
	}
	ratio := verb{
		form:  "FRACTION",
		parse: one(func(st *Step, word string) error { return assign(&st.Ratio, word, parseNumber) }),
		print: func(st Step) string { return formatNumber(st.Ratio) },
		check: func(st Step) error { return between("the fraction", st.Ratio, 0, 1) },
		only:  func(st Step) Step { return Step{Ratio: st.Ratio} },
	}
	as := func(v verb, name Verb, sc scope) verb {
		v.name, v.scope = name, sc
		return v
	}
	return []verb{
		rateVerb(factor),
		slowVerb(factor),
		as(wait, Delay, ofEndpoints),
		as(ratio, Fail, ofEndpoints),
		as(bare, Hang, ofEndpoints),
		as(bare, Refuse, ofEndpoints),
		as(bare, Heal, ofEndpoints),
		as(bare, Lose, ofZones),
		as(bare, Return, ofZones),
		as(batchVerb(), Rollout, ofZones),
		as(countVerb(), Scale, ofOneZone),
		as(wait, Drain, ofHomeZone),
	}
}

// one reads the only operand of a verb.
func one(parse func(st *Step, word string) error) func(*Step, []string) error {
	return func(st *Step, words []string) error {
		if len(words) != 1 {
			return fmt.Errorf("has %d words after the place: want one", len(words))
		}
		return parse(st, words[0])
	}
}

// rateVerb adds the time in which a factor is reached.
func rateVerb(factor verb) verb {
	v := factor
	v.name, v.scope, v.form = Rate, ofClients, "xFACTOR [over TIME]"
	v.parse = func(st *Step, words []string) error {
		const withOver = 3 // xFACTOR over TIME
		if len(words) == withOver && words[1] == "over" {
			if err := assign(&st.Over, words[2], parseTime); err != nil {
				return err
			}
			words = words[:1]
		}
		return factor.parse(st, words)
	}
	v.print = func(st Step) string {
		if st.Over == 0 {
			return factor.print(st)
		}
		return factor.print(st) + " over " + formatTime(st.Over)
	}
	v.check = func(st Step) error {
		if err := checkTime("the time after over", st.Over); err != nil {
			return err
		}
		return factor.check(st)
	}
	v.only = func(st Step) Step { return Step{Factor: st.Factor, Over: st.Over} }
	return v
}

// slowVerb has no factor of 0: work that takes no time is no work.
func slowVerb(factor verb) verb {
	v := factor
	v.name, v.scope = Slow, ofEndpoints
	v.check = func(st Step) error {
		if st.Factor > 0 && st.Factor <= maxFactor {
			return nil
		}
		return fmt.Errorf("the factor is %s: want more than 0 and at most %d", formatNumber(st.Factor), maxFactor)
	}
	return v
}

// batchVerb reads how many pods a rollout replaces at a time; one when it does not say.
func batchVerb() verb {
	return verb{
		form: "[batch=COUNT]",
		parse: func(st *Step, words []string) error {
			st.Count = 1
			if len(words) == 0 {
				return nil
			}
			return one(func(st *Step, word string) error {
				count, found := strings.CutPrefix(word, "batch=")
				if !found {
					return fmt.Errorf("does not understand %q: want batch=COUNT, as in batch=2", word)
				}
				return assign(&st.Count, count, parseInt)
			})(st, words)
		},
		print: func(st Step) string {
			if st.Count == 1 {
				return ""
			}
			return "batch=" + strconv.Itoa(st.Count)
		},
		check: func(st Step) error { return between("the batch", float64(st.Count), 1, maxEndpoints) },
		only:  func(st Step) Step { return Step{Count: st.Count} },
	}
}

func countVerb() verb {
	return verb{
		form:  "COUNT",
		parse: one(func(st *Step, word string) error { return assign(&st.Count, word, parseInt) }),
		print: func(st Step) string { return strconv.Itoa(st.Count) },
		check: func(st Step) error { return between("the number of pods", float64(st.Count), 0, maxEndpoints) },
		only:  func(st Step) Step { return Step{Count: st.Count} },
	}
}

// parseFactor reads xNUMBER.
func parseFactor(text string) (float64, error) {
	number, found := strings.CutPrefix(text, "x")
	if found {
		if f, err := parseNumber(number); err == nil {
			return f, nil
		}
	}
	return 0, fmt.Errorf("bad factor %q: want x and a number, as in x3 or x0.5", text)
}

func between(what string, f, least, most float64) error {
	if f >= least && f <= most {
		return nil
	}
	return fmt.Errorf("%s is %s: want %s to %s", what, formatNumber(f), formatNumber(least), formatNumber(most))
}

func checkTime(what string, d time.Duration) error {
	if d >= 0 && d <= maxLength {
		return nil
	}
	return fmt.Errorf("%s is %s: want 0s to %s", what, formatTime(d), formatTime(maxLength))
}

// verbNamed finds a verb.
func verbNamed(name Verb) (verb, bool) {
	for _, v := range verbs() {
		if v.name == name {
			return v, true
		}
	}
	return verb{}, false
}

// String gives the step as files have it.
func (st Step) String() string {
	text := formatTime(st.At) + " " + string(st.Verb) + " " + st.Where.String()
	if v, ok := verbNamed(st.Verb); ok {
		if operands := v.print(st); operands != "" {
			text += " " + operands
		}
	}
	return text
}

// parseStep reads the words of a line. The verb is known even when the rest is wrong.
func parseStep(words []string) (Step, error) {
	const least = 3 // TIME VERB PLACE
	if len(words) < least {
		return Step{}, fmt.Errorf("bad step %q: want TIME VERB PLACE, as in 30s slow a x10", strings.Join(words, " "))
	}
	st := Step{Verb: Verb(words[1])}
	v, ok := verbNamed(st.Verb)
	if !ok {
		var names []string
		for _, v := range verbs() {
			names = append(names, string(v.name))
		}
		if near, ok := topology.Nearest(words[1], names); ok {
			return Step{}, fmt.Errorf("unknown verb %q: did you mean %s?", words[1], near)
		}
		return Step{}, fmt.Errorf("unknown verb %q: want one of %s", words[1], strings.Join(names, ", "))
	}
	var err error
	if st.At, err = parseTime(words[0]); err != nil {
		return st, err
	}
	if st.Where, err = parseWhere(words[2]); err != nil {
		return st, err
	}
	if err := v.parse(&st, words[least:]); err != nil {
		form := strings.TrimSpace(string(v.name) + " PLACE " + v.form)
		return st, fmt.Errorf("%w (TIME %s)", err, form)
	}
	return st, nil
}
