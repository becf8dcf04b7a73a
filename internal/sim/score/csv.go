package score

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// CSV writes one row for each scenario, strategy and measure, those of Overall last as scenario "overall". Numbers are those
// of JSON; mean and half are empty where it has null.
func (b *Board) CSV(w io.Writer) error {
	c := csv.NewWriter(w)
	rows := [][]string{{"scenario", "strategy", "measure", "unit", "mean", "half", "known", "runs", "best"}}
	for _, t := range append(slices.Clip(b.Tables), b.Overall) {
		for i := range t.Rows {
			r := &t.Rows[i]
			for m := range b.Measures {
				cell := r.Cells[b.Measures[m].Key]
				rows = append(rows, []string{
					t.Scenario, r.Strategy, b.Measures[m].Key, b.Measures[m].Unit.name(),
					optional(cell.Mean, cell.Known > 0), optional(cell.Half, cell.Known > 0 && cell.Seeds > 1),
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

func optional(value float64, isKnown bool) string { //nolint:revive // whether there is a number.
	if !isKnown {
		return ""
	}
	return strconv.FormatFloat(rounded(value), 'f', -1, 64)
}
