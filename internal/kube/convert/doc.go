// Package convert turns Kubernetes objects into weir's nouns.
//
// Its functions are total: any object gives a value. What is wrong with an object is a Problem; the part that is wrong
// is left out or replaced by its default, and the rest goes on. The package reads no file and asks no API server.
package convert

import (
	"cmp"
	"fmt"

	"github.com/weir-lb/weir/internal/core/topology"
)

// Options say how Services are read. The zero value asks for the modes that weir's own label names, and Balanced
// elsewhere.
type Options struct {
	// ManageAll lets the native annotations and spec.trafficDistribution choose the mode where weir's label is missing.
	ManageAll bool
	// Default is the mode of a Service that does not choose; unset: Balanced.
	Default topology.Mode
	// Strategies are the names that weir.dev/strategy may have; nil: any.
	Strategies []string
	// Gates switch native modes off.
	Gates Gates
}

func (o Options) defaultMode() topology.Mode { return cmp.Or(o.Default, topology.ModeBalanced) }

// Ref names an object.
type Ref struct{ Kind, Namespace, Name string }

// String gives "Service shop/web" or "Node n1".
func (r Ref) String() string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}
	return r.Kind + " " + r.Namespace + "/" + r.Name
}

// Problem is something wrong with an object that does not keep the rest from working.
type Problem struct {
	Object  Ref
	Field   string // path within the object, as in spec.ports[0].port; may be empty
	Message string // what is wrong, and what was done about it where Instead does not say that
	Source  string // file:line where it stands; empty when the object did not come from a file
	// Refused tells that this is a setting of the user's which is not followed. A caller that knows an earlier good value of it keeps
	// that instead of the default.
	Refused bool
	// Instead says what counts in the place of a setting that is refused, as in "the default is taken".
	Instead string
}

// String gives the problem in a line.
func (p Problem) String() string {
	text := p.Object.String() + ": " + p.Text()
	if p.Source != "" {
		text = p.Source + ": " + text
	}
	return text
}

// Text gives the problem without its object and source, for texts that name them already.
func (p Problem) Text() string {
	text := p.Message
	if p.Field != "" {
		text = p.Field + ": " + text
	}
	if p.Instead != "" {
		text += ": " + p.Instead
	}
	return text
}

// problems gathers what is wrong with one object.
type problems struct {
	object Ref
	list   []Problem
}

func (p *problems) add(field, format string, args ...any) {
	p.list = append(p.list, Problem{Object: p.object, Field: field, Message: fmt.Sprintf(format, args...)})
}

// refuse reports a setting that is not followed, and what counts instead.
func (p *problems) refuse(field, instead, format string, args ...any) {
	p.add(field, format, args...)
	last := &p.list[len(p.list)-1]
	last.Refused, last.Instead = true, instead
}

// What counts in the place of a setting that is refused.
const (
	theDefault = "the default is taken"
	leftOut    = "left out"
)

// at gives the path of a key that holds dots, as in metadata.labels[weir.dev/distribution].
func at(path, key string) string { return path + "[" + key + "]" }

// index gives the path of an element of a list.
func index(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

// deref gives what p points at, or the value that nil stands for.
func deref[T any](p *T, missing T) T {
	if p == nil {
		return missing
	}
	return *p
}
