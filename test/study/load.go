package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/weir-lb/weir/internal/sim"
	"github.com/weir-lb/weir/internal/sim/scenario"
	"github.com/weir-lb/weir/internal/sim/strategy"
	"github.com/weir-lb/weir/internal/simulate"
)

// The cells of the load table: the load of all endpoints in percent, and the clients in each zone.
const (
	loads       = "70 80 85 90 93 96 105"
	clientCells = "1 2 4 8 30"
	// loadStrategies are compared in it.
	loadStrategies = "random hazl weir"
)

// loaded makes the scenario of a cell: 18 endpoints in three zones at 65 %, and zone a's clients send more until all together
// are at that load.
func loaded(percent, clients int) (*scenario.Scenario, error) {
	const zone = 1200.0 // requests per second that a zone's endpoints can serve
	usual := 0.65 * zone
	raised := float64(percent)/100*3*zone - 2*usual
	return scenario.Parse(fmt.Sprintf("load-%d-%d.txtar", percent, clients), fmt.Appendf(nil, `One zone's demand raised until all endpoints are at %d %%

Clients in each zone: %d.
-- cluster --
nodes a:16x2 b:16x2 c:16x2
service web
endpoints a:6 b:6 c:6
-- run --
clients a:%[2]d b:%[2]d c:%[2]d
rate a:%[3]g b:%[3]g c:%[3]g
server service=lognormal:20ms,cv=1.2
length 70s
stress 30s..70s
affected a
-- steps --
30s rate a x%.4[4]f
`, percent, clients, usual, raised/usual))
}

// parseCell makes the scenario of LOAD/CLIENTS.
func parseCell(cell string) (*scenario.Scenario, error) {
	load, clients, _ := strings.Cut(cell, "/")
	percent, err := strconv.Atoi(load)
	if err != nil {
		return nil, fmt.Errorf("load-table: %q is no LOAD/CLIENTS such as 90/1", cell)
	}
	n, err := strconv.Atoi(clients)
	if err != nil {
		return nil, fmt.Errorf("load-table: %q is no LOAD/CLIENTS such as 90/1", cell)
	}
	return loaded(percent, n)
}

// loadTable compares the strategies at several loads and numbers of clients: LOAD/CLIENTS…, or all cells.
func loadTable(ctx context.Context, w io.Writer, cells []string, o simulate.Options) error {
	for name := range strings.FieldsSeq(loadStrategies) {
		s, err := strategy.Named(name)
		if err != nil {
			return err
		}
		o.Strategies = append(o.Strategies, s)
	}
	if len(cells) == 0 {
		for percent := range strings.FieldsSeq(loads) {
			for clients := range strings.FieldsSeq(clientCells) {
				cells = append(cells, percent+"/"+clients)
			}
		}
	}
	for _, cell := range cells {
		sc, err := parseCell(cell)
		if err != nil {
			return err
		}
		o.Scenarios = append(o.Scenarios, sc)
	}
	out, err := simulate.Run(ctx, o)
	if err != nil {
		return err
	}
	table := simulate.Table{Columns: []string{"load / clients"}}
	for _, s := range o.Strategies {
		table.Columns = append(table.Columns, s.Name+": good %", "p99 ms", "success %", "oscillation", "in zone %")
	}
	for i := range o.Scenarios {
		row := []string{cells[i]}
		for j := range o.Strategies {
			row = append(row, affected(out.Of(i, j))...)
		}
		table.Rows = append(table.Rows, row)
	}
	return table.Markdown(w, 1)
}

// affected gives the means of some runs: good, p99, success, oscillation and in zone of the affected clients.
func affected(results []*sim.Result) []string {
	var good, p99, success, oscillation, inZone float64
	n := float64(len(results))
	for _, r := range results {
		good += 100 * r.Affected.Good / n
		p99 += float64(r.Affected.P99) / float64(time.Millisecond) / n
		success += 100 * r.Affected.Success / n
		oscillation += 100 * r.Oscillation / n
		inZone += 100 * r.Affected.InZone / n
	}
	return []string{
		fmt.Sprintf("%.1f", good), fmt.Sprintf("%.0f", p99), fmt.Sprintf("%.2f", success), fmt.Sprintf("%.1f", oscillation),
		fmt.Sprintf("%.0f", inZone),
	}
}
