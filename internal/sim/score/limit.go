package score

import "fmt"

// Distance is how far a strategy is from the limit, in one table.
type Distance struct {
	Good float64 `json:"good"` // of the requests: fewer are good by this fraction; below 0: more are
	// Cost is the cost as a multiple of the limit's; 0 where the limit costs nothing.
	Cost float64 `json:"cost"`
	// Dollars is how much more it costs in an hour; below 0: less.
	Dollars float64 `json:"dollarsPerHour"`
}

// keys of the measures that a distance is in.
const (
	goodKey = "good"
	costKey = "dollarsPerHour"
)

// measureDistances gives each row its distance from that of the limit, if the table has one.
func (t *Table) measureDistances() {
	limit := t.limit()
	if limit == nil {
		return
	}
	for i := range t.Rows {
		r := &t.Rows[i]
		if r == limit || r.Runs == 0 || r.Cells[goodKey].Known == 0 || r.Cells[costKey].Known == 0 {
			continue
		}
		spent, least := r.Cells[costKey].Mean, limit.Cells[costKey].Mean
		d := Distance{Good: rounded(limit.Cells[goodKey].Mean - r.Cells[goodKey].Mean), Dollars: rounded(spent - least)}
		if least >= leastDollars/2 {
			d.Cost = rounded(spent / least)
		}
		r.Distance = &d
	}
}

// limit finds the row of the limit; nil: there is none, or it was not run.
func (t *Table) limit() *Row {
	for i := range t.Rows {
		if r := &t.Rows[i]; r.Limit && r.Runs > 0 && r.Cells[goodKey].Known > 0 {
			return r
		}
	}
	return nil
}

// distance says in words how far a strategy is from the limit; empty: that is not known.
func (t *Table) distance(name string) string {
	limit := t.limit()
	for i := range t.Rows {
		r := &t.Rows[i]
		if r.Strategy != name || r.Distance == nil || limit == nil {
			continue
		}
		cost := fmt.Sprintf("%+.2f $/h", r.Distance.Dollars)
		if r.Distance.Cost > 0 {
			cost += fmt.Sprintf(" (× %.2f)", r.Distance.Cost)
		}
		return fmt.Sprintf("%s against %s: good %+.2f points, cost %s", r.Title, limit.Title, -hundred*r.Distance.Good, cost)
	}
	return ""
}
