// Package strategy lists the strategies that the simulator compares: weir's own, and those of others, each
// written from its documentation.
//
// A strategy is data: hints, an overflow strategy for each client and a way to choose endpoints. All of them run in
// the same pool, so that they differ in what they decide and in nothing else.
package strategy

import (
	"time"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/topology"
)

// Strategy is a way to distribute requests over endpoints.
type Strategy struct {
	Name   string // as flags have it: weir, hazl, static-same-zone, …
	Title  string // as tables have it
	Source string // what it was written from
	// Mode is the service's distribution mode, by which the plan hints.
	Mode topology.Mode
	// KeepsHome: clients use what hints give them and nothing else, as kube-proxy does. Otherwise home is the
	// endpoints in the client's own zone.
	KeepsHome bool
	// Strategy makes the strategy of one client; called once for each.
	New  func(Client) overflow.Strategy
	Pool pick.Config // how endpoints are chosen and ejected
	// Blind: clients decide nothing by how requests fare. Their pools need no ticks, which are most of the work where many
	// clients send little.
	Blind bool
	// Reports: endpoints report their utilisation with answers, as ORCA has it; see Client.Reports.
	Reports bool
	// Omniscient: the simulation itself sends requests, by the state of all endpoints and the demand of all clients. That is a
	// limit and no way to balance.
	Omniscient bool
	// Settings are what policies say of all clients; nil: there are no policies. Only their locality counts: Pool has the
	// rest.
	Settings *policy.Settings
	Drains   bool // clients follow a drain, as they do weir's annotation; others have no such thing
	// Checks is how long active health checks take to notice an endpoint that hangs, refuses or is lost, and to notice
	// that it is back; 0: there are none.
	Checks time.Duration
	// Reconnects is to how many other endpoints a client's balancer goes for a request when connections are refused: nothing
	// has been sent then, and no request is sent twice. What is reset or not answered is none of its business.
	Reconnects int
}

// Client is what a strategy may know of its client beside what it sees.
type Client struct {
	Zone topology.Zone
	// Clients is how many clients each zone has, sorted by zone: what a control plane tells Envoy of its own cluster.
	Clients []ZoneCount
	// Reports gives what an endpoint reported last, by its index in overflow.Layout; false: nothing. Nil: there are no reports.
	Reports func(endpoint int) (Report, bool)
}

// ZoneCount is a number of clients in a zone.
type ZoneCount struct {
	Zone  topology.Zone
	Count int
}
