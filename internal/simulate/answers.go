package simulate

import "fmt"

// AnswerTable shows answers, a row for each; the first rows are how it is now.
func AnswerTable(answers []Answer) Table {
	t := Table{Columns: []string{"WHAT IF", "STRATEGY", "IN ZONE %", "SUCCESS %", "P99 MS", "PEAK LOAD", "$/MONTH"}}
	for i, a := range answers {
		if i > 0 && a.Question != answers[0].Question {
			break
		}
		t.Rows = append(t.Rows, append([]string{"as it is", a.Strategy}, a.Before.cells()...))
	}
	for _, a := range answers {
		before, after := a.Before.cells(), a.After.cells()
		row := []string{a.Title, a.Strategy}
		for i := range before {
			row = append(row, before[i]+" → "+after[i])
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func (f Summary) cells() []string {
	if f.Requests == 0 {
		return []string{"-", "-", "-", fmt.Sprintf("%.2f", f.PeakLoad), money(f.DollarsPerMonth)}
	}
	return []string{
		percent(f.InZone, 1), percent(f.Success, 2), fmt.Sprintf("%.0f", f.P99), fmt.Sprintf("%.2f", f.PeakLoad), money(f.DollarsPerMonth),
	}
}

// money writes dollars, with cents where they matter.
func money(dollars float64) string {
	const whole = 100 // dollars from which cents do not matter
	if dollars >= whole {
		return fmt.Sprintf("%.0f", dollars)
	}
	return fmt.Sprintf("%.2f", dollars)
}
