package scenario

import (
	"strings"
)

// String gives the text that Parse reads. What has its default is not written; comments are lost.
func (s *Scenario) String() string {
	var b strings.Builder
	b.WriteString(s.Title + "\n")
	if about := tidy(s.About); about != "" {
		b.WriteString("\n" + about)
	}
	var run []string
	for _, st := range statements() {
		for _, words := range st.print(s) {
			run = append(run, strings.TrimSuffix(st.name+" "+words, " "))
		}
	}
	steps := make([]string, 0, len(s.Steps))
	for _, st := range s.Steps {
		steps = append(steps, st.String())
	}
	for _, sec := range []struct{ name, body string }{
		{worldSection, s.World.String()},
		{runSection, strings.Join(run, "\n")},
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

// Paragraphs gives About as it is to be set anew: a line for each paragraph.
func (s *Scenario) Paragraphs() []string {
	var paragraphs []string
	for text := range strings.SplitSeq(s.About, "\n\n") {
		if words := strings.Fields(text); len(words) > 0 {
			paragraphs = append(paragraphs, strings.Join(words, " "))
		}
	}
	return paragraphs
}
