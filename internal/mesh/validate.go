package mesh

import (
	"slices"

	"github.com/weir-lb/weir/internal/core/policy"
)

// validate has the values checked that make sense as words, and tells in the document's spelling what is wrong with them.
// What is wrong with the clients, which all entries share, is told once.
func (e *entry) validate() {
	for _, f := range e.rule.Validate() {
		found := Finding{Path: translate(e.spelled, f.Path), Message: f.Message, Refused: f.Severity == policy.Refused}
		if !slices.Contains(e.findings, found) {
			e.findings = append(e.findings, found)
		}
	}
}
