package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/sim/scenario"
	"github.com/weir-lb/weir/internal/sim/strategy"
	"github.com/weir-lb/weir/internal/simulate"
)

// whatIfFlags describe a service, and what might be otherwise.
type whatIfFlags struct {
	service     string
	rate        string
	bytes       string
	serviceTime time.Duration
	cv          float64
	workers     int
	utilisation float64
	clients     int
	price       float64

	modes, replicas, lost, traffic []string
	file                           string

	isAsking bool // one of these flags was typed
}

// names are those of the flags that ask, or tell about the service that is asked about.
func (f *whatIfFlags) names() []string {
	var other whatIfFlags
	var names []string
	other.group().VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
	return names
}

func (f *whatIfFlags) group() flagGroup {
	g := group("What if")
	g.StringVar(&f.service, "service", "", "ask about this service, [NAMESPACE/]NAME, of the cluster or of --filename")
	g.StringVar(&f.rate, "rate", "", "its requests per second: 2000, divided as the service says or by the zones' CPU, or a:1200,b:400,c:400")
	g.DurationVar(&f.serviceTime, "service-time", 0, "mean time that a request takes an endpoint (default 20ms, or what --workers and --utilisation make it)")
	g.Float64Var(&f.cv, "cv", 1, "how much that varies: standard deviation over mean")
	g.IntVar(&f.workers, "workers", 0, "requests that an endpoint serves at once (default what --service-time and --utilisation make it)")
	g.Float64Var(&f.utilisation, "utilisation", 0, fmt.Sprintf("how busy the endpoints are now, on average (default %v, unless --workers says)",
		simulate.DefaultUtilisation))
	g.StringVar(&f.bytes, "bytes", "20KiB", "size of a request and its answer together")
	g.IntVar(&f.clients, "clients", simulate.DefaultClients, "clients in each zone")
	g.Float64Var(&f.price, "price", defaultPrice, "dollars for a GB that travels one cost unit, which is one crossing between zones")
	g.StringSliceVar(&f.modes, "mode", nil, "what if it had this distribution mode; may be repeated, as all that follow: "+modeNames())
	g.StringSliceVar(&f.replicas, "replicas", nil, "what if it had so many endpoints: NUMBER, or ZONE:NUMBER")
	g.StringSliceVar(&f.lost, "lose", nil, "what if the endpoints of this zone were lost")
	g.StringSliceVar(&f.traffic, "traffic", nil, "what if the traffic of a zone were multiplied: ZONE:x2")
	g.StringVar(&f.file, "write-scenario", "", "write the service as it is to this file, a scenario to be edited and played")
	return g
}

// ask answers questions about a service.
func (f *simulateFlags) ask(c *cobra.Command) error {
	given, err := f.asks.given()
	if err != nil {
		return err
	}
	if f.asks.file != "" {
		if err := canWrite(f.asks.file); err != nil {
			return fmt.Errorf("--write-scenario: %w", err)
		}
	}
	base, err := f.base(c, given)
	if err != nil {
		return err
	}
	questions, err := f.asks.questions(base)
	if err != nil {
		return err
	}
	strategies, err := f.asked(c, base)
	if err != nil {
		return err
	}
	if f.asks.file != "" {
		err := writeAtomically(f.asks.file, func(w io.Writer) error {
			_, err := io.WriteString(w, base.String())
			return err
		})
		if err != nil {
			return fmt.Errorf("--write-scenario: %w", err)
		}
	}
	bar := f.bar(c)
	o := f.options(askSeeds)
	o.Progress = bar.show
	answers, err := simulate.Ask(c.Context(), simulate.Inquiry{Base: base, Questions: questions, Strategies: strategies, Run: o})
	bar.clear()
	if err != nil {
		return err
	}
	return f.printAnswers(c, base, answers)
}

// base makes a scenario of the service.
func (f *simulateFlags) base(c *cobra.Command, given simulate.Given) (*scenario.Scenario, error) {
	args := []string{f.asks.service}
	inputs, err := f.objects.inputs(c, args)
	if err != nil {
		return nil, err
	}
	c.SilenceUsage = true
	inputs.warn(c)
	records, err := f.objects.records(inputs, args)
	if err != nil {
		return nil, err
	}
	base, err := simulate.Build(&inputs.Snapshot, records[0].Service, given)
	if err != nil {
		return nil, err
	}
	mistakes := make([]error, 0)
	for _, m := range base.Validate() {
		mistakes = append(mistakes, m)
	}
	return base, errors.Join(mistakes...)
}

// given reads what the objects do not tell.
func (f *whatIfFlags) given() (simulate.Given, error) {
	g := simulate.Given{
		ServiceTime: f.serviceTime, Workers: f.workers, Utilisation: f.utilisation, CV: f.cv, Clients: f.clients, PerGB: f.price,
	}
	if f.rate == "" {
		return g, errors.New("--service needs a --rate, in requests per second")
	}
	var err error
	if g.Rates, err = simulate.ParseRates(f.rate); err != nil {
		return g, fmt.Errorf("--rate: %w", err)
	}
	if g.Bytes, err = parseBytes(f.bytes); err != nil {
		return g, fmt.Errorf("--bytes: %w", err)
	}
	const maxCV, maxClients = 10, 10_000 // beyond them a run says nothing, or does not end
	switch {
	case f.serviceTime < 0 || f.workers < 0 || f.utilisation < 0:
		return g, fmt.Errorf("--service-time=%v --workers=%d --utilisation=%v: want none below 0", f.serviceTime, f.workers, f.utilisation)
	case f.serviceTime > 0 && f.workers > 0 && f.utilisation > 0:
		return g, errors.New("--service-time, --workers and --utilisation: two of them say what the third is")
	case !(f.cv >= 0 && f.cv <= maxCV):
		return g, fmt.Errorf("--cv=%v: want 0 to %d", f.cv, maxCV)
	case f.clients < 1 || f.clients > maxClients:
		return g, fmt.Errorf("--clients=%d: want 1 to %d", f.clients, maxClients)
	case !(f.price >= 0 && f.price <= maxPrice):
		return g, fmt.Errorf("--price=%v: want 0 to %v", f.price, maxPrice)
	}
	return g, nil
}

// parseBytes reads 2000, 20KB, 20KiB, 1MB or 1MiB.
func parseBytes(text string) (float64, error) {
	number := strings.TrimRight(text, "KMiB")
	unit := map[string]float64{"": 1, "B": 1, "KB": 1e3, "KiB": 1 << 10, "MB": 1e6, "MiB": 1 << 20}[text[len(number):]]
	n, err := strconv.ParseFloat(number, 64)
	const most = 1e12
	if err != nil || unit == 0 || !(n >= 0 && n*unit <= most) {
		return 0, fmt.Errorf("%q: want a size such as 20KiB or 1MB", text)
	}
	return n * unit, nil
}

// questions are those that were asked; the usual ones if none was.
func (f *whatIfFlags) questions(base *scenario.Scenario) ([]simulate.Question, error) {
	var all []simulate.Question
	var mistakes []error
	add := func(flag, value string, q simulate.Question, err error) {
		if err != nil {
			mistakes = append(mistakes, fmt.Errorf("--%s=%s: %w", flag, value, err))
			return
		}
		if slices.ContainsFunc(all, func(other simulate.Question) bool { return other.Name == q.Name }) {
			mistakes = append(mistakes, fmt.Errorf("--%s=%s: it is asked twice", flag, value))
		}
		all = append(all, q)
	}
	for _, text := range f.modes {
		mode, err := topology.ParseMode(text)
		add("mode", text, simulate.AskMode(mode), err)
	}
	for _, text := range f.replicas {
		q, err := askReplicas(base, text)
		add("replicas", text, q, err)
	}
	for _, text := range f.lost {
		q, err := simulate.AskLoss(base, topology.Zone(text))
		add("lose", text, q, err)
	}
	for _, text := range f.traffic {
		q, err := askTraffic(base, text)
		add("traffic", text, q, err)
	}
	switch {
	case len(mistakes) > 0:
		return nil, &usageError{errors.Join(mistakes...)}
	case len(all) == 0:
		return simulate.DefaultQuestions(base)
	default:
		return all, nil
	}
}

func askReplicas(base *scenario.Scenario, text string) (simulate.Question, error) {
	zone, number, ok := strings.Cut(text, ":")
	if !ok {
		zone, number = "", text
	}
	n, err := strconv.Atoi(number)
	if err != nil || ok && zone == "" {
		return simulate.Question{}, errors.New("want NUMBER or ZONE:NUMBER")
	}
	return simulate.AskReplicas(base, topology.Zone(zone), n)
}

func askTraffic(base *scenario.Scenario, text string) (simulate.Question, error) {
	zone, factor, _ := strings.Cut(text, ":")
	number, ok := strings.CutPrefix(factor, "x")
	n, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || math.IsNaN(n) || zone == "" {
		return simulate.Question{}, errors.New("want ZONE:xFACTOR, such as zone-a:x2")
	}
	return simulate.AskTraffic(base, topology.Zone(zone), n)
}

// asked are the strategies: what the service has, and weir, unless others are named.
func (f *simulateFlags) asked(c *cobra.Command, base *scenario.Scenario) ([]strategy.Strategy, error) {
	if !c.Flags().Changed("strategies") {
		f.strategies = []string{simulate.TodayName, weirStrategy}
	}
	made := strategy.With(f.config)
	all, err := f.named(func(name string) (strategy.Strategy, error) {
		if strings.EqualFold(strings.TrimSpace(name), simulate.TodayName) {
			return simulate.Today(base.Snapshot.Services[0].Mode)
		}
		return strategyNamed(made, name)
	})
	if err != nil {
		return nil, &usageError{err}
	}
	return all, nil
}

// printAnswers prints answers as asked.
func (f *simulateFlags) printAnswers(c *cobra.Command, base *scenario.Scenario, answers []simulate.Answer) error {
	w := c.OutOrStdout()
	svc := base.Snapshot.Services[0]
	if f.output == "table" || f.output == "markdown" {
		rate := 0.0
		for _, group := range base.Clients {
			rate += group.Rate
		}
		_, err := fmt.Fprintf(w, "%s, mode %s: ready endpoints %d, workers of each %d, requests of %v on average; at %.0f requests/s they are %.0f %% busy.\n\n",
			svc.ServiceName, svc.Mode, len(svc.Endpoints), base.Server.Workers, base.Server.Service.Mean, rate, 100*simulate.Utilisation(base))
		if err != nil {
			return err
		}
	}
	const words = 2
	return f.printReport(c, report{table: simulate.AnswerTable(answers), left: words, rows: simulate.AnswerRows(answers), data: struct {
		notes
		Service     string            `json:"service"`
		Mode        topology.Mode     `json:"mode"`
		Utilisation float64           `json:"utilisation"`
		Answers     []simulate.Answer `json:"answers"`
	}{newNotes(), svc.String(), svc.Mode, simulate.Utilisation(base), answers}})
}
