package simulate

import (
	"math"
	"strconv"
)

// The tables of this file are for programs: each row stands alone, each column has one meaning, and numbers are as JSON
// has them, without units.

// AnswerRows lists answers, a row for each measure.
func AnswerRows(answers []Answer) Table {
	t := Table{Columns: []string{"question", "strategy", "measure", "before", "after"}}
	for _, a := range answers {
		after := a.After.named()
		for i, before := range a.Before.named() {
			t.Rows = append(t.Rows, []string{a.Question, a.Strategy, before.key, exact(before.value), exact(after[i].value)})
		}
	}
	return t
}

// measure is one of Summary, by its name in JSON.
type measure struct {
	key   string
	value float64
}

func (f Summary) named() []measure {
	return []measure{
		{"inZone", f.InZone},
		{"success", f.Success},
		{"p99Milliseconds", f.P99},
		{"peakLoad", f.PeakLoad},
		{"dollarsPerMonth", f.DollarsPerMonth},
		{"requests", f.Requests},
	}
}

// TraceRows lists a trace, a row for each group of endpoints at each moment.
func TraceRows(moments []Moment) Table {
	t := Table{Columns: []string{"seconds", "state", "zone", "cluster", "share", "slowdown", "baselineMilliseconds", "because"}}
	for _, m := range moments {
		for _, g := range m.Groups {
			t.Rows = append(t.Rows, []string{
				exact(m.Seconds), m.State, string(g.Zone), g.Cluster, exact(g.Share), exact(g.Slowdown), exact(m.Baseline), m.Because,
			})
		}
	}
	return t
}

// exact writes a number to the millionth, as the CSV of comparisons does.
func exact(f float64) string {
	const millionth = 1e6
	return strconv.FormatFloat(math.Round(f*millionth)/millionth, 'f', -1, 64)
}
