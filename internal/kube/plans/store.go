package plans

import (
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/feed"
)

// Store holds the newest decision of each service. Update is for one goroutine at a time; Lookup and All are safe for
// concurrent use, with it and with each other.
type Store struct {
	now       func() time.Time
	inputs    inputs
	decisions atomic.Pointer[[]*Decision] // sorted by name; neither the list nor what it points at changes
}

// NewStore makes an empty store. It asks now when a state is seen.
func NewStore(now func() time.Time) *Store {
	s := &Store{now: now}
	s.decisions.Store(new([]*Decision))
	return s
}

// Lookup finds the decision of a service.
func (s *Store) Lookup(name topology.ServiceName) (*Decision, bool) {
	decisions := *s.decisions.Load()
	i, ok := slices.BinarySearchFunc(decisions, name, (*Decision).compare)
	if !ok {
		return nil, false
	}
	return decisions[i], true
}

// All gives every decision, sorted by name.
func (s *Store) All() []*Decision { return slices.Clone(*s.decisions.Load()) }

// compare orders decisions by the name of their service.
func (d *Decision) compare(name topology.ServiceName) int { return d.Record.Name.Compare(name) }

// inputs are what the plans of all services depend on.
type inputs struct {
	survey   plan.Survey
	costs    topology.Costs
	policies *policy.Set // nil: none
}

// maxSkew is the cap on the load of a service's endpoints. Hints are for all clients, so that rules about some of them do not
// count.
func (w *inputs) maxSkew(r *feed.Record) float64 {
	if !r.Managed || r.Service == nil {
		return 0
	}
	return w.policies.MaxSkew(policy.Client{}, r.Service)
}

// equal compares all but the policies.
func (w *inputs) equal(o *inputs) bool {
	return w.survey.Nodes == o.survey.Nodes &&
		slices.Equal(w.survey.Zones, o.survey.Zones) &&
		slices.Equal(w.survey.WithoutZone, o.survey.WithoutZone) &&
		slices.Equal(w.survey.WithoutCPU, o.survey.WithoutCPU) &&
		maps.Equal(w.survey.Regions, o.survey.Regions) &&
		w.costs.SameRegion == o.costs.SameRegion &&
		w.costs.OtherRegion == o.costs.OtherRegion &&
		w.costs.OtherCluster == o.costs.OtherCluster &&
		(w.costs.Pairs == nil) == (o.costs.Pairs == nil) && // a table of nothing but zeros is not the default one
		maps.Equal(w.costs.Pairs, o.costs.Pairs)
}

// Update plans what changed in one pass and then publishes all of it at once. It gives the names, sorted, of the services
// that have to be reconciled: those that are new or gone, whose record changed, or whose plans now give other
// hints or other reasons. Where only numbers changed the decision is a new one and its name is not among them.
//
// A service is planned again when its record is another one, or when it is managed and what is known of the nodes, the costs
// or its cap by policies changed. Nodes that come and go without changing that, and changes of other services, cost it nothing.
func (s *Store) Update(state *feed.State, policies *policy.Set) []topology.ServiceName {
	w := inputs{survey: plan.SurveyNodes(state.Snapshot.Nodes), costs: state.Snapshot.Costs, policies: policies}
	sameInputs, samePolicies := s.inputs.equal(&w), s.inputs.policies == policies
	s.inputs = w
	next := make([]*Decision, len(state.Records))
	var tasks []task
	var gone []topology.ServiceName
	rest := *s.decisions.Load()
	for i, r := range state.Records {
		for len(rest) > 0 && rest[0].compare(r.Name) < 0 {
			gone, rest = append(gone, rest[0].Record.Name), rest[1:]
		}
		var before *Decision
		if len(rest) > 0 && rest[0].compare(r.Name) == 0 {
			before, rest = rest[0], rest[1:]
		}
		if before != nil && before.Record == r && (!r.Managed || sameInputs && (samePolicies || before.maxSkew == w.maxSkew(r))) {
			next[i] = before
			continue
		}
		tasks = append(tasks, task{index: i, record: r, before: before})
	}
	for _, d := range rest {
		gone = append(gone, d.Record.Name)
	}
	seen := s.now()
	each(tasks, func(t *task) { t.result = decide(state, &w, t, seen) })
	changed := gone
	for i := range tasks {
		t := &tasks[i]
		next[t.index] = t.result
		if t.before == nil || t.before.Record != t.record || !sameHintsAndReasons(t.before, t.result) {
			changed = append(changed, t.record.Name)
		}
	}
	s.decisions.Store(&next)
	slices.SortFunc(changed, topology.ServiceName.Compare)
	return changed
}

// task is one service to be decided.
type task struct {
	index  int // in the new list
	record *feed.Record
	before *Decision // nil: the service is new
	result *Decision
}

// each does every task, on as many processors as there are, and returns when all are done.
func each(tasks []task, do func(*task)) {
	var next atomic.Int64
	work := func() {
		for i := next.Add(1) - 1; i < int64(len(tasks)); i = next.Add(1) - 1 {
			do(&tasks[i])
		}
	}
	var helpers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(tasks)) - 1 {
		helpers.Go(work)
	}
	work()
	helpers.Wait()
}

// decide plans one service. A decision that says the same of the same record keeps the time of the one before: nothing
// has to be done because of the change.
func decide(s *feed.State, w *inputs, t *task, seen time.Time) *Decision {
	d := &Decision{Record: t.record, Changed: seen, maxSkew: w.maxSkew(t.record)}
	if svc := t.record.Service; t.record.Managed && svc != nil {
		remembered := remember(svc, t.before)
		for _, family := range svc.Families() {
			in := plan.InputOf(&s.Snapshot, w.survey, remembered, family)
			in.MaxSkew = d.maxSkew
			d.Plans = append(d.Plans, plan.Compute(in))
		}
	}
	if t.before != nil && t.before.Record == t.record && sameHintsAndReasons(t.before, d) {
		d.Changed = t.before.Changed
	}
	return d
}

// remember gives the service with the hints that were planned before on each ready endpoint that carries none: another
// writer removed them, or they are not written yet. Hints that are there count as they stand, so that all that plan this
// service plans from what the API server holds.
func remember(svc *topology.Service, before *Decision) *topology.Service {
	if before == nil {
		return svc
	}
	remembered := svc
	for i := range svc.Endpoints {
		e := &svc.Endpoints[i]
		p := before.Plan(e.Family())
		if p == nil || !p.Hinted || !e.IsReady() || !e.Hints.IsZero() {
			continue
		}
		planned := find(p.Endpoints, e)
		if planned == nil || planned.Hints.IsZero() {
			continue
		}
		if remembered == svc { // nearly always nothing is lost, and nothing is copied
			remembered = new(*svc)
			remembered.Endpoints = slices.Clone(svc.Endpoints)
		}
		remembered.Endpoints[i].Hints = planned.Hints
	}
	return remembered
}

// sameHintsAndReasons tells whether two decisions differ in numbers at most.
func sameHintsAndReasons(a, b *Decision) bool {
	if len(a.Plans) != len(b.Plans) {
		return false
	}
	for i := range a.Plans {
		p, q := &a.Plans[i], &b.Plans[i]
		if p.Family != q.Family || p.Hinted != q.Hinted || !sameHints(p.Endpoints, q.Endpoints) ||
			!slices.EqualFunc(p.Reasons, q.Reasons, func(r, s reason.Reason) bool { return r.Code == s.Code }) {
			return false
		}
	}
	return true
}

// sameHints compares the hints of endpoints in the same order.
func sameHints(a, b []topology.Endpoint) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !a[i].Hints.Equal(b[i].Hints) {
			return false
		}
	}
	return true
}
