package agent

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/route"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/explain"
)

// Pages gives the agent's read-only pages by pattern, for an admin server to mount. Their JSON names are promised
// (docs/json.md).
func (a *Agent) Pages() map[string]http.Handler {
	return map[string]http.Handler{
		"/services":                 a.page(func() any { return a.Status() }),
		"/policies":                 a.page(func() any { return a.plane.Read().policyPage(a.desired.Load().rules()) }),
		"/plans":                    a.page(func() any { return a.desired.Load().planPage() }),
		"/pools":                    a.page(func() any { return a.Pools() }),
		"/pools/{namespace}/{name}": http.HandlerFunc(a.poolsOf),
	}
}

// page answers with what answer gives, as JSON. Nothing is known before the first snapshot.
func (a *Agent) page(answer func() any) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if a.plane.Read() == nil {
			http.Error(w, "no snapshot is served yet", http.StatusServiceUnavailable)
			return
		}
		a.write(w, answer())
	})
}

func (a *Agent) write(w http.ResponseWriter, answer any) {
	w.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(answer); err != nil {
		a.logger.Debug("an admin page was not written to its end", "error", err)
	}
}

// planPage shows all plans, as weir explain -o json does.
func (d *desired) planPage() []explain.Plan {
	all := make([]explain.Plan, 0, len(d.services))
	for _, p := range d.plans() {
		all = append(all, explain.View(p, &d.survey))
	}
	return all
}

// PoolStatus is a live pool, for people and programs. Its JSON names are promised (docs/json.md).
type PoolStatus struct {
	Service    string           `json:"service"` // namespace/name
	Port       uint16           `json:"port"`
	Family     string           `json:"family"`
	Protocol   string           `json:"protocol,omitempty"` // UDP; empty: TCP
	ClientZone topology.Zone    `json:"clientZone"`
	Class      string           `json:"class,omitempty"` // of clients that policies tell apart; empty: all others
	Algorithm  string           `json:"algorithm"`
	State      string           `json:"state"`
	Reason     reason.Reason    `json:"reason"`         // of the last change of state
	Since      float64          `json:"sinceSeconds"`   // how long ago that was
	Baseline   float64          `json:"baselineMillis"` // the learned normal latency; 0: not known yet
	Shed       float64          `json:"shed"`           // share of requests that is rejected
	Groups     []GroupStatus    `json:"groups"`         // home first, then by cost
	Endpoints  []EndpointStatus `json:"endpoints"`
}

// GroupStatus is a group of endpoints that gets its share as one.
type GroupStatus struct {
	Zone      topology.Zone `json:"zone"` // of home: the client's
	Cluster   string        `json:"cluster,omitempty"`
	Home      bool          `json:"home"`
	Cost      topology.Cost `json:"cost"`
	Share     float64       `json:"share"`            // of requests, as decided
	Slowdown  float64       `json:"slowdown"`         // recent latency over normal; 0: not known
	Delivered float64       `json:"delivered"`        // recent share of requests that was answered well
	Allowed   float64       `json:"allowedPerSecond"` // requests the group is allowed
	Demand    float64       `json:"demandPerSecond"`  // requests that want to go there
	Endpoints int           `json:"endpoints"`
	Usable    int           `json:"usable"`
	Drained   bool          `json:"drained"`
	Connect   float64       `json:"connectMillis"` // how long connecting takes; 0: not known
}

// EndpointStatus is one endpoint of a pool.
type EndpointStatus struct {
	Address   string        `json:"address"`
	Zone      topology.Zone `json:"zone"`
	Cluster   string        `json:"cluster,omitempty"`
	Home      bool          `json:"home"`
	Cost      topology.Cost `json:"cost"`
	InFlight  int64         `json:"inFlight"`
	Slowdown  float64       `json:"slowdown"`
	Latency   float64       `json:"latencyMillis"`       // recent mean of good answers; 0: not known
	Failures  float64       `json:"failureRatio"`        // recent part of answers that were failures
	Out       bool          `json:"out"`                 // ejected because it kept failing
	OutFor    float64       `json:"outSeconds,omitzero"` // how much longer
	Ejections int64         `json:"ejections"`           // how often it was ejected
	Drained   bool          `json:"drained"`
}

// Pools shows every live pool, by service, port and family; none before Ready.
func (a *Agent) Pools() []PoolStatus { return a.pools(topology.ServiceName{}) }

// pools shows the live pools of one service; of all, if it has no name.
func (a *Agent) pools(of topology.ServiceName) []PoolStatus {
	r := a.plane.Read()
	if r == nil {
		return nil
	}
	pools := []PoolStatus{}
	for i, e := range r.table.Entries {
		if of.Name == "" || e.Key.Service == of {
			pools = append(pools, viewPool(e, r.pools[i].Status(), a.clock()))
		}
	}
	return pools
}

// poolsOf shows the pools of one service.
func (a *Agent) poolsOf(w http.ResponseWriter, r *http.Request) {
	name := topology.ServiceName{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
	pools := a.pools(name)
	switch {
	case pools == nil:
		http.Error(w, "no snapshot is served yet", http.StatusServiceUnavailable)
	case len(pools) == 0:
		http.Error(w, "no service "+strconv.Quote(name.String())+" is served here", http.StatusNotFound)
	default:
		a.write(w, pools)
	}
}

func viewPool(e *route.Entry, s pick.Status, now time.Duration) PoolStatus {
	v := PoolStatus{
		Service:    e.Key.Service.String(),
		Port:       e.Key.Port,
		Family:     e.Key.Family.String(),
		ClientZone: e.Key.Zone,
		Class:      e.Key.Class,
		Algorithm:  string(e.Settings.Algorithm),
		State:      s.State.String(),
		Reason:     s.Reason,
		Since:      (now - s.Since).Seconds(),
		Baseline:   millis(s.Baseline),
		Shed:       s.Shed,
		Groups:     make([]GroupStatus, 0, len(s.Groups)),
		Endpoints:  make([]EndpointStatus, 0, len(s.Endpoints)),
	}
	if e.Key.Protocol != topology.TCP {
		v.Protocol = string(e.Key.Protocol)
	}
	for i := range s.Groups {
		v.Groups = append(v.Groups, viewGroup(&s.Groups[i]))
	}
	for i := range s.Endpoints {
		v.Endpoints = append(v.Endpoints, viewEndpoint(&s.Endpoints[i], now))
	}
	slices.SortFunc(v.Endpoints, func(a, b EndpointStatus) int {
		return cmp.Or(cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.Address, b.Address))
	})
	return v
}

func viewGroup(g *pick.GroupStatus) GroupStatus {
	return GroupStatus{
		Zone: g.Zone, Cluster: g.Key.Cluster, Home: g.Home, Cost: g.Cost,
		Share: g.Share, Slowdown: g.Slowdown, Delivered: g.Delivered, Allowed: g.Allowed, Demand: g.Demand,
		Endpoints: len(g.Members), Usable: g.Usable, Drained: g.Drained, Connect: millis(g.RTT),
	}
}

func viewEndpoint(e *pick.EndpointStatus, now time.Duration) EndpointStatus {
	answers := e.Answers()
	v := EndpointStatus{
		Address: e.Addr.String(), Zone: e.Zone, Cluster: e.Cluster, Home: e.Home, Cost: e.Cost,
		InFlight: e.InFlight, Slowdown: e.Slowdown, Out: e.Out, Ejections: e.Ejections, Drained: e.Drained,
		Latency: millis(answers.Latency()), Failures: answers.FailureRatio(),
	}
	if e.Out {
		v.OutFor = max(0, (e.Until - now).Seconds())
	}
	return v
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
