package agent

import (
	"fmt"
	"strings"

	"github.com/weir-lb/weir/internal/core/topology"
)

// UnknownNodeError says that a cluster does not have the node that an agent is to serve.
type UnknownNodeError struct {
	Node string
	Near []string // nodes that may have been meant, the closest first
}

// Error names the node and what it may have been meant to be.
func (e *UnknownNodeError) Error() string {
	if len(e.Near) == 0 {
		return fmt.Sprintf("no node is called %q: there are no nodes at all; give the zone instead", e.Node)
	}
	return fmt.Sprintf("no node is called %q: did you mean %s?", e.Node, strings.Join(e.Near, ", "))
}

// knows refuses a node that the snapshot does not have and whose zone is not given.
func knows(s *topology.Snapshot, c *Config) error {
	if c.Zone != "" || s.Node(c.Node) != nil {
		return nil
	}
	return &UnknownNodeError{Node: c.Node, Near: s.NodesNear(c.Node)}
}
