package scenario

import (
	"fmt"
	"strings"
)

// Error is one thing that is wrong with a scenario.
type Error struct {
	File    string // as it was given to Parse; the scenario's name when it was made in code
	Line    int    // in the file, from 1; 0 when it was made in code
	Field   string // STATEMENT or STATEMENT.FIELD; steps.VERB in a step
	Message string // what is wrong, and how to mend it
}

// Error gives FILE:LINE: FIELD: MESSAGE, without what is not known.
func (e *Error) Error() string {
	place := e.File
	if e.Line > 0 {
		place += fmt.Sprintf(":%d", e.Line)
	}
	var parts []string
	for _, part := range []string{place, e.Field, e.Message} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ": ")
}
