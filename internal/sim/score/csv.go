package score

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// CSV writes one row for each scenario, strategy and measure, those of Overall last as scenario "overall". Numbers are those
// of View; mean and half are empty where View has null.
func (b *Board) CSV(w io.Writer) error {
	c := csv.NewWriter(w)
	rows := [][]string{{"scenario", "strategy", "measure", "unit", "mean", "half", "known", "runs", "best"}}
	v := b.View()
	for _, t := range slices.Concat(v.Scenarios, []TableView{v.Overall}) {
		for _, r := range t.Strategies {
			for m := range v.Measures {
				key := v.Measures[m].Key
				cell := r.Cells[key]
				rows = append(rows, []string{
					t.Scenario, r.Strategy, key, v.Measures[m].Unit, optional(cell.Mean), optional(cell.Half),
					strconv.Itoa(cell.Known), strconv.Itoa(cell.Runs), strconv.FormatBool(cell.Best),
				})
			}
		}
	}
	if err := c.WriteAll(rows); err != nil {
		return fmt.Errorf("write the board as CSV: %w", err)
	}
	return nil
}

func optional(value *float64) string {
	if value == nil {
		return ""
	}
	return strconv.FormatFloat(*value, 'f', -1, 64)
}
