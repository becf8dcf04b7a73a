// Package scenarios holds the standard set of scenarios, as files that README.md beside them documents.
//
// It hands out text; package scenario of the simulator reads it.
package scenarios

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed *.txtar
var files embed.FS

// ending is what the names of the files end in.
const ending = ".txtar"

// Names lists the standard set in the order of reports: calm first, then overload, failures, layouts, and what changes
// the service itself.
func Names() []string {
	return []string{
		"steady", "skew", "spike", "brownout", "half-failing", "gray", "zone-loss", "rollout", "uneven", "single", "low-rate",
		"streams", "autoscale", "speeds", "clusters", "retry-storm", "day",
	}
}

// Read gives the text of a scenario of Names.
func Read(name string) ([]byte, error) {
	text, err := files.ReadFile(name + ending)
	if err != nil {
		return nil, fmt.Errorf("no standard scenario %q: want one of %s", name, strings.Join(Names(), ", "))
	}
	return text, nil
}
