package scenario

import (
	"strings"
	"time"
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
	maxWay       = 10 * time.Second
	maxRetries   = 100
)

// minLength leaves some time between the warm-up and the default stress.
const minLength = 15 * time.Second

// Warmup is the beginning of each run that no figure counts: clients know nothing yet, queues are empty.
const Warmup = 10 * time.Second

// statement is a kind of line of the run section: a word and what follows it.
type statement struct {
	name string
	// repeated: the statement may stand on several lines.
	repeated bool
	// keys are its FIELD=VALUEs; none when it reads its words itself.
	keys []key
	// part gives the optional part of the scenario that the keys are in; nil when there always is one.
	part  func(s *Scenario) (there bool)
	parse func(p *parser, words []string)
	print func(s *Scenario) []string // a line each, without the name
}

// statements lists every statement in the order of printing.
func statements() []statement {
	return []statement{
		{name: "clients", repeated: true, parse: parseClients, print: printClients},
		{name: "rate", repeated: true, parse: parseRate, print: printRate},
		keyed("server", nil, serverKeys()),
		{name: "speed", repeated: true, parse: parseSpeed, print: printSpeed},
		keyed("network", nil, networkKeys()),
		keyed("request", nil, requestKeys()),
		keyed("price", nil, []key{
			numberKey("per-gb", func(s *Scenario) *float64 { return &s.Price.PerGB }, 0, maxDollars),
		}),
		keyed("discovery", nil, discoveryKeys()),
		keyed("day", func(s *Scenario) bool { return s.Day != nil }, dayKeys()),
		keyed("autoscale", func(s *Scenario) bool { return s.Autoscale != nil }, autoscaleKeys()),
		keyed("nodes", func(s *Scenario) bool { return s.NodePools != nil }, nodeKeys()),
		{name: "warmup", parse: parseWarmup, print: printWarmup},
		{name: "length", parse: parseLength, print: printLength},
		{name: "stress", parse: parseStress, print: printStress},
		{name: "affected", parse: parseAffected, print: printAffected},
	}
}

// keyed is a statement of nothing but FIELD=VALUEs.
func keyed(name string, part func(*Scenario) bool, keys []key) statement {
	return statement{
		name: name, keys: keys, part: part,
		parse: func(p *parser, words []string) { p.keys(keys, words) },
		print: func(s *Scenario) []string { return printKeys(s, part, keys) },
	}
}

// printKeys writes the values that are not the default; a part that is there is written even when all are.
func printKeys(s *Scenario, part func(*Scenario) bool, keys []key) []string {
	if part != nil && !part(s) {
		return nil
	}
	usual := defaults()
	usual.addDay()
	usual.addAutoscale()
	usual.addNodePools()
	var words []string
	for _, k := range keys {
		switch text := k.print(s); {
		case text == k.print(usual):
		case k.flag:
			words = append(words, k.name)
		default:
			words = append(words, k.name+"="+text)
		}
	}
	if len(words) == 0 && part == nil {
		return nil
	}
	return []string{strings.Join(words, " ")}
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

func (s *Scenario) addDay() { s.Day = &Day{Period: time.Minute, Low: 0.3, High: 1} }

func (s *Scenario) addAutoscale() {
	s.Autoscale = &Autoscale{
		Min: 1, Max: 100, Target: 0.6, Every: 15 * time.Second, Tolerance: 0.1, Window: 30 * time.Second,
		Stabilization: 5 * time.Minute,
	}
}

func (s *Scenario) addNodePools() {
	s.NodePools = &NodePools{PodsPerNode: 4, Max: 10, Boot: time.Minute}
}

// defaultStress is the middle of the run: from 30 % of it, and not before the warm-up is over, to 70 %.
func defaultStress(length time.Duration) Window {
	return Window{From: max(Warmup, length/10*3), To: length / 10 * 7}
}
