package simulate_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/sim"
	"github.com/weir-lb/weir/internal/sim/strategy"
	"github.com/weir-lb/weir/internal/simulate"
)

// telling is a run whose figures say which scenario, mode and seed it was of.
type telling struct{ job simulate.Job }

func (telling) Step(time.Duration) {}

func (r telling) Result() *sim.Result {
	figures := sim.Figures{Requests: 60, Success: 1, InZone: 0.5, P99: 30 * time.Millisecond, Dollars: 2}
	if r.job.Strategy.Mode == topology.ModePreferSameZone {
		figures.InZone = 1
	}
	if len(r.job.Scenario.Steps) > 0 {
		figures.Success = 0.75
	}
	figures.P99 += time.Duration(r.job.Seed) * time.Millisecond //nolint:gosec // small.
	return &sim.Result{Window: figures, PeakLoad: float64(len(r.job.Scenario.Snapshot.Services[0].Endpoints))}
}

func TestAnswersCompareEachStrategyWithItself(t *testing.T) {
	base, err := built(t, shop, simulate.Given{Rates: rates(t, "600")})
	if err != nil {
		t.Fatal(err)
	}
	today, err := simulate.Today(base.Snapshot.Services[0].Mode)
	if err != nil {
		t.Fatal(err)
	}
	weir, err := strategy.Named("weir")
	if err != nil {
		t.Fatal(err)
	}
	loss, err := simulate.AskLoss(base, "a")
	if err != nil {
		t.Fatal(err)
	}
	more, err := simulate.AskReplicas(base, "", 8)
	if err != nil {
		t.Fatal(err)
	}
	answers, err := simulate.Ask(t.Context(), simulate.Inquiry{
		Base: base, Questions: []simulate.Question{simulate.AskMode(topology.ModePreferSameZone), loss, more},
		Strategies: []strategy.Strategy{today, weir},
		Run: simulate.Options{Seeds: 3, First: 1, Start: func(j simulate.Job) (simulate.Simulation, error) {
			return telling{j}, nil
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	now := simulate.Summary{Requests: 60, InZone: 0.5, Success: 1, P99: 32, PeakLoad: 6, DollarsPerMonth: 1460}
	inZone, lost, scaled := now, now, now
	inZone.InZone, lost.Success, scaled.PeakLoad = 1, 0.75, 8
	var want []simulate.Answer
	for _, q := range []simulate.Answer{
		{Question: "mode-prefersamezone", Title: "mode PreferSameZone", After: inZone},
		{Question: "lose-a", Title: "zone a lost", After: lost},
		{Question: "replicas-8", Title: "8 replicas", After: scaled},
	} {
		for _, strategy := range []string{"kube-proxy", "weir"} {
			q.Strategy, q.Before = strategy, now
			want = append(want, q)
		}
	}
	if diff := cmp.Diff(want, answers, cmp.Transformer("rounded", func(f float64) float32 { return float32(f) })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	rows := simulate.AnswerRows(answers[3:4])
	wantRows := [][]string{
		{"lose-a", "weir", "inZone", "0.5", "0.5"},
		{"lose-a", "weir", "success", "1", "0.75"},
	}
	if diff := cmp.Diff(wantRows, rows.Rows[:2]); diff != "" || len(rows.Rows) != 6 {
		t.Errorf("for programs (-want +got):\n%s of %d rows", diff, len(rows.Rows))
	}
	var b strings.Builder
	table := simulate.AnswerTable(answers[2:4])
	if err := table.Markdown(&b, 2); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"| WHAT IF | STRATEGY | IN ZONE % | SUCCESS % | P99 MS | PEAK LOAD | $/MONTH |\n| --- | --- | ---: |",
		"| as it is | kube-proxy | 50.0 | 100.00 | 32 | 6.00 | 1460 |",
		"| zone a lost | weir | 50.0 → 50.0 | 100.00 → 75.00 | 32 → 32 | 6.00 → 6.00 | 1460 → 1460 |",
	} {
		if !strings.Contains(b.String(), line) {
			t.Errorf("the table lacks %q:\n%s", line, b.String())
		}
	}
}

func TestARunWithoutRequestsSaysNothingOfThem(t *testing.T) {
	base, err := built(t, "nodes a:4 b:4; service web; endpoints a:2 b:2", simulate.Given{Rates: rates(t, "a:20"), Clients: 1})
	if err != nil {
		t.Fatal(err)
	}
	none, err := simulate.AskTraffic(base, "a", 0)
	if err != nil {
		t.Fatal(err)
	}
	weir, err := strategy.Named("weir")
	if err != nil {
		t.Fatal(err)
	}
	answers, err := simulate.Ask(t.Context(), simulate.Inquiry{
		Base: base, Questions: []simulate.Question{none}, Strategies: []strategy.Strategy{weir}, Run: simulate.Options{Seeds: 2},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := answers[0].After; got != (simulate.Summary{}) || answers[0].Before.Requests < 1000 || answers[0].Before.InZone < 0.9 {
		t.Errorf("before %+v, after %+v", answers[0].Before, got)
	}
	row := simulate.AnswerTable(answers).Rows[1]
	for _, cell := range row[2:5] {
		if !strings.HasSuffix(cell, " → -") {
			t.Errorf("after: %v", row)
		}
	}
}

func TestTodayIsKubeProxyInEachMode(t *testing.T) {
	for _, mode := range append(topology.Modes(), topology.ModeUnset) {
		c, err := simulate.Today(mode)
		if err != nil {
			t.Fatal(err)
		}
		want := mode
		if mode == topology.ModeUnset {
			want = topology.ModeDisabled
		}
		if c.Name != simulate.TodayName || c.Mode != want || !c.KeepsHome || c.New == nil {
			t.Errorf("mode %q: %s, %s, keeps home %v", mode, c.Name, c.Mode, c.KeepsHome)
		}
	}
}

func TestRealRunsAnswerWhatALostZoneDoes(t *testing.T) {
	base, err := built(t, "nodes a:4 b:4; service web mode=PreferSameZone; endpoints a:2 b:2", simulate.Given{
		Rates: rates(t, "a:40,b:40"), Workers: 4, Bytes: 20_000, PerGB: 0.02, Clients: 2,
	})
	if err != nil {
		t.Fatal(err)
	}
	today, err := simulate.Today(topology.ModePreferSameZone)
	if err != nil {
		t.Fatal(err)
	}
	weir, err := strategy.Named("weir")
	if err != nil {
		t.Fatal(err)
	}
	loss, err := simulate.AskLoss(base, "a")
	if err != nil {
		t.Fatal(err)
	}
	answers, err := simulate.Ask(t.Context(), simulate.Inquiry{
		Base: base, Questions: []simulate.Question{loss, simulate.AskMode(topology.ModeDisabled)},
		Strategies: []strategy.Strategy{today, weir}, Run: simulate.Options{First: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	proxy, law, blind := answers[0], answers[1], answers[2]
	if proxy.Before.InZone != 1 || proxy.Before.DollarsPerMonth != 0 || proxy.Before.Success < 0.999 {
		t.Errorf("before: %+v", proxy.Before)
	}
	// Kubernetes notices the loss after 40 of the 60 seconds; until then half of the requests get no answer.
	if proxy.After.Success > 0.75 || law.After.Success < 0.9 {
		t.Errorf("zone a lost: %.3f of kube-proxy's requests succeed and %.3f of weir's", proxy.After.Success, law.After.Success)
	}
	if blind.After.InZone > 0.6 || blind.After.DollarsPerMonth <= 0 {
		t.Errorf("without hints: %+v", blind.After)
	}
}

func TestAnInquiryWithoutQuestionsOrInACancelledContextFails(t *testing.T) {
	base, err := built(t, shop, simulate.Given{Rates: rates(t, "600")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := simulate.Ask(t.Context(), simulate.Inquiry{Base: base}); err == nil {
		t.Error("nothing was asked, and it was answered")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	weir, err := strategy.Named("weir")
	if err != nil {
		t.Fatal(err)
	}
	_, err = simulate.Ask(ctx, simulate.Inquiry{
		Base: base, Questions: []simulate.Question{simulate.AskMode(topology.ModeAuto)}, Strategies: []strategy.Strategy{weir},
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
