package scenario

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-lb/weir/internal/core/topology"
)

// What no scenario needs to go beyond: it would run for days or fill the memory.
const (
	maxClients   = 10_000
	maxEndpoints = 10_000
	maxRate      = 1e6 // requests per second, all clients together
	maxLength    = 24 * time.Hour
	maxSteps     = 10_000
	maxWorkers   = 1_000
	maxQueue     = 1_000_000
	maxFactor    = 1_000 // of speeds, rates and slowness
	maxDollars   = 1_000
	maxBytes     = 1e12
	maxWait      = time.Hour // of anything that a request or a pod waits for
	maxTrip      = 10 * time.Second
	maxRetries   = 100
)

// minLength leaves some time between the warm-up and the default stress.
const minLength = 15 * time.Second

// Warmup is the beginning of each run that no figure counts: clients know nothing yet, queues are empty.
const Warmup = 10 * time.Second

// statement is a kind of line of the run section: a word and what follows it.
type statement struct {
	name   string
	keys   []key  // FIELD=VALUEs; one without a name is all that follows
	attach func() // adds the part of the scenario that it is about, which not every scenario has; nil: all have it
	absent bool   // this one has not
	// parse and print are of a statement that may stand on several lines: its words, and its lines without the name.
	parse func(p *parser, words []string)
	print func() []string
}

// statements lists every statement about s in the order of printing.
func statements(s *Scenario) []statement {
	server, network, request, discovery := &s.Server, &s.Network, &s.Request, &s.Discovery
	day, scaler, pools := cmp.Or(s.Day, usualDay()), cmp.Or(s.Autoscale, usualAutoscale()), cmp.Or(s.NodePools, usualNodePools())
	return []statement{
		{name: "clients", parse: parseClients, print: s.printClients},
		{name: "rate", parse: parseRate, print: s.printRate},
		{name: "server", keys: []key{
			at("workers", &server.Workers, whole(1, maxWorkers)),
			at("queue", &server.Queue, whole(0, maxQueue)),
			at("service", &server.Service, distribution()),
			at("start", &server.Start, duration(0, maxWait)),
			at("cold", &server.Cold, number(0, maxFactor)),
			at("warm", &server.Warm, duration(0, maxWait)),
			at("drain", &server.Drain, duration(0, maxWait)),
		}},
		{name: "speed", parse: parseSpeed, print: s.printSpeed},
		{name: "network", keys: []key{
			at("same-zone", &network.SameZone, duration(0, maxTrip)),
			at("cross-zone", &network.CrossZone, duration(0, maxTrip)),
			at("cross-cluster", &network.CrossCluster, duration(0, maxTrip)),
			at("jitter", &network.Jitter, number(0, 10)),
		}},
		{name: "request", keys: []key{
			at("timeout", &request.Timeout, duration(time.Millisecond, maxWait)),
			at("good", &request.Good, duration(0, maxWait)),
			at("attempt", &request.Attempt, duration(0, maxWait)),
			at("retries", &request.Retries, whole(0, maxRetries)),
			at("budget", &request.Budget, number(0, maxRetries)),
			at("backoff", &request.Backoff, duration(0, maxWait)),
			at("bytes", &request.Bytes, size()),
			at("polls", &request.Polls, number(0, 1)),
			at("streams", &request.Streams, number(0, 1)),
			at("hold", &request.Hold, duration(0, maxLength)),
			at("load", &request.Load, number(0, maxWorkers)),
			flag("accepted", &request.Accepted),
		}},
		{name: "price", keys: []key{at("per-gb", &s.Price.PerGB, number(0, maxDollars))}},
		{name: "discovery", keys: []key{
			at("delay", &discovery.Delay, duration(0, maxWait)),
			at("jitter", &discovery.Jitter, number(0, 1)),
			at("lost", &discovery.Lost, duration(0, maxLength)),
		}},
		{name: "day", attach: func() { s.Day = day }, absent: s.Day == nil, keys: []key{
			at("period", &day.Period, duration(time.Second, maxLength)),
			at("low", &day.Low, number(0, maxFactor)),
			at("high", &day.High, number(0, maxFactor)),
			at("lag", &day.Lag, lag()),
		}},
		{name: "autoscale", attach: func() { s.Autoscale = scaler }, absent: s.Autoscale == nil, keys: []key{
			at("min", &scaler.Min, whole(1, maxEndpoints)),
			at("max", &scaler.Max, whole(1, maxEndpoints)),
			at("target", &scaler.Target, number(0.01, 1)),
			at("every", &scaler.Every, duration(time.Second, maxWait)),
			at("tolerance", &scaler.Tolerance, number(0, 1)),
			at("window", &scaler.Window, duration(time.Second, maxWait)),
			at("stabilization", &scaler.Stabilization, duration(0, maxLength)),
		}},
		{name: "nodes", attach: func() { s.NodePools = pools }, absent: s.NodePools == nil, keys: []key{
			at("pods-per-node", &pools.PodsPerNode, whole(1, maxEndpoints)),
			at("max", &pools.Max, whole(1, maxEndpoints)),
			at("boot", &pools.Boot, duration(0, maxWait)),
			at("idle", &pools.Idle, duration(0, maxLength)),
		}},
		{name: "warmup", keys: []key{at("", &s.NoWarmup, noWarmup())}},
		{name: "length", keys: []key{at("", &s.Length, runLength())}},
		{name: "stress", keys: []key{at("", &s.Stress, window())}},
		{name: "affected", keys: []key{at("", &s.Affected, zoneList())}},
	}
}

// defaults gives the scenario of a file that says nothing: a service of usual size, whose clients do not retry. Budget and
// Backoff do nothing until retries are asked for.
//
// Source of Lost: Kubernetes, kube-controller-manager, --node-monitor-grace-period: 40 s until version 1.31, 50 s from
// then on.
func defaults() *Scenario {
	return &Scenario{
		Server: Server{
			Workers: 4, Queue: 250,
			Service: Distribution{Kind: Lognormal, Mean: 20 * time.Millisecond, CV: 1},
			Start:   5 * time.Second, Cold: 1, Drain: 5 * time.Second,
		},
		Network: Network{
			SameZone: 300 * time.Microsecond, CrossZone: 1200 * time.Microsecond, CrossCluster: 5 * time.Millisecond,
			Jitter: 0.1,
		},
		Request: Request{
			Timeout: time.Second, Budget: 0.2, Backoff: 25 * time.Millisecond, Bytes: 20 << 10,
		},
		Price:     Price{PerGB: 0.02},
		Discovery: Discovery{Delay: 500 * time.Millisecond, Jitter: 0.5, Lost: 40 * time.Second},
		Length:    100 * time.Second,
	}
}

func usualDay() *Day { return &Day{Period: time.Minute, Low: 0.3, High: 1} }

func usualAutoscale() *Autoscale {
	return &Autoscale{
		Min: 1, Max: 100, Target: 0.6, Every: 15 * time.Second, Tolerance: 0.1, Window: 30 * time.Second,
		Stabilization: 5 * time.Minute,
	}
}

func usualNodePools() *NodePools { return &NodePools{PodsPerNode: 4, Max: 10, Boot: time.Minute} }

// defaultStress is the middle of the run: from 30 % of it, and not before the warm-up is over, to 70 %.
func defaultStress(length time.Duration) Window {
	return Window{From: max(Warmup, length/10*3), To: length / 10 * 7}
}

func accept[T any](T) error { return nil }

func noWarmup() kind[bool] {
	return kind[bool]{
		func(text string) (bool, error) {
			if text != "none" {
				return false, fmt.Errorf("want warmup none, or no such statement: then the first %s are not counted", formatTime(Warmup))
			}
			return true, nil
		},
		func(is bool) string { return map[bool]string{true: "none"}[is] }, accept[bool],
	}
}

func runLength() kind[time.Duration] {
	k := duration(minLength, maxLength)
	k.check = func(d time.Duration) error {
		if d >= minLength && d <= maxLength {
			return nil
		}
		return fmt.Errorf("is %s: want %s to %s; the first %s are never counted", formatTime(d), formatTime(minLength),
			formatTime(maxLength), formatTime(Warmup))
	}
	return k
}

// window is a time of the run, as FROM..TO.
func window() kind[Window] {
	return kind[Window]{
		func(text string) (w Window, err error) {
			from, to, found := strings.Cut(text, "..")
			if !found {
				return w, fmt.Errorf("want FROM..TO, as in stress 30s..70s")
			}
			if w.From, err = parseTime(from); err == nil {
				w.To, err = parseTime(to)
			}
			return w, err
		},
		func(w Window) string { return formatTime(w.From) + ".." + formatTime(w.To) }, accept[Window],
	}
}

// zoneList is zones in any order, which becomes that of names.
func zoneList() kind[[]topology.Zone] {
	return kind[[]topology.Zone]{
		func(text string) ([]topology.Zone, error) {
			var zones []topology.Zone
			for word := range strings.FieldsSeq(text) {
				zone, err := topology.ParseZone(word)
				if err != nil {
					return nil, err
				}
				if slices.Contains(zones, zone) {
					return nil, fmt.Errorf("names zone %s twice: remove one", zone)
				}
				zones = append(zones, zone)
			}
			if len(zones) == 0 {
				return nil, fmt.Errorf("names no zone: write one, or leave the statement out for all of them")
			}
			slices.Sort(zones)
			return zones, nil
		},
		func(zones []topology.Zone) string { return strings.Join(names(zones), " ") }, accept[[]topology.Zone],
	}
}

func names(zones []topology.Zone) []string {
	var all []string
	for _, zone := range zones {
		all = append(all, string(zone))
	}
	return all
}

// lag is ZONE:TIME,….
func lag() kind[map[topology.Zone]time.Duration] {
	return kind[map[topology.Zone]time.Duration]{
		parseLag,
		func(lag map[topology.Zone]time.Duration) string {
			var parts []string
			for _, zone := range slices.Sorted(maps.Keys(lag)) {
				parts = append(parts, string(zone)+":"+formatTime(lag[zone]))
			}
			return strings.Join(parts, ",")
		},
		func(lag map[topology.Zone]time.Duration) error {
			for _, zone := range slices.Sorted(maps.Keys(lag)) {
				if err := duration(0, maxLength).check(lag[zone]); err != nil {
					return fmt.Errorf("of zone %s %w", zone, err)
				}
			}
			return nil
		},
	}
}

func parseLag(text string) (map[topology.Zone]time.Duration, error) {
	lag := make(map[topology.Zone]time.Duration)
	for part := range strings.SplitSeq(text, ",") {
		name, value, found := strings.Cut(part, ":")
		if !found {
			return nil, fmt.Errorf("bad lag %q: want ZONE:TIME, as in b:20s", part)
		}
		zone, err := topology.ParseZone(name)
		if err != nil {
			return nil, err
		}
		if _, ok := lag[zone]; ok {
			return nil, fmt.Errorf("names zone %s twice: remove one", zone)
		}
		if lag[zone], err = parseTime(value); err != nil {
			return nil, err
		}
	}
	return lag, nil
}

// clientsOf finds the clients of a zone; nil when there are none.
func (s *Scenario) clientsOf(zone topology.Zone) *Clients {
	for i := range s.Clients {
		if s.Clients[i].Zone == zone {
			return &s.Clients[i]
		}
	}
	return nil
}

// parseClients reads ZONE:COUNT… [shares=PERCENT,…].
func parseClients(p *parser, words []string) {
	var shares []float64
	words = slices.DeleteFunc(words, func(word string) bool {
		list, found := strings.CutPrefix(word, "shares=")
		if found && shares != nil {
			p.refuse("shares", "is there already: remove one")
		}
		if found {
			shares = p.shares(list)
		}
		return found
	})
	p.pairs(words, "ZONE:VALUE, as in a:8", func(name, value string) (err error) {
		c := Clients{Shares: slices.Clone(shares)}
		if c.Zone, err = topology.ParseZone(name); err != nil || !p.note(name) {
			return err
		}
		if c.Count, err = parseInt(value); err == nil {
			p.s.Clients = append(p.s.Clients, c)
		}
		return err
	})
}

// pairs hands every NAME:VALUE to read.
func (p *parser) pairs(words []string, form string, read func(name, value string) error) {
	for _, word := range words {
		name, value, found := strings.Cut(word, ":")
		if !found {
			p.refuse("", "bad %q: want %s", word, form)
		} else if err := read(name, value); err != nil {
			p.refuse("", "%v", err)
		}
	}
}

func (p *parser) shares(list string) []float64 {
	shares := []float64{}
	for part := range strings.SplitSeq(list, ",") {
		share, err := parsePercent(part)
		if err != nil {
			p.refuse("shares", "%v; shares are percentages, as in shares=50,30,20", err)
		}
		shares = append(shares, share)
	}
	return shares
}

// printClients writes zones with equal shares on one line.
func (s *Scenario) printClients() []string {
	var lines []string
	for i, c := range s.Clients {
		word := string(c.Zone) + ":" + strconv.Itoa(c.Count)
		if i > 0 && c.Shares == nil && s.Clients[i-1].Shares == nil {
			lines[len(lines)-1] += " " + word
			continue
		}
		for j, share := range c.Shares {
			word += map[bool]string{true: " shares=", false: ","}[j == 0] + formatPercent(share)
		}
		lines = append(lines, word)
	}
	return lines
}

// parseRate reads ZONE:RATE…; the rates go to their clients when all lines are read.
func parseRate(p *parser, words []string) {
	p.pairs(words, "ZONE:VALUE, as in a:660", func(name, value string) error {
		zone, err := topology.ParseZone(name)
		if err != nil || !p.note(name) {
			return err
		}
		rate, err := parseNumber(value)
		if err == nil {
			p.rates = append(p.rates, zoneRate{zone, rate})
		}
		return err
	})
}

func (s *Scenario) printRate() []string {
	return oneLine(s.Clients, func(c Clients) string { return string(c.Zone) + ":" + formatNumber(c.Rate) })
}

// parseSpeed reads PLACE:FACTOR….
func parseSpeed(p *parser, words []string) {
	p.pairs(words, "PLACE:FACTOR, as in a/1-3:0.5", func(name, value string) error {
		where, err := parseWhere(name)
		if err != nil {
			return err
		}
		speed, err := parseNumber(value)
		if err == nil {
			p.s.Server.Speeds = append(p.s.Server.Speeds, Speed{where, speed})
			p.lines["speed."+where.String()] = p.at // the last one counts
		}
		return err
	})
}

func (s *Scenario) printSpeed() []string {
	return oneLine(s.Server.Speeds, func(sp Speed) string { return sp.Where.String() + ":" + formatNumber(sp.Factor) })
}

// oneLine writes all on a line; none without any.
func oneLine[T any](all []T, write func(T) string) []string {
	if len(all) == 0 {
		return nil
	}
	words := make([]string, 0, len(all))
	for _, one := range all {
		words = append(words, write(one))
	}
	return []string{strings.Join(words, " ")}
}
