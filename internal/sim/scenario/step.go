package scenario

import (
	"fmt"
	"slices"
	"strings"
	"time"
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
	scope scope
	form  string // of the operands, for people
	// operand is the value after the place; nil: there is none. Of a rate, over follows.
	operand func(st *Step) key
}

// verbs lists all of them in the order of the constants.
func verbs() []verb {
	wait := func(st *Step) key { return at("the time", &st.Time, duration(0, maxLength)) }
	return []verb{
		{Rate, ofClients, "xFACTOR [over TIME]", func(st *Step) key {
			return at("the factor", &st.Factor, factor(number(0, maxFactor)))
		}},
		{Slow, ofEndpoints, "xFACTOR", func(st *Step) key { // work that takes no time is no work
			return at("the factor", &st.Factor, factor(above(0, maxFactor)))
		}},
		{Delay, ofEndpoints, "TIME", wait},
		{Fail, ofEndpoints, "FRACTION", func(st *Step) key { return at("the fraction", &st.Ratio, number(0, 1)) }},
		{Hang, ofEndpoints, "", nil},
		{Refuse, ofEndpoints, "", nil},
		{Heal, ofEndpoints, "", nil},
		{Lose, ofZones, "", nil},
		{Return, ofZones, "", nil},
		{Rollout, ofZones, "[batch=COUNT]", func(st *Step) key { return at("the batch", &st.Count, batch()) }},
		{Scale, ofOneZone, "COUNT", func(st *Step) key { return at("the number of pods", &st.Count, whole(0, maxEndpoints)) }},
		{Drain, ofHomeZone, "TIME", wait},
	}
}

// batch is how many pods a rollout replaces at a time; one when it does not say.
func batch() kind[int] {
	k := whole(1, maxEndpoints)
	of := k
	k.parse = func(text string) (int, error) {
		if text == "" {
			return 1, nil
		}
		count, found := strings.CutPrefix(text, "batch=")
		if !found {
			return 0, fmt.Errorf("does not understand %q: want batch=COUNT, as in batch=2", text)
		}
		return of.parse(count)
	}
	k.format = func(n int) string {
		if n == 1 {
			return ""
		}
		return "batch=" + of.format(n)
	}
	return k
}

// parse reads the words after the place.
func (v *verb) parse(st *Step, words []string) error {
	if v.operand == nil {
		if len(words) > 0 {
			return fmt.Errorf("does not understand %q: nothing follows the place", strings.Join(words, " "))
		}
		return nil
	}
	const withOver = 3 // xFACTOR over TIME
	if v.name == Rate && len(words) == withOver && words[1] == "over" {
		if err := over(st).parse(words[2]); err != nil {
			return err
		}
		words = words[:1]
	}
	if len(words) == 0 && strings.HasPrefix(v.form, "[") {
		words = []string{""}
	}
	if len(words) != 1 {
		return fmt.Errorf("has %d words after the place: want one", len(words))
	}
	return v.operand(st).parse(words[0])
}

// over is the time in which a rate is reached.
func over(st *Step) key { return at("the time after over", &st.Over, duration(0, maxLength)) }

// check refuses operands that make no sense.
func (v *verb) check(st *Step) error {
	keys := []key{over(st)}
	if v.operand != nil {
		keys = append(keys, v.operand(st))
	}
	for _, k := range keys {
		if err := k.check(); err != nil {
			return fmt.Errorf("%s %w", k.name, err)
		}
	}
	return nil
}

// print gives the words after the place.
func (v *verb) print(st Step) string {
	switch {
	case v.operand == nil:
		return ""
	case st.Over != 0:
		return v.operand(&st).print() + " over " + formatTime(st.Over)
	default:
		return v.operand(&st).print()
	}
}

// verbNamed finds a verb.
func verbNamed(name Verb) (verb, bool) {
	all := verbs()
	i := slices.IndexFunc(all, func(v verb) bool { return v.name == name })
	if i < 0 {
		return verb{}, false
	}
	return all[i], true
}

// String gives the step as files have it.
func (st Step) String() string {
	text := formatTime(st.At) + " " + string(st.Verb) + " " + st.Where.String()
	if v, ok := verbNamed(st.Verb); ok {
		text += " " + v.print(st)
	}
	return strings.TrimSuffix(text, " ")
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
		return Step{}, fmt.Errorf("unknown verb %q: %s", words[1], meant(words[1], "want one of", names))
	}
	var err error
	if st.At, err = parseTime(words[0]); err != nil {
		return st, err
	}
	if st.Where, err = parseWhere(words[2]); err != nil {
		return st, err
	}
	if err := v.parse(&st, words[least:]); err != nil {
		return st, fmt.Errorf("%w (TIME %s)", err, strings.TrimSpace(string(v.name)+" PLACE "+v.form))
	}
	return st, nil
}

// within refuses a step that is not in the run.
func (st *Step) within(length time.Duration) error {
	if st.At >= 0 && st.At < length {
		return nil
	}
	return fmt.Errorf("at %s is not within the run of %s: make the run longer, or the step earlier", formatTime(st.At), formatTime(length))
}
