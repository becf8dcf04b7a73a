package agent

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/explain"
)

// state is what runs at one moment, as others may see it. It is immutable; only the pools in it live on.
type state struct {
	world    *world
	pools    []livePool              // sorted by key
	open     map[netip.AddrPort]bool // the addresses that are listened on
	problems []Problem               // of the world and of failing addresses
}

// livePool is a pool in a state.
type livePool struct {
	wanted wantedPool
	pool   *pick.Pool
}

// publish makes what runs visible and tells the log which problems are new and which are over.
func (r *running) publish() {
	s := &state{world: r.world, open: make(map[netip.AddrPort]bool, len(r.listeners))}
	s.pools = make([]livePool, 0, len(r.order))
	for _, p := range r.order {
		s.pools = append(s.pools, livePool{wanted: p.wanted, pool: p.pool})
	}
	for a := range r.listeners {
		s.open[a] = true
	}
	s.problems = slices.Clone(r.world.problems)
	for _, a := range slices.SortedFunc(maps.Keys(r.failing), netip.AddrPort.Compare) {
		s.problems = append(s.problems, r.failing[a].problem())
	}
	r.report(s.problems)
	r.agent.state.Store(s)
}

// report logs each problem once when it appears and once when it is over.
func (r *running) report(problems []Problem) {
	now := make(map[string]bool, len(problems))
	for _, p := range problems {
		id := p.identity()
		now[id] = true
		if !r.reported[id] {
			r.agent.logger.Log(context.Background(), p.level(), "problem", "service", p.Service, "code", p.Reason.Code,
				"reason", p.Reason.String())
		}
	}
	for id := range r.reported {
		if !now[id] {
			r.agent.logger.Info("problem is over", "problem", id)
		}
	}
	r.reported = now
}

// level is Info for what every cluster has and no proxy for TCP on cluster IPs serves, Warn for what somebody should mend.
func (p *Problem) level() slog.Level {
	switch p.Reason.Code {
	case reason.NoClusterIP, reason.OtherProxy, reason.ProtocolNotServed:
		return slog.LevelInfo
	default:
		return slog.LevelWarn
	}
}

// identity tells problems apart, whatever their numbers.
func (p *Problem) identity() string {
	return p.Service + " " + string(p.Reason.Code) + " " + strings.Join(p.Reason.Objects, " ")
}

// Status is what an agent serves, for people and programs. Its JSON names are promised (docs/guide/agent.md).
type Status struct {
	Node     string          `json:"node"`
	Zone     topology.Zone   `json:"zone"`
	Services []ServiceStatus `json:"services"` // sorted by name; those without a listener are missing
	Problems []Problem       `json:"problems"`
}

// ServiceStatus is one service that the agent serves.
type ServiceStatus struct {
	Service  string        `json:"service"` // namespace/name
	Mode     topology.Mode `json:"mode"`
	Strategy string        `json:"strategy"`
	Ports    []PortStatus  `json:"ports"` // by port and family
}

// PortStatus is one port of a service in one address family.
type PortStatus struct {
	Port      uint16          `json:"port"`
	Name      string          `json:"name,omitempty"`
	Protocol  string          `json:"protocol"` // as the proxy understands it
	Family    string          `json:"family"`
	Addresses []AddressStatus `json:"addresses"`
	// Chosen are the endpoints that policies and hints give the node: those that a kube-proxy there would use. Sorted.
	Chosen    []netip.AddrPort `json:"chosen"`
	Home      int              `json:"home"`      // how many of them requests go to while these cope
	Endpoints int              `json:"endpoints"` // how many there are with those to spill to
	Reason    string           `json:"reason"`    // why these are chosen
	// HomeReason says why requests go to others than the chosen ones while these cope; empty: they do not.
	HomeReason string        `json:"homeReason,omitempty"`
	Policy     PortPolicy    `json:"policy"`
	Classes    []ClassStatus `json:"classes,omitempty"` // of clients for which other settings hold
}

// PortPolicy is what holds for a port's requests, and which policy says so.
type PortPolicy struct {
	Algorithm string          `json:"algorithm"`
	Overflow  string          `json:"overflow"`         // one of the strategies; Disabled: only failing health moves traffic
	Fields    []explain.Field `json:"fields,omitempty"` // that a policy has set
}

// ClassStatus is a class of clients on the node that have settings of their own.
type ClassStatus struct {
	Class     string       `json:"class"`
	Clients   []netip.Addr `json:"clients"` // sorted
	Home      int          `json:"home"`
	Endpoints int          `json:"endpoints"`
	Policy    PortPolicy   `json:"policy"`
}

// AddressStatus is one address of a port.
type AddressStatus struct {
	Address netip.AddrPort `json:"address"`
	Open    bool           `json:"open"`
}

// Status tells what the agent serves now; before Ready it names only the node.
func (a *Agent) Status() Status {
	s := a.state.Load()
	if s == nil {
		return Status{Node: a.config.Node, Zone: a.config.Zone}
	}
	return a.config.status(s)
}

// Preview tells what an agent would serve of a snapshot under some policies, without opening anything; nil: none.
func Preview(config Config, s *topology.Snapshot, policies *policy.Set) (Status, error) {
	if err := config.Validate(); err != nil {
		return Status{}, err
	}
	config = config.withDefaults()
	if err := knows(s, &config); err != nil {
		return Status{}, err
	}
	p := planner{config: config}
	w := p.next(s, policies)
	preview := &state{world: w, problems: w.problems}
	for _, wanted := range w.pools {
		preview.pools = append(preview.pools, livePool{wanted: wanted})
	}
	return config.status(preview), nil
}

func (c *Config) status(s *state) Status {
	status := Status{
		Node: s.world.client.Node, Zone: s.world.client.Zone, Problems: s.problems, Services: []ServiceStatus{},
	}
	if status.Problems == nil {
		status.Problems = []Problem{} // an empty list in JSON, not null
	}
	for i := range s.pools {
		w := &s.pools[i].wanted
		if w.key.class != "" {
			continue // its base tells of it
		}
		name := w.key.service.String()
		if n := len(status.Services); n == 0 || status.Services[n-1].Service != name {
			status.Services = append(status.Services, ServiceStatus{
				Service:  name,
				Mode:     w.mode,
				Strategy: cmp.Or(w.spilling.strategy, c.Strategy),
			})
		}
		last := &status.Services[len(status.Services)-1]
		port := portStatus(w, s.open)
		port.Policy = c.policyStatus(w)
		for j := i + 1; j < len(s.pools) && s.pools[j].wanted.key.base() == w.key; j++ {
			other := &s.pools[j].wanted
			port.Classes = append(port.Classes, ClassStatus{
				Class: other.key.class, Clients: other.clients, Home: homeCount(other), Endpoints: len(other.targets),
				Policy: c.policyStatus(other),
			})
		}
		last.Ports = append(last.Ports, port)
	}
	return status
}

// policyStatus shows what holds for a pool.
func (c *Config) policyStatus(w *wantedPool) PortPolicy {
	return PortPolicy{
		Algorithm: string(w.tuning.Algorithm),
		Overflow:  cmp.Or(w.spilling.strategy, c.Strategy),
		Fields:    explain.Fields(&w.policy),
	}
}

// homeCount tells how many endpoints requests go to while these cope.
func homeCount(w *wantedPool) int {
	n := 0
	for i := range w.targets {
		if w.targets[i].Home && !w.targets[i].Unready {
			n++
		}
	}
	return n
}

func portStatus(w *wantedPool, open map[netip.AddrPort]bool) PortStatus {
	p := PortStatus{
		Port:      w.port.Port,
		Name:      w.port.Name,
		Protocol:  protocolOf(w).String(),
		Family:    w.key.family.String(),
		Chosen:    append([]netip.AddrPort{}, w.chosen...), // an empty list in JSON, not null
		Home:      homeCount(w),
		Endpoints: len(w.targets),
		Reason:    w.choice.String(),
	}
	if w.home.Code != "" {
		p.HomeReason = w.home.String()
	}
	for _, a := range w.addresses {
		p.Addresses = append(p.Addresses, AddressStatus{Address: a, Open: open[a]})
	}
	return p
}
