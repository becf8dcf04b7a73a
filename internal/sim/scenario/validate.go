package scenario

import (
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
		{[]string{worldSection}, v.world},
		{[]string{"clients", worldSection}, v.clients},
		{[]string{"clients", "rate"}, v.rates},
		{nil, v.keys},
		{[]string{"server"}, v.server},
		{[]string{"speed", worldSection}, v.speeds},
		{[]string{"request"}, v.request},
		{[]string{"day", "clients"}, v.day},
		{[]string{"autoscale"}, v.autoscale},
		{[]string{"nodes", worldSection}, v.nodes},
		{[]string{"length"}, v.length},
		{[]string{"length", "stress"}, v.stress},
		{[]string{"affected", "clients"}, v.affected},
		{[]string{worldSection, "clients", "length"}, v.steps},
	} {
		if !slices.ContainsFunc(check.needs, func(name string) bool { return v.broken[name] }) {
			check.run()
		}
	}
}

func (v *validator) refuse(field, format string, args ...any) {
	v.errs = append(v.errs, &Error{Field: field, Message: fmt.Sprintf(format, args...)})
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

func (v *validator) world() {
	s := v.s
	if len(s.World.Services) != 1 {
		v.refuse(worldSection, "has %d services: write exactly one, as in service web", len(s.World.Services))
		v.breakOff(worldSection)
		return
	}
	svc := s.Service()
	v.zones = s.World.Zones()
	v.endpoints = make(map[group]int)
	if len(svc.Ports) == 0 {
		v.refuse(worldSection, "service %s has no port: write one, or leave port= out", svc.ServiceName)
	}
	switch n := len(svc.Endpoints); {
	case n == 0:
		v.refuse(worldSection, "service %s has no endpoints: write some, as in endpoints a:6 b:6 c:6", svc.ServiceName)
	case n > maxEndpoints:
		v.refuse(worldSection, "service %s has %d endpoints: %d are the most", svc.ServiceName, n, maxEndpoints)
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
			v.refuse(worldSection, "endpoint %s is %s", all[first].Addr, kind.message)
		case count > 1:
			v.refuse(worldSection, "endpoint %s and %d more are %s", all[first].Addr, count-1, kind.message)
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
	if len(v.s.Clients) == 0 {
		v.refuse("clients", "there are none: say how many each zone has, as in clients a:8 b:8 c:8")
	}
	total := 0
	for i, c := range v.s.Clients {
		field := "clients." + string(c.Zone)
		if !slices.Contains(v.zones, c.Zone) {
			v.refuse(field, "zone %s is not in the world: it has %s", c.Zone, list(v.zones))
		}
		if i > 0 && v.s.Clients[i-1].Zone >= c.Zone {
			v.refuse(field, "zones are not sorted, or one is there twice")
		}
		if c.Count < 1 || c.Count > maxClients {
			v.refuse(field, "has %d clients: want 1 to %d", c.Count, maxClients)
		} else {
			total += c.Count
		}
		v.shares(field, &c)
	}
	if total > maxClients {
		v.refuse("clients", "there are %d in all: %d are the most", total, maxClients)
	}
}

// shares have to sum to 1 but for the rounding of one share each.
func (v *validator) shares(field string, c *Clients) {
	if c.Shares == nil {
		return
	}
	sum := 0.0
	for _, share := range c.Shares {
		if !(share > 0) {
			v.refuse(field, "has a client with a share of %s %%: each needs more than 0", formatPercent(share))
		}
		sum += share
	}
	if len(c.Shares) != c.Count {
		v.refuse(field, "has %d clients and %d shares: write one share for each", c.Count, len(c.Shares))
		return
	}
	if !(math.Abs(sum-1) < almost) {
		v.refuse(field, "has shares that sum to %.6g %%: want 100", sum*100)
	}
}

func (v *validator) rates() {
	total := 0.0
	for _, c := range v.s.Clients {
		if c.Rate > 0 && c.Rate <= maxRate {
			total += c.Rate
		} else {
			v.refuse("rate."+string(c.Zone), "zone %s has %s requests per second: want more than 0 and at most %s, as in rate %s:660",
				c.Zone, formatNumber(c.Rate), formatNumber(maxRate), c.Zone)
		}
	}
	if total > maxRate {
		v.refuse("rate", "all zones together have %s requests per second: %s is the most", formatNumber(total), formatNumber(maxRate))
	}
}

// keys checks every FIELD=VALUE by itself.
func (v *validator) keys() {
	for _, st := range statements() {
		if st.part != nil && !st.part(v.s) {
			continue
		}
		for _, k := range st.keys {
			if err := k.check(v.s); err != nil {
				v.refuse(st.name+"."+k.name, "%v", err)
			}
		}
	}
}

func (v *validator) server() {
	s := &v.s.Server
	if s.Cold > 0 && s.Cold < 1 {
		v.refuse("server.cold", "is %s, which makes new pods faster: want 1 for no difference, or more", formatNumber(s.Cold))
	}
	if s.Cold > 1 && s.Warm == 0 {
		v.refuse("server.warm", "is 0s, so that pods are never cold: write how long they take to warm up, as in warm=10s")
	}
}

func (v *validator) speeds() {
	for _, sp := range v.s.Server.Speeds {
		field := "speed." + sp.Where.String()
		if !(sp.Factor > 0 && sp.Factor <= maxFactor) {
			v.refuse(field, "is %s: want more than 0 and at most %d; 0.5 takes twice as long", formatNumber(sp.Factor), maxFactor)
		}
		if err := v.where(sp.Where); err != nil {
			v.refuse(field, "%v", err)
		}
	}
}

func (v *validator) request() {
	r := &v.s.Request
	if r.Attempt > r.Timeout {
		v.refuse("request.attempt", "is longer than the timeout of the whole request, %s: make it shorter", formatTime(r.Timeout))
	}
	if r.Good > r.Timeout {
		v.refuse("request.good", "is longer than the timeout, %s: make it shorter", formatTime(r.Timeout))
	}
	if r.Polls+r.Streams > 1 {
		v.refuse("request.streams", "and polls together are more than all requests: make them sum to at most 1")
	}
	if r.Polls+r.Streams > 0 && r.Hold == 0 {
		v.refuse("request.hold", "is 0s: say how long polls and streams are held, as in hold=5s")
	}
}

func (v *validator) day() {
	d := v.s.Day
	if d == nil {
		return
	}
	if d.Low > d.High {
		v.refuse("day.low", "is above high, %s: exchange them", formatNumber(d.High))
	}
	for _, zone := range slices.Sorted(maps.Keys(d.Lag)) {
		if v.s.clientsOf(zone) == nil {
			v.refuse("day.lag", "zone %s has no clients: leave it out", zone)
		}
	}
}

func (v *validator) autoscale() {
	if a := v.s.Autoscale; a != nil && a.Min > a.Max {
		v.refuse("autoscale.min", "is above max, %d: exchange them", a.Max)
	}
}

// nodes refuses a world whose own pods have no room: nobody could say where they are.
func (v *validator) nodes() {
	pools := v.s.NodePools
	if pools == nil {
		return
	}
	nodes := make(map[topology.Zone]int)
	for i := range v.s.World.Nodes {
		nodes[v.s.World.Nodes[i].Zone]++
	}
	for _, zone := range v.zones {
		pods := v.endpoints[group{zone: zone}]
		if room := nodes[zone] * pools.PodsPerNode; pods > room {
			v.refuse("nodes.pods-per-node", "zone %s has %d nodes with room for %d pods and %d endpoints: write more nodes into the world",
				zone, nodes[zone], room, pods)
		}
		if nodes[zone] > pools.Max {
			v.refuse("nodes.max", "is below the %d nodes that zone %s has in the world", nodes[zone], zone)
		}
	}
}

func (v *validator) length() {
	if d := v.s.Length; d < minLength || d > maxLength {
		v.refuse("length", "is %s: want %s to %s; the first %s are never counted", formatTime(d), formatTime(minLength),
			formatTime(maxLength), formatTime(Warmup))
	}
}

func (v *validator) stress() {
	w := v.s.Stress
	if first := v.s.Warmup(); w.From < first || w.From >= w.To || w.To > v.s.Length {
		v.refuse("stress", "is %s..%s: want a time that begins at %s or later, when clients have warmed up, and ends by %s, the run's end",
			formatTime(w.From), formatTime(w.To), formatTime(first), formatTime(v.s.Length))
	}
}

func (v *validator) affected() {
	for i, zone := range v.s.Affected {
		if v.s.clientsOf(zone) == nil {
			v.refuse("affected", "zone %s has no clients: leave it out", zone)
		}
		if i > 0 && v.s.Affected[i-1] >= zone {
			v.refuse("affected", "zones are not sorted, or one is there twice")
		}
	}
}

func (v *validator) steps() {
	if n := len(v.s.Steps); n > maxSteps {
		v.refuse(stepsSection, "there are %d: %d are the most", n, maxSteps)
		return
	}
	previous := time.Duration(0)
	for _, st := range v.s.Steps {
		for _, err := range v.step(st) {
			v.errs = append(v.errs, &Error{Line: st.Line, Field: stepsSection + "." + string(st.Verb), Message: err.Error()})
		}
		if st.At < previous {
			v.errs = append(v.errs, &Error{
				Line: st.Line, Field: stepsSection, Message: "steps are not sorted by time",
			})
		}
		previous = st.At
	}
}

// step checks one step.
func (v *validator) step(st Step) []error {
	kind, ok := verbNamed(st.Verb)
	if !ok {
		return []error{fmt.Errorf("unknown verb %q", st.Verb)}
	}
	var errs []error
	if st.At < 0 || st.At >= v.s.Length {
		errs = append(errs, fmt.Errorf("at %s is not within the run of %s: make the run longer, or the step earlier",
			formatTime(st.At), formatTime(v.s.Length)))
	}
	used := kind.only(st)
	used.At, used.Verb, used.Where, used.Line = st.At, st.Verb, st.Where, st.Line
	if used != st {
		errs = append(errs, fmt.Errorf("has a value that %s does not use", st.Verb))
	}
	if err := kind.check(st); err != nil {
		errs = append(errs, err)
	}
	if err := v.scope(kind.scope, st.Where); err != nil {
		errs = append(errs, err)
	}
	return errs
}
