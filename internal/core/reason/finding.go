package reason

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// Severity tells what becomes of what an author wrote.
type Severity uint8

// The severities.
const (
	Warning Severity = iota // it holds; something in it has no effect, or not the one it seems to have
	Refused                 // it does not hold; a caller that knows an earlier good value keeps that
)

// String gives "warning" or "refused".
func (s Severity) String() string {
	if s == Refused {
		return "refused"
	}
	return "warning"
}

// Object names an object, or a document of a mesh. The zero value names none.
type Object struct{ Kind, Namespace, Name string }

// String gives "Service shop/web" or "Node n1".
func (o Object) String() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// Position is a place in a file. The zero value is none.
type Position struct {
	File         string
	Line, Column int // from 1; 0: not known
}

// String gives "file:line", or as much of it as is known.
func (p Position) String() string {
	if p.Line == 0 {
		return p.File
	}
	return p.File + ":" + strconv.Itoa(p.Line)
}

// The codes of findings: why what was written is wrong, or has no effect.
const (
	Invalid    Code = "Invalid"    // no value of its field
	Unreadable Code = "Unreadable" // a text that does not parse, or a file that is too large
	Unknown    Code = "Unknown"    // a field, kind or type that weir does not have
	Repeated   Code = "Repeated"   // there is another of the name
	Unused     Code = "Unused"     // other fields, or other policies, leave it without effect
	Overridden Code = "Overridden" // another policy sets the field otherwise
	NotFound   Code = "NotFound"   // it names what is not there
	NotWatched Code = "NotWatched" // the agent does not follow the objects that it is about
	Differs    Code = "Differs"    // it means something else in the form that it is converted to
)

// Finding is what is wrong with something that an author wrote: a file, an object, a policy. It is the same value from the
// position in a file to the condition of a status. As an error it says that a file cannot be read.
//
//nolint:errname // it is an error only where a file cannot be read
type Finding struct {
	Position        // of the field, where it was read from a file
	Object   Object // zero: the file is broken before any object is known
	Entry    int    // which of the destinations of a policy it is about, from 0
	Field    string // path within the object, as in spec.ports[0].port; empty: the object, or the file, as a whole
	Severity Severity
	Reason   Code
	Message  string // what is wrong
	Mend     string // how to mend it, where Message does not say that
	Instead  string // what counts in the place of what is refused
}

// IsRefused tells whether what was written does not hold.
func (f Finding) IsRefused() bool { return f.Severity == Refused }

// Author names what was written, for people: the object, and where it stands.
func (f Finding) Author() string {
	if f.File == "" {
		return f.Object.String()
	}
	return f.Object.String() + " (" + f.Position.String() + ")"
}

// Text gives the finding without its object and position, for texts that name them already.
func (f Finding) Text() string {
	text := f.what()
	if f.Field != "" {
		text = f.Field + ": " + text
	}
	if f.Instead != "" {
		text += ": " + f.Instead
	}
	return text
}

// what is the message, with how to mend it.
func (f *Finding) what() string {
	if f.Mend == "" {
		return f.Message
	}
	return f.Message + ": " + f.Mend
}

// String gives the finding in a line.
func (f Finding) String() string {
	text := f.Text()
	if f.Object != (Object{}) {
		text = f.Object.String() + ": " + text
	}
	if f.File != "" {
		text = f.Position.String() + ": " + text
	}
	return text
}

// Error is String.
func (f *Finding) Error() string { return f.String() }

// MarshalJSON gives the finding for programs. The message is complete, mend its last part if that is known.
func (f Finding) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		File     string `json:"file,omitempty"`
		Line     int    `json:"line,omitempty"`
		Column   int    `json:"column,omitempty"`
		Document string `json:"document,omitempty"` // kind and name
		Field    string `json:"field,omitempty"`
		Severity string `json:"severity"`
		Reason   Code   `json:"reason,omitempty"`
		Message  string `json:"message"`
		Mend     string `json:"mend,omitempty"`
	}{
		f.File, f.Line, f.Column, strings.TrimSpace(f.Object.String()), f.Field, f.Severity.String(), f.Reason, f.what(), f.Mend,
	})
}

// AnyRefused tells whether a finding keeps what it is about from having an effect.
func AnyRefused(findings []Finding) bool {
	return slices.ContainsFunc(findings, Finding.IsRefused)
}
