package mesh

import "slices"

// validate has the values checked that make sense as words, and tells in the document's spelling what is wrong with them.
// What is wrong with the clients, which all entries share, is told once.
func (e *entry) validate() {
	for _, f := range e.rule.Validate() {
		f.Field = translate(e.spelled, f.Field)
		if !slices.Contains(e.findings, f) {
			e.findings = append(e.findings, f)
		}
	}
}
