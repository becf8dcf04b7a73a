package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weir-lb/weir/internal/core/topology"
)

// Validate finds everything that is wrong with a scenario, in no line: Parse does the same for files. Nil: nothing is.
func (s *Scenario) Validate() []*Error {
	v := validator{s: s}
	v.all()
	for _, err := range v.errs {
		err.File = s.Name
	}
	return v.errs
}

// validator checks what single values do not show.
type validator struct {
	s      *Scenario
	broken map[string]bool // statements that could not be read: nothing is said of what follows from them
	errs   []*Error

	endpoints map[group]int // ready at the beginning
	most      map[group]int // at any time
	zones     []topology.Zone
}

// group is the endpoints of a zone of a cluster.
type group struct {
	zone    topology.Zone
	cluster string
}

func (v *validator) all() {
	v.texts()
	for _, check := range []struct {
		needs []string // statements and sections that have to be right before
		run   func()
	}{
		{[]string{clusterSection}, v.cluster},
		{[]string{"clients", clusterSection}, v.clients},
		{[]string{"clients", "rate"}, v.rates},
		{nil, v.values},
		{[]string{"server"}, v.server},
		{[]string{"speed", clusterSection}, v.speeds},
		{[]string{"request"}, v.request},
		{[]string{"day", "clients"}, v.day},
		{[]string{"autoscale"}, v.autoscale},
		{[]string{"nodes", clusterSection}, v.nodes},
		{[]string{"length", "stress"}, v.stress},
		{[]string{"affected", "clients"}, v.affected},
		{[]string{clusterSection, "clients", "length"}, v.steps},
	} {
		if !slices.ContainsFunc(check.needs, func(name string) bool { return v.broken[name] }) {
			check.run()
		}
	}
}

func (v *validator) refuse(field, format string, args ...any) {
	v.errs = append(v.errs, &Error{Field: field, Message: fmt.Sprintf(format, args...)})
}

// want refuses what is not right, and tells whether it is.
func (v *validator) want(isRight bool, field, format string, args ...any) bool { //nolint:revive // that is what it is about.
	if !isRight {
		v.refuse(field, format, args...)
	}
	return isRight
}

// report refuses what there is an error of.
func (v *validator) report(field string, err error) {
	if err != nil {
		v.refuse(field, "%v", err)
	}
}

// texts refuses what String could not write so that Parse reads it again.
func (v *validator) texts() {
	s := v.s
	if s.Title == "" || strings.TrimSpace(s.Title) != s.Title || strings.Contains(s.Title, "\n") {
		v.refuse("title", "is missing or more than a line: write what happens into the first line of the file")
	}
	for _, part := range []struct{ name, text string }{
		{"title", s.Title}, {"about", s.About}, {explainSection, s.Explain}, {resultsSection, s.Results},
	} {
		for line := range strings.SplitSeq(part.text, "\n") {
			if _, ok := marker(line); ok {
				v.refuse(part.name, "has the line %q, which would begin a section: write it in another way", line)
			}
			if r, ok := controlIn(line); ok {
				v.refuse(part.name, "has the control character %U: take it out", r)
			}
		}
	}
}

func (v *validator) cluster() {
	s := v.s
	if len(s.Snapshot.Services) != 1 {
		v.refuse(clusterSection, "has %d services: write exactly one, as in service web", len(s.Snapshot.Services))
		v.breakOff(clusterSection)
		return
	}
	svc := s.Service()
	v.zones = s.Snapshot.Zones()
	v.endpoints = make(map[group]int)
	if len(svc.Ports) == 0 {
		v.refuse(clusterSection, "service %s has no port: write one, or leave port= out", svc.ServiceName)
	}
	switch n := len(svc.Endpoints); {
	case n == 0:
		v.refuse(clusterSection, "service %s has no endpoints: write some, as in endpoints a:6 b:6 c:6", svc.ServiceName)
	case n > maxEndpoints:
		v.refuse(clusterSection, "service %s has %d endpoints: %d are the most", svc.ServiceName, n, maxEndpoints)
	}
	for i := range svc.Endpoints {
		v.endpoints[group{svc.Endpoints[i].Zone, svc.Endpoints[i].Cluster}]++
	}
	v.countMost()
	v.eachEndpoint(svc)
}

// eachEndpoint refuses what cannot be a pod that is ready when the run begins; it names the first of a kind.
func (v *validator) eachEndpoint(svc *topology.Service) {
	all := svc.Endpoints
	hasPorts := func(e *topology.Endpoint) bool {
		return !slices.ContainsFunc(svc.Ports, func(p topology.Port) bool {
			_, ok := e.Port(p)
			return !ok
		})
	}
	for _, kind := range []struct {
		isWrong func(i int) bool
		message string // after the endpoints
	}{
		{func(i int) bool { return all[i].Zone == "" }, "without a zone: write one"},
		{
			func(i int) bool { return !all[i].IsReady() || all[i].IsTerminating() },
			"not ready: all are when a run begins; leave it out, or fail it in a step",
		},
		{
			func(i int) bool { return all[i].Family() != all[0].Family() },
			"of another family than the first: each pod is one endpoint, keep one family",
		},
		{func(i int) bool { return i > 0 && all[i-1].Addr == all[i].Addr }, "there twice: give each its own address"},
		{func(i int) bool { return !hasPorts(&all[i]) }, "without a port of the service: leave the endpoint's ports out"},
	} {
		first, count := 0, 0
		for i := range all {
			if kind.isWrong(i) {
				count++
				if count == 1 {
					first = i
				}
			}
		}
		switch {
		case count == 1:
			v.refuse(clusterSection, "endpoint %s is %s", all[first].Addr, kind.message)
		case count > 1:
			v.refuse(clusterSection, "endpoint %s and %d more are %s", all[first].Addr, count-1, kind.message)
		}
	}
}

// breakOff keeps quiet about all that follows from a broken statement.
func (v *validator) breakOff(name string) {
	broken := maps.Clone(v.broken)
	if broken == nil {
		broken = make(map[string]bool)
	}
	broken[name] = true
	v.broken = broken
}

func (v *validator) clients() {
	v.want(len(v.s.Clients) > 0, "clients", "there are none: say how many each zone has, as in clients a:8 b:8 c:8")
	total := 0
	for i, c := range v.s.Clients {
		field := "clients." + string(c.Zone)
		v.want(slices.Contains(v.zones, c.Zone), field, "zone %s is not in the cluster: it has %s", c.Zone, list(v.zones))
		v.want(i == 0 || v.s.Clients[i-1].Zone < c.Zone, field, "zones are not sorted, or one is there twice")
		if err := whole(1, maxClients).check(c.Count); err == nil {
			total += c.Count
		}
		v.want(c.Count >= 1 && c.Count <= maxClients, field, "has %d clients: want 1 to %d", c.Count, maxClients)
		v.shares(field, &c)
	}
	v.want(total <= maxClients, "clients", "there are %d in all: %d are the most", total, maxClients)
}

// shares have to sum to 1 but for the rounding of one share each.
func (v *validator) shares(field string, c *Clients) {
	if c.Shares == nil {
		return
	}
	sum := 0.0
	for _, share := range c.Shares {
		v.want(share > 0, field, "has a client with a share of %s %%: each needs more than 0", formatPercent(share))
		sum += share
	}
	if v.want(len(c.Shares) == c.Count, field, "has %d clients and %d shares: write one share for each", c.Count, len(c.Shares)) {
		v.want(math.Abs(sum-1) < almost, field, "has shares that sum to %.6g %%: want 100", sum*100)
	}
}

func (v *validator) rates() {
	total := 0.0
	for _, c := range v.s.Clients {
		if v.want(c.Rate > 0 && c.Rate <= maxRate, "rate."+string(c.Zone),
			"zone %s has %s requests per second: want more than 0 and at most %s, as in rate %s:660",
			c.Zone, formatNumber(c.Rate), formatNumber(maxRate), c.Zone) {
			total += c.Rate
		}
	}
	v.want(total <= maxRate, "rate", "all zones together have %s requests per second: %s is the most", formatNumber(total), formatNumber(maxRate))
}

// values checks every value of a statement by itself.
func (v *validator) values() {
	for _, st := range statements(v.s) {
		for _, k := range st.keys {
			if !st.absent && (k.name != "" || !v.broken[st.name]) {
				v.report(strings.TrimSuffix(st.name+"."+k.name, "."), k.check())
			}
		}
	}
}

func (v *validator) server() {
	s := &v.s.Server
	v.want(s.Cold == 0 || s.Cold >= 1, "server.cold",
		"is %s, which makes new pods faster: want 1 for no difference, or more", formatNumber(s.Cold))
	v.want(s.Cold <= 1 || s.Warm != 0, "server.warm",
		"is 0s, so that pods are never cold: write how long they take to warm up, as in warm=10s")
}

func (v *validator) speeds() {
	for _, sp := range v.s.Server.Speeds {
		field := "speed." + sp.Where.String()
		if err := above(0, maxFactor).check(sp.Factor); err != nil {
			v.refuse(field, "%v; 0.5 takes twice as long", err)
		}
		v.report(field, v.where(sp.Where))
	}
}

func (v *validator) request() {
	r := &v.s.Request
	v.want(r.Attempt <= r.Timeout, "request.attempt", "is longer than the timeout of the whole request, %s: make it shorter", formatTime(r.Timeout))
	v.want(r.Good <= r.Timeout, "request.good", "is longer than the timeout, %s: make it shorter", formatTime(r.Timeout))
	v.want(r.Polls+r.Streams <= 1, "request.streams", "and polls together are more than all requests: make them sum to at most 1")
	v.want(r.Polls+r.Streams == 0 || r.Hold != 0, "request.hold", "is 0s: say how long polls and streams are held, as in hold=5s")
}

func (v *validator) day() {
	d := cmp.Or(v.s.Day, usualDay())
	v.want(d.Low <= d.High, "day.low", "is above high, %s: exchange them", formatNumber(d.High))
	for _, zone := range slices.Sorted(maps.Keys(d.Lag)) {
		v.want(v.s.clientsOf(zone) != nil, "day.lag", "zone %s has no clients: leave it out", zone)
	}
}

func (v *validator) autoscale() {
	a := cmp.Or(v.s.Autoscale, usualAutoscale())
	v.want(a.Min <= a.Max, "autoscale.min", "is above max, %d: exchange them", a.Max)
}

// nodes refuses nodes whose own pods have no room: no node could be named for them.
func (v *validator) nodes() {
	pools := v.s.NodePools
	if pools == nil {
		return
	}
	nodes := make(map[topology.Zone]int)
	for i := range v.s.Snapshot.Nodes {
		nodes[v.s.Snapshot.Nodes[i].Zone]++
	}
	for _, zone := range v.zones {
		pods, room := v.endpoints[group{zone: zone}], nodes[zone]*pools.PodsPerNode
		v.want(pods <= room, "nodes.pods-per-node", "zone %s has %d nodes with room for %d pods and %d endpoints: write more nodes into the section cluster",
			zone, nodes[zone], room, pods)
		v.want(nodes[zone] <= pools.Max, "nodes.max", "is below the %d nodes that zone %s has at the beginning", nodes[zone], zone)
	}
}

func (v *validator) stress() {
	w, first := v.s.Stress, v.s.Warmup()
	v.want(w.From >= first && w.From < w.To && w.To <= v.s.Length, "stress",
		"is %s..%s: want a time that begins at %s or later, when clients have warmed up, and ends by %s, the run's end",
		formatTime(w.From), formatTime(w.To), formatTime(first), formatTime(v.s.Length))
}

func (v *validator) affected() {
	for i, zone := range v.s.Affected {
		v.want(v.s.clientsOf(zone) != nil, "affected", "zone %s has no clients: leave it out", zone)
		v.want(i == 0 || v.s.Affected[i-1] < zone, "affected", "zones are not sorted, or one is there twice")
	}
}

func (v *validator) steps() {
	if !v.want(len(v.s.Steps) <= maxSteps, stepsSection, "there are %d: %d are the most", len(v.s.Steps), maxSteps) {
		return
	}
	previous := time.Duration(0)
	for _, st := range v.s.Steps {
		refuse := func(field string, err error) {
			if err != nil {
				v.errs = append(v.errs, &Error{Line: st.Line, Field: field, Message: err.Error()})
			}
		}
		field := stepsSection + "." + string(st.Verb)
		kind, ok := verbNamed(st.Verb)
		if !ok {
			refuse(field, fmt.Errorf("unknown verb %q", st.Verb))
		} else {
			refuse(field, st.within(v.s.Length))
			refuse(field, kind.check(st))
			refuse(field, v.scope(kind.scope, st.Where))
		}
		if st.At < previous {
			refuse(stepsSection, errors.New("steps are not sorted by time"))
		}
		previous = st.At
	}
}

// scope refuses a place that a verb cannot be about.
func (v *validator) scope(sc scope, w Where) error {
	isWhole := w.IsWhole()
	switch {
	case sc == ofClients && (w.Cluster != "" || !isWhole):
		return fmt.Errorf("place %s: want the clients of a zone, as in a, or *", w)
	case sc == ofClients && w.Zone != "" && v.s.clientsOf(w.Zone) == nil:
		return fmt.Errorf("zone %s has no clients: it is not in clients", w.Zone)
	case sc == ofClients:
		return nil
	case sc == ofZones && !isWhole:
		_, numbers, _ := strings.Cut(w.String(), "/")
		return fmt.Errorf("place %s: this verb is about whole zones; leave /%s out", w, numbers)
	case sc == ofHomeZone && (w.Zone == "" || w.Cluster != "" || !isWhole):
		return fmt.Errorf("place %s: want one whole zone of the clients' own cluster, as in a", w)
	case sc == ofOneZone && (w.Zone == "" || !isWhole):
		return fmt.Errorf("place %s: want one whole zone, as in a or a@west", w)
	case sc == ofOneZone && w.Cluster == "": // it may have no endpoints yet
		if !slices.Contains(v.zones, w.Zone) {
			return fmt.Errorf("zone %s is not in the cluster: it has %s", w.Zone, list(v.zones))
		}
		return nil
	default:
		return v.where(w)
	}
}

// where refuses a place that cannot be written, or has no endpoints.
func (v *validator) where(w Where) error {
	isRange := w.First == 0 && w.Last == 0 || w.First >= 1 && w.Last >= w.First
	isPart := w.Part == 0 || w.Part > 0 && w.Part <= 1 && w.First == 0
	if !isRange || !isPart {
		return fmt.Errorf("place %s: want endpoints counted from 1, or a part of them, as in a/1-3 or a/50%%", w)
	}
	most := 0
	whole := Where{Zone: w.Zone, Cluster: w.Cluster}
	for g, n := range v.most {
		if whole.Has(g.zone, g.cluster, 1, 1) {
			most = max(most, n)
		}
	}
	if most == 0 {
		return fmt.Errorf("place %s has no endpoints: %s", w, v.hint(w))
	}
	if w.Last > most {
		return fmt.Errorf("place %s: there is no endpoint %d, the zone never has more than %d", w, w.Last, most)
	}
	return nil
}

// countMost finds how many endpoints each zone can have in the run: those at the beginning, or as many as steps and
// autoscaling make.
func (v *validator) countMost() {
	v.most = maps.Clone(v.endpoints)
	for i := range v.s.Steps {
		if st := &v.s.Steps[i]; st.Verb == Scale {
			g := group{st.Where.Zone, st.Where.Cluster}
			v.most[g] = max(v.most[g], st.Count)
		}
	}
	if v.s.Autoscale != nil {
		for _, zone := range v.zones {
			g := group{zone: zone}
			v.most[g] = max(v.most[g], v.s.Autoscale.Max)
		}
	}
}

// hint says what a place without endpoints may have meant.
func (v *validator) hint(w Where) string {
	var clusters, zones []string
	for g := range v.endpoints {
		if g.cluster != "" {
			clusters = append(clusters, g.cluster)
		}
		if g.cluster == w.Cluster {
			zones = append(zones, string(g.zone))
		}
	}
	slices.Sort(clusters)
	slices.Sort(zones)
	clusters = slices.Compact(clusters)
	if w.Cluster != "" && !slices.Contains(clusters, w.Cluster) {
		return "the clusters with some are " + orNone(clusters)
	}
	return "the zones with some are " + orNone(zones)
}

func list(zones []topology.Zone) string { return orNone(names(zones)) }

func orNone(names []string) string { return cmp.Or(strings.Join(names, ", "), "none") }
