package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/weir-lb/weir/internal/core/topology"
)

// The sections of a file.
const (
	clusterSection = "cluster"
	runSection     = "run"
	stepsSection   = "steps"
	explainSection = "explain"
	resultsSection = "results"
)

// parser reads one file and remembers where everything stands.
type parser struct {
	s      *Scenario
	file   string
	rates  []zoneRate
	lines  map[string]int  // of sections, statements and fields, by name
	broken map[string]bool // statements that could not be read
	errs   []*Error

	// The statement that is being read.
	name string
	at   int

	// What is known once the cluster was read.
	endpoints map[group]int // ready at the beginning
	most      map[group]int // at any time
	zones     []topology.Zone
}

type zoneRate struct {
	zone topology.Zone
	rate float64
}

// Parse reads the text of a scenario file: a title, what it is about, and the sections cluster, run, steps, explain and
// results in the format called txtar. test/scenarios/README.md documents it.
//
// Parse and String are inverse but for Step.Line: for every s that Validate finds nothing wrong with, parsing s.String()
// under the name s.Name gives s. Errors: the mistakes of the file, each as an *Error, in the order of lines, joined; at
// most 50, and how many there are more.
func Parse(name string, text []byte) (*Scenario, error) {
	p := read(name, string(text))
	if len(p.errs) == 0 {
		return p.s, nil
	}
	slices.SortStableFunc(p.errs, func(a, b *Error) int { return a.Line - b.Line })
	all := make([]error, 0, min(len(p.errs), maxMistakes+1))
	for i, err := range p.errs {
		if i == maxMistakes {
			all = append(all, &Error{File: name, Message: fmt.Sprintf("there are %d mistakes more: mend these first", len(p.errs)-i)})
			break
		}
		all = append(all, err)
	}
	return nil, errors.Join(all...)
}

// read reads a file, and finds its mistakes.
func read(name, text string) *parser {
	p := &parser{
		s: defaults(), file: name,
		lines: make(map[string]int), broken: make(map[string]bool),
	}
	p.s.Name = strings.TrimSuffix(name[strings.LastIndexAny(name, `/\`)+1:], ".txtar")
	if err := legible(name, text); err != nil {
		p.errs = append(p.errs, err)
		return p
	}
	comment, sections := split(text)
	p.comment(comment)
	for _, sec := range sections {
		p.section(sec)
	}
	p.finish()
	p.validate()
	return p
}

// maxMistakes are told of one file: more are not mended at a time, and a file that is no scenario has one in each line.
const maxMistakes = 50

// legible refuses text that is not UTF-8, or that would tell a terminal to do something.
func legible(file, text string) *Error {
	for i, line := range strings.Split(text, "\n") {
		if !utf8.ValidString(line) {
			return &Error{File: file, Line: i + 1, Message: "the text is not UTF-8: save it as UTF-8"}
		}
		if r, ok := controlIn(line); ok {
			return &Error{File: file, Line: i + 1, Message: fmt.Sprintf("the text has the control character %U: take it out", r)}
		}
	}
	return nil
}

// controlIn finds a character that is neither text nor a tab, nor belongs to the line's end.
func controlIn(line string) (rune, bool) {
	line = strings.TrimSuffix(line, "\r")
	at := strings.IndexFunc(line, func(r rune) bool { return unicode.IsControl(r) && r != '\t' })
	if at < 0 {
		return 0, false
	}
	r, _ := utf8.DecodeRuneInString(line[at:])
	return r, true
}

func (p *parser) comment(lines []string) {
	text := prose(lines)
	title, about, _ := strings.Cut(text, "\n")
	p.s.Title = strings.TrimSpace(title)
	p.s.About = tidy(about)
}

func (p *parser) section(sec section) {
	p.name, p.at = sec.name, sec.line
	if _, ok := p.lines["section "+sec.name]; ok {
		p.refuse("", "is there already, in line %d: make one section of them", p.lines["section "+sec.name])
		return
	}
	p.lines["section "+sec.name] = sec.line
	switch sec.name {
	case clusterSection:
		p.cluster(sec)
	case "world": // its name in the first releases
		p.broken[clusterSection] = true
		p.refuse("", "this section is called cluster now: write -- cluster --")
	case runSection:
		p.each(sec, p.statement)
	case stepsSection:
		p.each(sec, p.step)
	case explainSection:
		p.s.Explain = prose(sec.body)
	case resultsSection:
		p.s.Results = prose(sec.body)
	default:
		p.unknown([]string{clusterSection, runSection, stepsSection, explainSection, resultsSection},
			"is no section: want cluster, run, steps, explain or results")
	}
}

// cluster reads the text form of package topology; an error in it counts lines from the section's first one.
func (p *parser) cluster(sec section) {
	var err error
	if p.s.Snapshot, err = topology.ParseSnapshot(strings.Join(sec.body, "\n")); err == nil {
		return
	}
	if syntax, ok := errors.AsType[*topology.SyntaxError](err); ok {
		p.at += syntax.Line
		err = fmt.Errorf("column %d: %s", syntax.Column, syntax.Message)
	}
	p.refuse("", "%v", err)
}

// each hands the words of every line that has some to read.
func (p *parser) each(sec section, read func(words []string)) {
	for i, line := range sec.body {
		line, _, _ = strings.Cut(line, "#")
		if words := strings.Fields(line); len(words) > 0 {
			p.at = sec.line + 1 + i
			read(words)
		}
	}
}

func (p *parser) statement(words []string) {
	p.name, words = words[0], words[1:]
	all := statements(p.s)
	i := slices.IndexFunc(all, func(st statement) bool { return st.name == p.name })
	if i < 0 {
		var names []string
		for _, st := range all {
			names = append(names, st.name)
		}
		p.unknown(names, "unknown statement: want one of "+strings.Join(names, ", "))
		return
	}
	if first, ok := p.lines[p.name]; !ok {
		p.lines[p.name] = p.at
	} else if all[i].parse == nil {
		p.refuse("", "is there already, in line %d: write one statement", first)
		return
	}
	if all[i].absent {
		all[i].attach()
	}
	switch st := &all[i]; {
	case st.parse != nil:
		st.parse(p, words)
	case st.keys[0].name == "":
		if err := st.keys[0].parse(strings.Join(words, " ")); err != nil {
			p.refuse("", "%v", err)
		}
	default:
		p.keys(st.keys, words)
	}
}

// unknown refuses a name of a section or a statement, and keeps quiet about what follows from the lack of the one that
// was meant. The message is for names that resemble none.
func (p *parser) unknown(names []string, message string) {
	if near, ok := topology.Nearest(p.name, names); ok {
		p.broken[near] = true
		message = "is unknown: did you mean " + near + "?"
	}
	p.refuse("", "%s", message)
}

// meant says which of the known names an unknown one resembles, or else lists them after want.
func meant(name, want string, known []string) string {
	if near, ok := topology.Nearest(name, known); ok {
		return "did you mean " + near + "?"
	}
	return want + " " + strings.Join(known, ", ")
}

// named finds the key of a name.
func named(keys []key, name string) (k *key, known []string) {
	for i := range keys {
		if keys[i].name == name {
			return &keys[i], nil
		}
		known = append(known, keys[i].name)
	}
	return nil, known
}

// keys reads FIELD=VALUEs.
func (p *parser) keys(keys []key, words []string) {
	for _, word := range words {
		name, value, found := strings.Cut(word, "=")
		switch k, known := named(keys, name); {
		case k == nil:
			p.refuse(name, "unknown field of %s: %s", p.name, meant(name, "want", known))
		case !p.note(name):
		case k.flag && found:
			p.refuse(name, "is a word of its own: write it without a value")
		case !k.flag && !found:
			p.refuse(name, "has no value: write %s=VALUE", name)
		default:
			if err := k.parse(value); err != nil {
				p.refuse(name, "%v", err)
			}
		}
	}
}

func (p *parser) step(words []string) {
	p.name = stepsSection
	st, err := parseStep(words)
	if err != nil {
		p.refuse(string(st.Verb), "%v", err)
		return
	}
	st.Line = p.at
	p.s.Steps = append(p.s.Steps, st)
}

// finish puts together what stands on several lines, and sorts what has an order.
func (p *parser) finish() {
	if _, ok := p.lines["section "+clusterSection]; !ok && !p.broken[clusterSection] {
		p.name, p.at = clusterSection, 1
		p.refuse("", "there is no such section: write the line -- cluster --, and below it the service; weir simulate --show steady prints a whole file")
	}
	for _, r := range p.rates {
		if c := p.s.clientsOf(r.zone); c != nil {
			c.Rate = r.rate
			continue
		}
		p.name, p.at = "rate", p.lines["rate."+string(r.zone)]
		if !p.broken["clients"] {
			p.refuse(string(r.zone), "zone %s has a rate but no clients: add it to clients", r.zone)
		}
	}
	slices.SortFunc(p.s.Clients, func(a, b Clients) int { return strings.Compare(string(a.Zone), string(b.Zone)) })
	slices.SortStableFunc(p.s.Steps, func(a, b Step) int { return cmp.Compare(a.At, b.At) })
	if p.lines["stress"] == 0 {
		p.s.Stress = defaultStress(p.s.Length)
	}
}

// note remembers where a field stands; a second one is refused.
func (p *parser) note(field string) bool {
	full := p.name + "." + field
	if line, ok := p.lines[full]; ok {
		p.refuse(field, "is there already, in line %d: remove one", line)
		return false
	}
	p.lines[full] = p.at
	return true
}

// refuse reports a mistake in a field of the statement that is being read.
func (p *parser) refuse(field, format string, args ...any) {
	full := p.name
	if field != "" {
		full += "." + field
	}
	p.broken[p.name] = true
	p.errs = append(p.errs, &Error{File: p.file, Line: p.at, Field: full, Message: fmt.Sprintf(format, args...)})
}

// lineOf finds the line of a field, or else of its statement, or else of its section; the first one is that of the title,
// and of what is not there at all.
func (p *parser) lineOf(field string) int {
	if field == "title" {
		return 1
	}
	name, _, _ := strings.Cut(field, ".")
	for _, at := range []string{field, name, "section " + name, "section " + runSection} {
		if line, ok := p.lines[at]; ok {
			return line
		}
	}
	return 1
}

// String gives the text that Parse reads. What has its default is not written; comments are lost.
func (s *Scenario) String() string {
	var b strings.Builder
	b.WriteString(s.Title + "\n")
	if about := tidy(s.About); about != "" {
		b.WriteString("\n" + about)
	}
	steps := make([]string, 0, len(s.Steps))
	for _, st := range s.Steps {
		steps = append(steps, st.String())
	}
	for _, sec := range []struct{ name, body string }{
		{clusterSection, s.Snapshot.String()},
		{runSection, strings.Join(s.printRun(), "\n")},
		{stepsSection, strings.Join(steps, "\n")},
		{explainSection, s.Explain},
		{resultsSection, s.Results},
	} {
		if body := tidy(sec.body); body != "" {
			b.WriteString("-- " + sec.name + " --\n" + body)
		}
	}
	return b.String()
}

// printRun writes the statements that differ from the default; a part that is there is written even when it does not.
func (s *Scenario) printRun() []string {
	usual := defaults()
	usual.Stress = defaultStress(s.Length)
	all := statements(usual)
	var lines []string
	for i, st := range statements(s) {
		if st.print != nil {
			for _, line := range st.print() {
				lines = append(lines, st.name+" "+line)
			}
			continue
		}
		words := []string{st.name}
		for j, k := range st.keys {
			switch text := k.print(); {
			case st.absent || text == all[i].keys[j].print():
			case k.flag:
				words = append(words, k.name)
			default:
				words = append(words, strings.TrimPrefix(k.name+"="+text, "="))
			}
		}
		if len(words) > 1 || st.attach != nil && !st.absent {
			lines = append(lines, strings.Join(words, " "))
		}
	}
	return lines
}
