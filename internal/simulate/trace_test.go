package simulate_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/weir-lb/weir/internal/sim/strategy"
	"github.com/weir-lb/weir/internal/simulate"
)

func TestATraceTellsWhatOneClientDecided(t *testing.T) {
	base, err := built(t, "nodes a:4 b:4; service web; endpoints a:2 b:2", simulate.Given{
		Rates: rates(t, "a:100,b:100"), Workers: 4, Clients: 2,
	})
	if err != nil {
		t.Fatal(err)
	}
	loss, err := simulate.AskLoss(base, "b")
	if err != nil {
		t.Fatal(err)
	}
	weir, err := strategy.Named("weir")
	if err != nil {
		t.Fatal(err)
	}
	job := simulate.Job{Scenario: simulate.Apply(&loss, base), Strategy: &weir, Seed: 1}
	moments, err := simulate.Trace(t.Context(), job, simulate.Client{Zone: "b", Number: 2})
	if err != nil {
		t.Fatal(err)
	}
	if moments[0].State != "calm" || moments[0].Groups[0].Zone != "b" || moments[0].Groups[0].Share != 1 {
		t.Errorf("the first moment is %+v", moments[0])
	}
	left := slices.ContainsFunc(moments, func(m simulate.Moment) bool {
		return m.Seconds > 30 && m.State != "calm" && m.Groups[0].Share < 0.2 && m.Because != ""
	})
	if !left {
		t.Errorf("the client never left the lost zone: %+v", moments)
	}
	table := simulate.TraceTable(moments)
	if len(table.Rows) != len(moments) || !strings.HasPrefix(table.Rows[0][2], "b 100 (") {
		t.Errorf("the table is %+v", table)
	}
	rows := simulate.TraceRows(moments)
	if len(rows.Rows) < len(moments) || !slices.Equal(rows.Rows[0][1:5], []string{"calm", "b", "", "1"}) {
		t.Errorf("for programs the table is %+v", rows)
	}
	for want, c := range map[string]simulate.Client{
		"no client 3 in zone b": {Zone: "b", Number: 3}, "no client 1 in zone x": {Zone: "x", Number: 1}, "has 4 clients, not 5": {Number: 5},
	} {
		if _, err := simulate.Trace(t.Context(), job, c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("client %+v: %v, want an error with %q", c, err, want)
		}
	}
}

func TestAClientIsNamedByNumberOrByZoneAndNumber(t *testing.T) {
	for text, want := range map[string]simulate.Client{"client=3": {Number: 3}, "client=a/2": {Zone: "a", Number: 2}} {
		if got, err := simulate.ParseClient(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "3", "client=", "client=0", "client=/1", "client=a/x"} {
		if _, err := simulate.ParseClient(text); err == nil {
			t.Errorf("%q names a client", text)
		}
	}
}
