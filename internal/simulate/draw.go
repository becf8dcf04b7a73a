package simulate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-lb/weir/internal/sim/scenario"
)

// drawKind is a family of drawn scenarios.
type drawKind struct {
	name  string
	title string
	// fault writes what is wrong from drawFrom to drawTo: steps, and statements of the section run.
	fault func(*drawing)
}

// drawKinds lists the families, in the order in which they are drawn.
func drawKinds() []drawKind {
	return []drawKind{
		{"calm", "nothing happens", func(*drawing) {}},
		{"surge", "one zone sends more", func(d *drawing) { d.surge(d.zone()) }},
		{"slow", "one zone is slower", func(d *drawing) { d.slow(d.zone().name) }},
		{"delay", "the network to one zone is slower", func(d *drawing) { d.delay(d.zone().name) }},
		{"errors", "one zone answers some requests with errors", func(d *drawing) { d.errors(d.zone().name) }},
		{"loss", "one zone is lost", (*drawing).loss},
		{"part", "some endpoints of one zone are slow or fail", (*drawing).part},
		{"rollout", "all pods are replaced", (*drawing).rollout},
		{"two", "something happens in two zones at once", (*drawing).two},
		{"autoscaling", "one zone sends more and the service is scaled", (*drawing).autoscaling},
		{"flapping", "one zone fails again and again", (*drawing).flapping},
	}
}

// Kinds lists the names and titles of the families of drawn scenarios.
func Kinds() (names, titles []string) {
	for _, k := range drawKinds() {
		names, titles = append(names, k.name), append(titles, k.title)
	}
	return names, titles
}

// KindOf gives the family of a drawn scenario's number, from 1.
func KindOf(number int) string { return kindOf(number).name }

func kindOf(number int) drawKind {
	kinds := drawKinds()
	return kinds[(number-1)%len(kinds)]
}

// The times of a drawn scenario, in seconds: calm before drawFrom, and a return after drawTo.
const (
	drawFrom   = 25
	drawTo     = 60
	drawLength = 75
)

// The bounds of what is drawn.
const (
	leastZones, mostZones         = 2, 5
	leastEndpoints, mostEndpoints = 1, 12 // of a zone
	leastService, mostService     = 2.0, 200.0
	leastCV, mostCV               = 0.3, 2.5
	leastWorkers, mostWorkers     = 1, 16
	leastClients, mostClients     = 1, 300 // of a zone
	leastLoad, mostLoad           = 0.2, 0.75
	mostTotal                     = 0.95 // of what is left of the service while something is wrong, if leastLoad allows it

	// What would make a run take minutes, or say nothing: the requests of all clients in a second.
	leastRate, mostRate = 20.0, 2500.0
)

const drawnPrefix = "random-"

// drawnName names a drawn scenario so that DrawNamed finds it.
func drawnName(seed uint64, number int) string {
	return fmt.Sprintf("%s%d-%d-%s", drawnPrefix, seed, number, KindOf(number))
}

// IsDrawn tells whether a name may be that of a drawn scenario.
func IsDrawn(name string) bool { return strings.HasPrefix(name, drawnPrefix) }

// DrawNamed gives the drawn scenario of a name, random-SEED-NUMBER-KIND.
func DrawNamed(name string) (*scenario.Scenario, error) {
	parts := strings.Split(strings.TrimPrefix(name, drawnPrefix), "-")
	const fields = 3
	if IsDrawn(name) && len(parts) == fields {
		seed, errSeed := strconv.ParseUint(parts[0], 10, 64)
		number, errNumber := strconv.Atoi(parts[1])
		if errSeed == nil && errNumber == nil && number > 0 && drawnName(seed, number) == name {
			return Draw(seed, number), nil
		}
	}
	return nil, fmt.Errorf("no scenario %q: drawn ones are called random-SEED-NUMBER-KIND, as in %s", name, drawnName(1, 2))
}

// Draw gives the scenario of a number, from 1, of those that a seed draws. It depends on both alone: equal arguments give equal
// scenarios, however many are drawn. The kinds take turns.
func Draw(seed uint64, number int) *scenario.Scenario {
	kind := kindOf(number)
	random := rand.New(rand.NewPCG(seed, uint64(number))) //nolint:gosec // not for secrets, and not negative.
	for {
		d := newDrawing(random)
		if d.rate() < leastRate || d.capacity() > mostRate {
			continue
		}
		kind.fault(d)
		d.relieve()
		sc, err := scenario.Parse(drawnName(seed, number), []byte(d.text(kind.title)))
		if err != nil {
			panic("simulate: a drawn scenario is refused: " + err.Error())
		}
		return sc
	}
}

// drawing is a scenario that is being drawn.
type drawing struct {
	random  *rand.Rand
	zones   []drawnZone
	service float64 // milliseconds
	cv      float64
	workers int
	skewed  bool
	costs   []string
	network string

	left     float64 // what can be done while something is wrong, in requests per second
	extra    float64 // what clients send beside rate in that time
	affected []string
	server   string // further fields
	run      string // further statements
	steps    []string
}

// drawnZone is a zone of a drawing.
type drawnZone struct {
	name      string
	endpoints int
	clients   int
	load      float64 // of what its own endpoints can do
}

func newDrawing(random *rand.Rand) *drawing {
	d := &drawing{random: random}
	d.service = d.spread(leastService, mostService)
	d.cv = rounded(d.spread(leastCV, mostCV))
	d.workers = int(math.Round(d.spread(leastWorkers, mostWorkers)))
	d.skewed = d.often(0.5)
	alike, same := d.often(0.3), d.often(0.5)
	endpoints, clients, load := d.between(leastEndpoints, mostEndpoints), d.clients(), d.load()
	for i := range d.between(leastZones, mostZones) {
		z := drawnZone{name: string(rune('a' + i)), endpoints: endpoints, clients: clients, load: load}
		if !alike {
			z.endpoints = d.between(leastEndpoints, mostEndpoints)
		}
		if !same {
			z.clients, z.load = d.clients(), d.load()
		}
		d.zones = append(d.zones, z)
	}
	if d.often(0.5) {
		for _, from := range d.zones {
			for _, to := range d.zones {
				if from.name != to.name {
					d.costs = append(d.costs, fmt.Sprintf("%s>%s=%v", from.name, to.name, rounded(d.spread(0.5, 4))))
				}
			}
		}
	}
	d.network = fmt.Sprintf("network same-zone=%dus cross-zone=%dus", d.between(200, 500), d.between(500, 3000))
	d.left = d.capacity()
	return d
}

// often is true with a probability.
func (d *drawing) often(probability float64) bool { return d.random.Float64() < probability }

// between draws a whole number, both ends included.
func (d *drawing) between(least, most int) int { return least + d.random.IntN(most-least+1) }

// even draws a number, all alike.
func (d *drawing) even(least, most float64) float64 { return least + (most-least)*d.random.Float64() }

// spread draws a number, all orders of magnitude alike.
func (d *drawing) spread(least, most float64) float64 {
	return least * math.Pow(most/least, d.random.Float64())
}

func (d *drawing) clients() int  { return int(math.Round(d.spread(leastClients, mostClients))) }
func (d *drawing) load() float64 { return d.even(leastLoad, mostLoad) }

// rounded keeps two digits: scenarios are read by people.
func rounded(f float64) float64 {
	r, _ := strconv.ParseFloat(strconv.FormatFloat(f, 'g', 2, 64), 64)
	return r
}

// can is what endpoints can do, in requests per second.
func (d *drawing) can(endpoints int) float64 {
	const second = 1000 // milliseconds
	return float64(endpoints*d.workers) * second / d.service
}

func (d *drawing) capacity() float64 {
	sum := 0.0
	for _, z := range d.zones {
		sum += d.can(z.endpoints)
	}
	return sum
}

// rate is what all clients send.
func (d *drawing) rate() float64 {
	sum := 0.0
	for _, z := range d.zones {
		sum += z.load * d.can(z.endpoints)
	}
	return sum
}

// relieve lowers the load so that what is left of the service can carry it, but not below leastLoad: a scenario that nothing can
// mend compares nothing.
func (d *drawing) relieve() {
	factor := mostTotal * d.left / (d.rate() + d.extra)
	for i := range d.zones {
		if factor < 1 {
			d.zones[i].load = max(leastLoad, factor*d.zones[i].load)
		}
	}
}

// zone draws one zone, which the stress is about.
func (d *drawing) zone() *drawnZone {
	z := &d.zones[d.random.IntN(len(d.zones))]
	d.affect(z.name)
	return z
}

func (d *drawing) affect(zone string) {
	if !slices.Contains(d.affected, zone) {
		d.affected = append(d.affected, zone)
	}
}

// step adds what happens at a time.
func (d *drawing) step(at int, format string, args ...any) {
	d.steps = append(d.steps, fmt.Sprintf("%ds ", at)+fmt.Sprintf(format, args...))
}

// lose takes a part of a zone's capacity out of what is left.
func (d *drawing) lose(zone string, part float64) {
	for _, z := range d.zones {
		if z.name == zone {
			d.left -= part * d.can(z.endpoints)
		}
	}
}

// surge multiplies a zone's requests by what uses up a part of the spare capacity of all.
func (d *drawing) surge(z *drawnZone) {
	spare := mostTotal*d.capacity() - d.rate()
	factor := 1 + d.even(0.2, 0.9)*max(0, spare)/(z.load*d.can(z.endpoints))
	factor = max(1.1, rounded(factor))
	d.extra += (factor - 1) * z.load * d.can(z.endpoints)
	d.step(drawFrom, "rate %s x%v over %ds", z.name, factor, d.between(0, 10))
	d.step(drawTo, "rate %s x1", z.name)
}

func (d *drawing) slow(place string) {
	factor := rounded(d.spread(1.5, 10))
	d.lose(place, 1-1/factor)
	d.step(drawFrom, "slow %s x%v", place, factor)
	d.step(drawTo, "heal %s", place)
}

func (d *drawing) delay(zone string) {
	d.step(drawFrom, "delay %s %dms", zone, int(math.Round(d.spread(5, 300))))
	d.step(drawTo, "heal %s", zone)
}

func (d *drawing) errors(zone string) {
	part := min(1, rounded(d.even(0.05, 1.2)))
	d.lose(zone, part)
	d.step(drawFrom, "fail %s %v", zone, part)
	d.step(drawTo, "heal %s", zone)
}

func (d *drawing) loss() {
	z := d.zone().name
	d.lose(z, 1)
	d.step(drawFrom, "lose %s", z)
	d.step(drawTo, "return %s", z)
}

// part lets some endpoints of a zone be slow, fail or hang.
func (d *drawing) part() {
	z := d.zone()
	count := d.between(1, max(1, z.endpoints-1))
	place := fmt.Sprintf("%s/1-%d", z.name, count)
	d.lose(z.name, float64(count)/float64(z.endpoints))
	switch d.random.IntN(3) {
	case 0:
		d.step(drawFrom, "slow %s x%v", place, rounded(d.spread(2, 20)))
	case 1:
		d.step(drawFrom, "fail %s %v", place, min(1, rounded(d.even(0.1, 1.3))))
	default:
		d.step(drawFrom, "hang %s", place)
	}
	d.step(drawTo, "heal %s", place)
}

// rollout replaces all pods of a zone, or of all, which are slow at first.
func (d *drawing) rollout() {
	place, pods := "*", d.pods()
	if d.often(0.5) {
		z := d.zone()
		place, pods = z.name, z.endpoints
	}
	d.server = fmt.Sprintf(" cold=%v warm=%ds", rounded(d.spread(1.2, 5)), d.between(5, 15))
	batches := d.between(3, 7) // of 5 s each
	d.step(drawFrom, "rollout %s batch=%d", place, (pods+batches-1)/batches)
}

// two lets something happen in two zones at once.
func (d *drawing) two() {
	first := d.random.IntN(len(d.zones))
	second := (first + 1 + d.random.IntN(len(d.zones)-1)) % len(d.zones)
	for _, i := range []int{first, second} {
		z := &d.zones[i]
		d.affect(z.name)
		switch d.random.IntN(4) {
		case 0:
			d.surge(z)
		case 1:
			d.slow(z.name)
		case 2:
			d.delay(z.name)
		default:
			d.errors(z.name)
		}
	}
}

// pods gives how many there are before anything happens.
func (d *drawing) pods() int {
	n := 0
	for _, z := range d.zones {
		n += z.endpoints
	}
	return n
}

// autoscaling adds pods while a zone sends more.
func (d *drawing) autoscaling() {
	pods := d.pods()
	d.run = fmt.Sprintf("autoscale min=%d max=%d target=%v window=15s stabilization=60s\n", pods, 2*pods, rounded(d.even(0.5, 0.7)))
	d.surge(d.zone())
}

// flapping lets a zone fail and recover several times.
func (d *drawing) flapping() {
	z := d.zone().name
	fault := []string{
		fmt.Sprintf("slow %s x%v", z, rounded(d.spread(2, 10))), fmt.Sprintf("fail %s %v", z, rounded(d.even(0.3, 1))), "hang " + z, "refuse " + z,
	}[d.random.IntN(4)]
	d.lose(z, 1)
	bad, good := d.between(2, 8), d.between(2, 8)
	for at := drawFrom; at < drawTo; at += bad + good {
		d.step(at, "%s", fault)
		d.step(min(at+bad, drawTo), "heal %s", z)
	}
}

// text writes the drawing as a scenario file.
func (d *drawing) text(title string) string {
	var nodes, endpoints, clients, rates, costs string
	for _, z := range d.zones {
		nodes += fmt.Sprintf(" r/%s:8x2", z.name)
		endpoints += fmt.Sprintf(" %s:%d", z.name, z.endpoints)
		clients += fmt.Sprintf("clients %s:%d%s\n", z.name, z.clients, d.shares(z.clients))
		rates += fmt.Sprintf(" %s:%.2f", z.name, z.load*d.can(z.endpoints))
	}
	if len(d.costs) > 0 {
		costs = "costs " + strings.Join(d.costs, " ") + "\n"
	}
	const second, patience = 1000, 20 // milliseconds; mean service times
	affected := ""
	if len(d.affected) > 0 {
		slices.Sort(d.affected)
		affected = "affected " + strings.Join(d.affected, " ") + "\n"
	}
	return fmt.Sprintf("Drawn at random: %s\n-- cluster --\nnodes%s\n%sservice shop/web\nendpoints%s\n-- run --\n%srate%s\n",
		title, nodes, costs, endpoints, clients, rates) +
		fmt.Sprintf("server workers=%d queue=%d service=lognormal:%dus,cv=%v%s\n%s\nrequest timeout=%dms\n",
			d.workers, max(queueLeast, queuePerWorker*d.workers), int(d.service*second), d.cv, d.server, d.network,
			int(max(second, patience*d.service))) +
		fmt.Sprintf("%slength %ds\nstress %ds..%ds\n%s-- steps --\n%s\n", d.run, drawLength, drawFrom, drawTo, affected, strings.Join(d.steps, "\n"))
}

// shares divides a zone's requests over its clients as their ranks have it (G. Zipf); empty: evenly.
func (d *drawing) shares(clients int) string {
	if !d.skewed || clients == 1 {
		return ""
	}
	weights, sum := make([]float64, clients), 0.0
	for i := range weights {
		weights[i] = 1 / float64(i+1)
		sum += weights[i]
	}
	const digits = 1e4 // of a percentage, so that they sum to 100 exactly
	whole, words := 100*int(digits), make([]string, clients)
	for i := clients - 1; i >= 0; i-- {
		part := max(1, int(100*digits*weights[i]/sum))
		if i == 0 {
			part = whole
		}
		whole -= part
		words[i] = strconv.FormatFloat(float64(part)/digits, 'f', -1, 64)
	}
	return " shares=" + strings.Join(words, ",")
}
