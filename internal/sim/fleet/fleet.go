// Package fleet plays the part of Kubernetes in a simulation: which pods there are, when they become ready and go, and
// what the API says of them.
//
// It is told the time and how busy pods are, and answers with changes; it knows no request.
package fleet

import (
	"net/netip"
	"time"

	"github.com/weir-lb/weir/internal/core/topology"
)

// Phase is where a pod is in its life.
type Phase uint8

// The phases.
const (
	Pending     Phase = iota // no node has room for it, or it is starting
	Ready                    // serves, and the API says so
	Terminating              // serves what it has and what still comes, and the API says that it goes
	Gone                     // refuses
)

// Pod is one pod of the service. Its ID is its index in Fleet.Pods, for ever.
type Pod struct {
	ID      int
	Addr    netip.Addr
	Zone    topology.Zone
	Cluster string
	Node    string
	Place   int // its number in its zone, from 1: what scenario.Where counts by; a pod that replaces another takes its place
	Phase   Phase
	Since   time.Duration // when the phase began
	ReadyAt time.Duration // when it became ready; meaningful from then on. Pods of the world are ready, and warm, from the start
	Cold    bool          // it started during the run: it is slow at first
}
