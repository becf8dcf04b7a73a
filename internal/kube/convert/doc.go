// Package convert turns Kubernetes objects into weir's nouns.
//
// Its functions are total: any object gives a value. What is wrong with an object is a reason.Finding; the part that is wrong
// is left out or replaced by its default, and the rest goes on. The package reads no file and asks no API server.
package convert

import (
	"cmp"
	"fmt"

	"github.com/weir-lb/weir/internal/core/reason"
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

// problems gathers what is wrong with one object.
type problems struct {
	object reason.Object
	list   []reason.Finding
}

func (p *problems) add(field, format string, args ...any) {
	p.list = append(p.list, reason.Finding{
		Object: p.object, Field: field, Reason: reason.Invalid, Message: fmt.Sprintf(format, args...),
	})
}

// refuse reports a setting that is not followed, and what counts instead.
func (p *problems) refuse(field, instead, format string, args ...any) {
	p.add(field, format, args...)
	last := &p.list[len(p.list)-1]
	last.Severity, last.Instead = reason.Refused, instead
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
