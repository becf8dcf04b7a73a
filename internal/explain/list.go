package explain

import (
	"fmt"
	"io"
	"strconv"
)

// PrintList writes a line for each service and family.
func PrintList(w io.Writer, all []Explanation, s Style) error {
	p := &printer{w: w, colour: s.Colour}
	names := []string{"SERVICE", "FAMILY", "MODE", "HINTS", "READY", "IN ZONE", "OVERLOAD", "COST"}
	hasTraffic := len(all) > 0 && all[0].Plan.Traffic != nil
	if hasTraffic {
		names = append(names, "BILL", "WITHOUT HINTS")
	}
	hasOther := len(all) > 0 && all[0].Other != nil
	if hasOther {
		mode := string(all[0].Other.Mode)
		names = append(names, mode+": HINTS", "IN ZONE", "OVERLOAD", "COST")
	}
	rows := [][]cell{head(append(names, "WHY")...)}
	for i := range all {
		v := &all[i].Plan
		row := append([]cell{text(v.Service), text(v.Family), text(string(v.Mode))}, v.figures()...)
		if hasTraffic {
			row = append(row,
				text(fmt.Sprintf("$%.2f", v.Traffic.Dollars)), text(fmt.Sprintf("$%.2f", v.Traffic.WithoutHints)))
		}
		if hasOther {
			other := all[i].Other.figures()
			row = append(append(row, other[0]), other[2:]...)
		}
		rows = append(rows, append(row, text(v.short(s))))
	}
	p.table(rows)
	return p.err
}

// figures are what a list shows of a plan.
func (v *Plan) figures() []cell {
	return []cell{
		hints(v),
		text(strconv.Itoa(v.Ready)),
		text(percent(v.InZone)),
		overload(v.Overload),
		text(fmt.Sprintf("%.2f", v.Cost)),
	}
}

// short gives the plan's first reason, or all of them when there is room.
func (v *Plan) short(s Style) string {
	if s.Wide || len(v.Reasons) == 0 {
		return v.why()
	}
	return v.Reasons[0].String()
}
