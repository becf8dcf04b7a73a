// Package reason makes decisions explainable: a Reason is a code, its numbers and the objects it speaks of.
//
// The code is the metric label and never changes its meaning; String is the one renderer, used by the command line,
// events, pages and tests alike. The package decides nothing.
package reason

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
)

// Code names a kind of reason, in CamelCase. It is stable, and bounded in number: it is used as a metric label.
type Code string

// Value is one number of a reason.
type Value struct {
	Name   string
	Number float64
	Unit   Unit
}

// Unit tells how a Value is printed.
type Unit uint8

// The units.
const (
	Count   Unit = iota // 4
	Ratio               // 0.25 prints as 25 %
	Factor              // 1.4 prints as 1.40
	Seconds             // 1.5 prints as 1.5 s
)

// Reason says why something was decided.
type Reason struct {
	Code    Code
	Values  []Value  // by the names that the code's text uses
	Objects []string // nodes, zones or endpoints, sorted unless the order means something
}

// New makes a Reason without numbers.
func New(code Code, objects ...string) Reason { return Reason{Code: code, Objects: objects} }

// With returns r with one more number.
func (r Reason) With(name string, number float64, unit Unit) Reason {
	values := make([]Value, 0, len(r.Values)+1)
	r.Values = append(append(values, r.Values...), Value{Name: name, Number: number, Unit: unit})
	return r
}

// maxObjects bounds how many objects a text names: an event holds 1,024 characters, and a person reads fewer.
const maxObjects = 5

// String renders the reason as a sentence without a full stop. A code without a text prints itself and its parts, so
// that nothing is lost when a newer writer meets an older reader.
func (r Reason) String() string {
	text, ok := texts()[r.Code]
	if !ok {
		text = string(r.Code) + " {objects}"
	}
	pairs := make([]string, 0, 2*len(r.Values)+6)
	for _, v := range r.Values {
		pairs = append(pairs, "{"+v.Name+"}", v.String())
	}
	pairs = append(pairs, "{objects}", r.objects())
	if n := len(r.Objects); n > 0 { // where their order means something
		pairs = append(pairs, "{first}", r.Objects[0], "{last}", r.Objects[n-1])
	}
	return strings.TrimSpace(strings.NewReplacer(pairs...).Replace(text))
}

// String prints the number in its unit.
func (v Value) String() string {
	switch v.Unit {
	case Ratio:
		return strconv.FormatFloat(v.Number*100, 'f', 0, 64) + " %"
	case Factor:
		return strconv.FormatFloat(v.Number, 'f', 2, 64)
	case Seconds:
		return strconv.FormatFloat(v.Number, 'f', 1, 64) + " s"
	default:
		return strconv.FormatFloat(v.Number, 'f', -1, 64)
	}
}

func (r Reason) objects() string {
	if len(r.Objects) <= maxObjects {
		return strings.Join(r.Objects, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(r.Objects[:maxObjects], ", "), len(r.Objects)-maxObjects)
}

// texts gathers the texts of all codes; each family of codes has its own file.
func texts() map[Code]string {
	all := make(map[Code]string)
	for _, family := range []map[Code]string{planTexts(), overflowTexts(), proxyTexts(), agentTexts()} {
		maps.Copy(all, family)
	}
	return all
}
