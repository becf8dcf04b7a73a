package explain

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/weir-lb/weir/internal/grid"
)

// PrintList writes a line for each service and family: as planned, and where a live cluster was read, how it stands.
func PrintList(w io.Writer, all []Explanation, s Style) error {
	p := &printer{w: w, painter: grid.Painter{Colour: s.Colour}}
	if len(all) > 0 && all[0].Cluster != nil {
		p.table(standings(all, s))
		return p.err
	}
	names := append([]string{"SERVICE", "FAMILY", "MODE", "HINTS", "READY", "IN ZONE", "OVERLOAD", "COST"}, extraNames(all)...)
	rows := [][]grid.Cell{head(append(names, "WHY")...)}
	for i := range all {
		v := &all[i].Plan
		row := append([]grid.Cell{grid.Text(v.Service), grid.Text(v.Family), grid.Text(string(v.Mode))}, v.cells()...)
		row = append(row, all[i].extras()...)
		rows = append(rows, append(row, grid.Text(v.short(s))))
	}
	p.table(rows)
	return p.err
}

// standings makes the table of a live cluster. Overload and share are those of the hints that are there now.
func standings(all []Explanation, s Style) [][]grid.Cell {
	names := []string{"NAMESPACE", "NAME", "FAMILY", "MODE", "STATE", "REASON", "OVERLOAD", "IN ZONE"}
	if s.Wide {
		names = append(names, "OWNER", "ASKED BY", "READY", "SLICES", "PLANNED: OVERLOAD", "IN ZONE")
	}
	rows := [][]grid.Cell{head(append(append(names, extraNames(all)...), "WHY")...)}
	for i := range all {
		x := &all[i]
		namespace, name, _ := strings.Cut(x.Plan.Service, "/")
		code, why := x.why()
		row := []grid.Cell{
			grid.Text(namespace), grid.Text(name), grid.Text(x.Plan.Family), grid.Text(string(x.Plan.Mode)), x.Cluster.cell(), grid.Text(code),
			overload(x.Cluster.Now.Overload), grid.Text(percent(x.Cluster.Now.InZone)),
		}
		if s.Wide {
			row = append(row,
				grid.Text(string(x.Cluster.Owner)), grid.Text(orDash(x.Cluster.AskedBy)), grid.Text(strconv.Itoa(x.Plan.Ready)),
				grid.Text(strconv.Itoa(x.Cluster.Slices)), overload(x.Plan.Overload), grid.Text(percent(x.Plan.InZone)))
		}
		rows = append(rows, append(append(row, x.extras()...), grid.Text(why)))
	}
	return rows
}

// extraNames heads the columns of what was asked for besides the plan.
func extraNames(all []Explanation) []string {
	var names []string
	if len(all) > 0 && all[0].Plan.Traffic != nil {
		bill := "BILL"
		if all[0].Cluster != nil { // the columns before speak of now
			bill = "PLANNED: BILL"
		}
		names = append(names, bill, "WITHOUT HINTS")
	}
	if len(all) > 0 && all[0].Other != nil {
		names = append(names, string(all[0].Other.Mode)+": HINTS", "IN ZONE", "OVERLOAD", "COST")
	}
	return names
}

func (x *Explanation) extras() []grid.Cell {
	var row []grid.Cell
	if t := x.Plan.Traffic; t != nil {
		row = append(row, grid.Text(fmt.Sprintf("$%.2f", t.Dollars)), grid.Text(fmt.Sprintf("$%.2f", t.WithoutHints)))
	}
	if x.Other != nil {
		other := x.Other.cells()
		row = append(append(row, other[0]), other[2:]...)
	}
	return row
}

// cells are what a list shows of a plan.
func (v *Plan) cells() []grid.Cell {
	return []grid.Cell{
		hints(v),
		grid.Text(strconv.Itoa(v.Ready)),
		grid.Text(percent(v.InZone)),
		overload(v.Overload),
		grid.Text(fmt.Sprintf("%.2f", v.Cost)),
	}
}

// short gives the plan's first reason, or all of them when there is room.
func (v *Plan) short(s Style) string {
	if s.Wide || len(v.Reasons) == 0 {
		return v.why()
	}
	return v.Reasons[0].String()
}
