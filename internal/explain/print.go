package explain

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/grid"
)

// Style is how explanations are printed.
type Style struct {
	Wide   bool // with each endpoint, and more columns
	Colour bool // the reader is a terminal
}

// Print writes one service's explanations as tables.
func Print(w io.Writer, all []Explanation, s Style) error {
	p := &printer{w: w, painter: grid.Painter{Colour: s.Colour}}
	for i := range all {
		if i > 0 {
			p.print("\n")
		}
		p.explanation(&all[i], s)
	}
	return p.err
}

func (p *printer) explanation(x *Explanation, s Style) {
	p.summary(x)
	p.standing(x.Cluster)
	plans := []*Plan{&x.Plan}
	if x.Other != nil {
		plans = append(plans, x.Other)
	}
	for _, plan := range plans {
		if x.Other != nil {
			p.print("\n" + p.bold("MODE "+string(plan.Mode)) + "\n")
		}
		if len(plan.Zones) > 0 {
			p.print("\n")
			p.zones(plan, s)
			p.matrix(plan)
		}
		if s.Wide && len(plan.Endpoints) > 0 {
			p.print("\n")
			p.endpoints(plan)
		}
		p.list("WHY", plan.Reasons)
		p.list("WHAT TO CHANGE", plan.Advice)
	}
	if x.Node != nil {
		p.node(x.Node, s)
	}
	p.policy(x.Policy)
}

// summary writes what holds for the whole service; two plans stand side by side.
func (p *printer) summary(x *Explanation) {
	line := func(name string, of func(*Plan) grid.Cell) []grid.Cell {
		row := []grid.Cell{{Text: name, Tone: grid.Bold}, of(&x.Plan)}
		if x.Other != nil {
			row = append(row, of(x.Other))
		}
		return row
	}
	rows := [][]grid.Cell{
		{{Text: "SERVICE", Tone: grid.Bold}, grid.Text(x.Plan.Service + " (" + x.Plan.Family + ")")},
		line("MODE", func(v *Plan) grid.Cell { return grid.Text(x.mode(v)) }),
		line("HINTS", hints),
		line("IN ZONE", func(v *Plan) grid.Cell { return grid.Text(percent(v.InZone)) }),
		line("OVERLOAD", func(v *Plan) grid.Cell { return overload(v.Overload) }),
		line("COST", func(v *Plan) grid.Cell { return grid.Text(fmt.Sprintf("%.2f per request", v.Cost)) }),
	}
	if x.Plan.Traffic != nil {
		rows = append(rows,
			line("TRAFFIC", func(v *Plan) grid.Cell {
				return grid.Text(fmt.Sprintf("%s GB per month, %s leave their zone", amount(v.Traffic.GBPerMonth), amount(v.Traffic.CrossZoneGB)))
			}),
			line("BILL", func(v *Plan) grid.Cell {
				return grid.Text(fmt.Sprintf("$%.2f per month, $%.2f without hints", v.Traffic.Dollars, v.Traffic.WithoutHints))
			}),
		)
	}
	p.table(append(rows, x.Cluster.rows(&x.Plan)...))
}

// mode says where a live cluster's service chose its mode, too.
func (x *Explanation) mode(v *Plan) string {
	if x.Cluster == nil || v != &x.Plan {
		return string(v.Mode)
	}
	return x.Cluster.askedBy(v.Mode)
}

// rows write how a live cluster stands to a plan.
func (s *Standing) rows(v *Plan) [][]grid.Cell {
	if s == nil {
		return nil
	}
	rows := [][]grid.Cell{
		{{Text: "OWNER", Tone: grid.Bold}, grid.Text(string(s.Owner))},
		{{Text: "STATE", Tone: grid.Bold}, s.cell()},
	}
	if !s.Now.agrees(v) {
		rows = append(rows, []grid.Cell{{Text: "NOW", Tone: grid.Bold}, grid.Text(s.Now.line())})
	}
	return rows
}

// standing writes what a live cluster says besides.
func (p *printer) standing(s *Standing) {
	if s == nil {
		return
	}
	p.lines("REFUSED", s.Refused)
	var conditions []string
	for _, c := range s.Conditions {
		conditions = append(conditions, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	p.lines("CONDITIONS", conditions)
}

func (p *printer) zones(v *Plan, s Style) {
	names := []string{"ZONE", "CPU", "READY", "HINTED", "DEMAND", "LOAD", "OVERLOAD", "IN ZONE", "COST"}
	if s.Wide {
		names = append(names, "NODES", "ENDPOINTS")
	}
	rows := [][]grid.Cell{head(names...)}
	for i := range v.Zones {
		z := &v.Zones[i]
		row := []grid.Cell{
			grid.Text(string(z.Zone)),
			grid.Text(cores(z.CPU)),
			grid.Text(strconv.Itoa(z.Ready)),
			grid.Text(v.hinted(z)),
			grid.Text(percent(z.Demand)),
			grid.Text(percent(z.Load)),
			overload(z.Overload),
			grid.Text(percent(z.InZone)),
			grid.Text(fmt.Sprintf("%.2f", z.Cost)),
		}
		if s.Wide {
			row = append(row, grid.Text(strconv.Itoa(z.Nodes)), grid.Text(strconv.Itoa(z.Endpoints)))
		}
		rows = append(rows, row)
	}
	p.table(rows)
}

// hinted prints how many endpoints are hinted to a zone; without hints they are not counted.
func (v *Plan) hinted(z *Zone) string {
	if !v.Hinted {
		return "-"
	}
	return strconv.Itoa(z.Hinted)
}

// matrix writes which zones serve which: a row for each zone's clients, a column for each zone's endpoints.
func (p *printer) matrix(v *Plan) {
	var columns []topology.Zone
	for i := range v.Zones {
		for _, part := range v.Zones[i].ServedBy {
			columns = append(columns, part.Zone)
		}
	}
	slices.Sort(columns)
	columns = slices.Compact(columns)
	if len(columns) == 0 {
		return
	}
	names := []string{"CLIENTS IN"}
	for _, z := range columns {
		names = append(names, "SERVED BY "+zoneName(z))
	}
	p.print("\n")
	rows := [][]grid.Cell{head(names...)}
	for i := range v.Zones {
		z := &v.Zones[i]
		row := []grid.Cell{grid.Text(string(z.Zone))}
		for _, to := range columns {
			row = append(row, servedBy(z, to))
		}
		rows = append(rows, row)
	}
	p.table(rows)
}

func servedBy(z *Zone, to topology.Zone) grid.Cell {
	for _, part := range z.ServedBy {
		if part.Zone == to {
			c := grid.Text(percent(part.Share))
			if to != z.Zone {
				c.Tone = warn
			}
			return c
		}
	}
	return grid.Text("-")
}

func (p *printer) endpoints(v *Plan) {
	rows := [][]grid.Cell{head("ENDPOINT", "POD", "ZONE", "NODE", "READY", "HINTS", "LOAD")}
	for i := range v.Endpoints {
		e := &v.Endpoints[i]
		ready := grid.Cell{Text: "yes", Tone: good}
		if !e.Ready {
			ready = grid.Cell{Text: "no", Tone: bad}
		}
		rows = append(rows, []grid.Cell{
			grid.Text(e.Address),
			grid.Text(orDash(e.Pod)),
			grid.Text(e.place()),
			grid.Text(orDash(e.Node)),
			ready,
			grid.Text(e.hints()),
			grid.Text(fmt.Sprintf("%.1f %%", e.Load*hundred)),
		})
	}
	p.table(rows)
}

// place gives the zone, with its cluster if that is another one.
func (e *Endpoint) place() string {
	if e.Cluster == "" {
		return zoneName(e.Zone)
	}
	return zoneName(e.Zone) + "@" + e.Cluster
}

func (e *Endpoint) hints() string { return Hints{e.ForZones, e.ForNodes}.String() }

// list writes reasons under a title, a line for each.
func (p *printer) list(title string, reasons []reason.Reason) {
	texts := make([]string, 0, len(reasons))
	for _, r := range reasons {
		texts = append(texts, r.String())
	}
	p.lines(title, texts)
}

// lines writes texts under a title; nothing when there are none.
func (p *printer) lines(title string, texts []string) {
	if len(texts) == 0 {
		return
	}
	p.print("\n" + p.bold(title) + "\n")
	for _, line := range texts {
		p.print("  " + line + "\n")
	}
}

// node writes what a node may use.
func (p *printer) node(n *Node, s Style) {
	p.print("\n" + p.bold("NODE "+n.Node) + " in " + zoneName(n.Zone) + "\n")
	rows := [][]grid.Cell{head("PORT", "MAY USE", "OF ZONES", "BECAUSE")}
	for i := range n.Ports {
		port := &n.Ports[i]
		uses := strconv.Itoa(len(port.MayUse)) + " endpoints"
		if s.Wide && len(port.MayUse) > 0 {
			uses = strings.Join(port.MayUse, ",")
		}
		zones := make([]string, 0, len(port.zones))
		for _, z := range port.zones {
			zones = append(zones, zoneName(z))
		}
		slices.Sort(zones)
		rows = append(rows, []grid.Cell{
			grid.Text(fmt.Sprintf("%d/%s", port.Port, port.Protocol)),
			grid.Text(uses),
			grid.Text(orDash(strings.Join(slices.Compact(zones), ","))),
			grid.Text(port.Reason.String()),
		})
	}
	p.table(rows)
}
