package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-lb/weir/internal/core/topology"
)

// UnknownNodeError says that a cluster does not have the node that an agent is to serve.
type UnknownNodeError struct {
	Node string
	Near []string // names that are close to it, the closest first; all nodes when there are few
}

// Error names the node and what it may have been meant to be.
func (e *UnknownNodeError) Error() string {
	if len(e.Near) == 0 {
		return fmt.Sprintf("no node is called %q: there are no nodes at all; give the zone instead", e.Node)
	}
	return fmt.Sprintf("no node is called %q: did you mean %s?", e.Node, strings.Join(e.Near, ", "))
}

// knows refuses a node that the snapshot does not have and whose zone nobody gave.
func knows(s *topology.Snapshot, c *Config) error {
	if c.Zone != "" || s.Node(c.Node) != nil {
		return nil
	}
	return &UnknownNodeError{Node: c.Node, Near: near(c.Node, s.Nodes)}
}

// maxNear bounds how many names an error lists: what fits a line.
const maxNear = 5

// near lists the nodes whose names are closest to name.
func near(name string, nodes []topology.Node) []string {
	names := make([]string, 0, len(nodes))
	distance := make(map[string]int, len(nodes))
	for i := range nodes {
		names = append(names, nodes[i].Name)
		distance[nodes[i].Name] = editDistance(name, nodes[i].Name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(distance[a], distance[b]), strings.Compare(a, b))
	})
	return names[:min(len(names), maxNear)]
}

// editDistance counts the bytes to insert, delete or replace to turn a into b (Levenshtein).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			substitute := diagonal
			if a[i] != b[j] {
				substitute++
			}
			diagonal = row[j+1]
			row[j+1] = min(substitute, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
