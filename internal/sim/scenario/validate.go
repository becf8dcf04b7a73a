package scenario

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/weir-lb/weir/internal/core/topology"
)

// Validate finds everything that is wrong with a scenario that was made in code: what Parse finds in its text, without lines.
// Nil: nothing is.
func (s *Scenario) Validate() []*Error {
	text := s.String()
	p := read(s.Name, text)
	if len(p.errs) == 0 && p.s.String() != text {
		p.errs = append(p.errs, &Error{Message: "is not what is read again when it is written: steps, clients or zones are not sorted, or a text begins a section"})
	}
	for _, err := range p.errs {
		err.File, err.Line = s.Name, 0
	}
	return p.errs
}

// group is the endpoints of a zone of a cluster.
type group struct {
	zone    topology.Zone
	cluster string
}

// validate checks what single values do not show, unless what it follows from could not be read.
func (p *parser) validate() {
	p.want(p.s.Title != "", "title", "is missing: write what happens into the first line of the file")
	for _, check := range []struct {
		needs []string // statements and sections that have to be right before
		run   func()
	}{
		{[]string{clusterSection}, p.checkCluster},
		{[]string{"clients", clusterSection}, p.clients},
		{[]string{"clients", "rate"}, p.checkRates},
		{nil, p.values},
		{[]string{"server"}, p.server},
		{[]string{"speed", clusterSection}, p.speeds},
		{[]string{"request"}, p.request},
		{[]string{"day", "clients"}, p.day},
		{[]string{"autoscale"}, p.autoscale},
		{[]string{"nodes", clusterSection}, p.nodes},
		{[]string{"length", "stress"}, p.stress},
		{[]string{"affected", "clients"}, p.affected},
		{[]string{clusterSection, "clients", "length"}, p.steps},
	} {
		if !slices.ContainsFunc(check.needs, func(name string) bool { return p.broken[name] }) {
			check.run()
		}
	}
}

// want refuses what is not right, and tells whether it is. The field has the name of its statement.
func (p *parser) want(isRight bool, field, format string, args ...any) bool { //nolint:revive // that is what it is about.
	if !isRight {
		p.errs = append(p.errs, &Error{File: p.file, Line: p.lineOf(field), Field: field, Message: fmt.Sprintf(format, args...)})
	}
	return isRight
}

// report refuses what there is an error of.
func (p *parser) report(field string, err error) { p.want(err == nil, field, "%v", err) }

// checkCluster refuses a cluster that no run can begin with.
func (p *parser) checkCluster() {
	s := p.s
	if len(s.Snapshot.Services) != 1 {
		p.want(false, clusterSection, "has %d services: write exactly one, as in service web", len(s.Snapshot.Services))
		p.broken[clusterSection] = true
		return
	}
	svc := s.Service()
	p.zones = s.Snapshot.Zones()
	p.endpoints = make(map[group]int)
	if len(svc.Ports) == 0 {
		p.want(false, clusterSection, "service %s has no port: write one, or leave port= out", svc.ServiceName)
	}
	switch n := len(svc.Endpoints); {
	case n == 0:
		p.want(false, clusterSection, "service %s has no endpoints: write some, as in endpoints a:6 b:6 c:6", svc.ServiceName)
	case n > maxEndpoints:
		p.want(false, clusterSection, "service %s has %d endpoints: %d are the most", svc.ServiceName, n, maxEndpoints)
	}
	for i := range svc.Endpoints {
		p.endpoints[group{svc.Endpoints[i].Zone, svc.Endpoints[i].Cluster}]++
	}
	p.countMost()
	p.eachEndpoint(svc)
}

// eachEndpoint refuses what cannot be a pod that is ready when the run begins; it names the first of a kind.
func (p *parser) eachEndpoint(svc *topology.Service) {
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
			p.want(false, clusterSection, "endpoint %s is %s", all[first].Addr, kind.message)
		case count > 1:
			p.want(false, clusterSection, "endpoint %s and %d more are %s", all[first].Addr, count-1, kind.message)
		}
	}
}

func (p *parser) clients() {
	p.want(len(p.s.Clients) > 0, "clients", "there are none: say how many each zone has, as in clients a:8 b:8 c:8")
	total := 0
	for _, c := range p.s.Clients {
		field := "clients." + string(c.Zone)
		p.want(slices.Contains(p.zones, c.Zone), field, "zone %s is not in the cluster: it has %s", c.Zone, list(p.zones))
		if err := whole(1, maxClients).check(c.Count); err == nil {
			total += c.Count
		}
		p.want(c.Count >= 1 && c.Count <= maxClients, field, "has %d clients: want 1 to %d", c.Count, maxClients)
		p.checkShares(field, &c)
	}
	p.want(total <= maxClients, "clients", "there are %d in all: %d are the most", total, maxClients)
}

// checkShares: they have to sum to 1 but for the rounding of one share each.
func (p *parser) checkShares(field string, c *Clients) {
	if c.Shares == nil {
		return
	}
	sum := 0.0
	for _, share := range c.Shares {
		p.want(share > 0, field, "has a client with a share of %s %%: each needs more than 0", formatPercent(share))
		sum += share
	}
	if p.want(len(c.Shares) == c.Count, field, "has %d clients and %d shares: write one share for each", c.Count, len(c.Shares)) {
		p.want(math.Abs(sum-1) < almost, field, "has shares that sum to %.6g %%: want 100", sum*100)
	}
}

func (p *parser) checkRates() {
	total := 0.0
	for _, c := range p.s.Clients {
		if p.want(c.Rate > 0 && c.Rate <= maxRate, "rate."+string(c.Zone),
			"zone %s has %s requests per second: want more than 0 and at most %s, as in rate %s:660",
			c.Zone, formatNumber(c.Rate), formatNumber(maxRate), c.Zone) {
			total += c.Rate
		}
	}
	p.want(total <= maxRate, "rate", "all zones together have %s requests per second: %s is the most", formatNumber(total), formatNumber(maxRate))
}

// values checks every value of a statement by itself.
func (p *parser) values() {
	for _, st := range statements(p.s) {
		for _, k := range st.keys {
			if !st.absent && (k.name != "" || !p.broken[st.name]) {
				p.report(strings.TrimSuffix(st.name+"."+k.name, "."), k.check())
			}
		}
	}
}

func (p *parser) server() {
	s := &p.s.Server
	p.want(s.Cold == 0 || s.Cold >= 1, "server.cold",
		"is %s, which makes new pods faster: want 1 for no difference, or more", formatNumber(s.Cold))
	p.want(s.Cold <= 1 || s.Warm != 0, "server.warm",
		"is 0s, so that pods are never cold: write how long they take to warm up, as in warm=10s")
}

func (p *parser) speeds() {
	for _, sp := range p.s.Server.Speeds {
		field := "speed." + sp.Where.String()
		if err := above(0, maxFactor).check(sp.Factor); err != nil {
			p.want(false, field, "%v; 0.5 takes twice as long", err)
		}
		p.report(field, p.where(sp.Where))
	}
}

func (p *parser) request() {
	r := &p.s.Request
	p.want(r.Attempt <= r.Timeout, "request.attempt", "is longer than the timeout of the whole request, %s: make it shorter", formatTime(r.Timeout))
	p.want(r.Good <= r.Timeout, "request.good", "is longer than the timeout, %s: make it shorter", formatTime(r.Timeout))
	p.want(r.Polls+r.Streams <= 1, "request.streams", "and polls together are more than all requests: make them sum to at most 1")
	p.want(r.Polls+r.Streams == 0 || r.Hold != 0, "request.hold", "is 0s: say how long polls and streams are held, as in hold=5s")
}

func (p *parser) day() {
	d := cmp.Or(p.s.Day, usualDay())
	p.want(d.Low <= d.High, "day.low", "is above high, %s: exchange them", formatNumber(d.High))
	for _, zone := range slices.Sorted(maps.Keys(d.Lag)) {
		p.want(p.s.clientsOf(zone) != nil, "day.lag", "zone %s has no clients: leave it out", zone)
	}
}

func (p *parser) autoscale() {
	a := cmp.Or(p.s.Autoscale, usualAutoscale())
	p.want(a.Min <= a.Max, "autoscale.min", "is above max, %d: exchange them", a.Max)
}

// nodes refuses nodes whose own pods have no room: no node could be named for them.
func (p *parser) nodes() {
	pools := p.s.NodePools
	if pools == nil {
		return
	}
	nodes := make(map[topology.Zone]int)
	for i := range p.s.Snapshot.Nodes {
		nodes[p.s.Snapshot.Nodes[i].Zone]++
	}
	for _, zone := range p.zones {
		pods, room := p.endpoints[group{zone: zone}], nodes[zone]*pools.PodsPerNode
		p.want(pods <= room, "nodes.pods-per-node", "zone %s has %d nodes with room for %d pods and %d endpoints: write more nodes into the section cluster",
			zone, nodes[zone], room, pods)
		p.want(nodes[zone] <= pools.Max, "nodes.max", "is below the %d nodes that zone %s has at the beginning", nodes[zone], zone)
	}
}

func (p *parser) stress() {
	w, first := p.s.Stress, p.s.Warmup()
	p.want(w.From >= first && w.From < w.To && w.To <= p.s.Length, "stress",
		"is %s..%s: want a time that begins at %s or later, when clients have warmed up, and ends by %s, the run's end",
		formatTime(w.From), formatTime(w.To), formatTime(first), formatTime(p.s.Length))
}

func (p *parser) affected() {
	for _, zone := range p.s.Affected {
		p.want(p.s.clientsOf(zone) != nil, "affected", "zone %s has no clients: leave it out", zone)
	}
}

func (p *parser) steps() {
	if !p.want(len(p.s.Steps) <= maxSteps, stepsSection, "there are %d: %d are the most", len(p.s.Steps), maxSteps) {
		return
	}
	for _, st := range p.s.Steps {
		kind, _ := verbNamed(st.Verb)
		for _, err := range []error{st.within(p.s.Length), kind.check(&st), p.scope(kind.scope, st.Where)} {
			if err != nil {
				p.errs = append(p.errs, &Error{File: p.file, Line: st.Line, Field: stepsSection + "." + string(st.Verb), Message: err.Error()})
			}
		}
	}
}

// scope refuses a place that a verb cannot be about.
func (p *parser) scope(sc scope, w Where) error {
	isWhole := w.IsWhole()
	switch {
	case sc == ofClients && (w.Cluster != "" || !isWhole):
		return fmt.Errorf("place %s: want the clients of a zone, as in a, or *", w)
	case sc == ofClients && w.Zone != "" && p.s.clientsOf(w.Zone) == nil:
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
		if !slices.Contains(p.zones, w.Zone) {
			return fmt.Errorf("zone %s is not in the cluster: it has %s", w.Zone, list(p.zones))
		}
		return nil
	default:
		return p.where(w)
	}
}

// where refuses a place that has no endpoints.
func (p *parser) where(w Where) error {
	most := 0
	whole := Where{Zone: w.Zone, Cluster: w.Cluster}
	for g, n := range p.most {
		if whole.Has(g.zone, g.cluster, 1, 1) {
			most = max(most, n)
		}
	}
	if most == 0 {
		return fmt.Errorf("place %s has no endpoints: %s", w, p.hint(w))
	}
	if w.Last > most {
		return fmt.Errorf("place %s: there is no endpoint %d, the zone never has more than %d", w, w.Last, most)
	}
	return nil
}

// countMost finds how many endpoints each zone can have in the run: those at the beginning, or as many as steps and
// autoscaling make.
func (p *parser) countMost() {
	p.most = maps.Clone(p.endpoints)
	for i := range p.s.Steps {
		if st := &p.s.Steps[i]; st.Verb == Scale {
			g := group{st.Where.Zone, st.Where.Cluster}
			p.most[g] = max(p.most[g], st.Count)
		}
	}
	if p.s.Autoscale != nil {
		for _, zone := range p.zones {
			g := group{zone: zone}
			p.most[g] = max(p.most[g], p.s.Autoscale.Max)
		}
	}
}

// hint says what a place without endpoints may have meant.
func (p *parser) hint(w Where) string {
	var clusters, zones []string
	for g := range p.endpoints {
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
