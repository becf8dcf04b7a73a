package simulate

import (
	"context"
	"errors"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/sim"
	"github.com/weir-lb/weir/internal/sim/scenario"
	"github.com/weir-lb/weir/internal/sim/score"
	"github.com/weir-lb/weir/internal/sim/strategy"
)

// TodayName is the strategy that Today makes.
const TodayName = "today"

// Today is how a service of that mode is balanced without weir: by kube-proxy, which follows the hints of the
// mode and nothing else.
func Today(mode topology.Mode) (strategy.Strategy, error) {
	name := "static-same-zone"
	switch mode {
	case topology.ModeAuto:
		name = "static-auto"
	case topology.ModeBalanced:
		name = "hints-balanced"
	case topology.ModeDisabled, topology.ModeUnset:
		name = "random"
	case topology.ModePreferSameZone, topology.ModePreferClose, topology.ModePreferSameNode:
	}
	c, err := strategy.Named(name)
	if err != nil {
		return c, err
	}
	if mode != topology.ModeUnset {
		c.Mode = mode
	}
	c.Name, c.Title = TodayName, "kube-proxy"
	return c, nil
}

// inMode gives c for a service with another mode.
func inMode(c *strategy.Strategy, mode topology.Mode) (strategy.Strategy, error) {
	if c.Name == TodayName {
		return Today(mode)
	}
	other := *c
	other.Mode = mode
	return other, nil
}

// Summary is what a service's operator wants to know, means over all seeds.
type Summary struct {
	Requests float64 `json:"requests"` // that count; 0: the next three say nothing, and are 0

	InZone  float64 `json:"inZone"`          // fraction of the requests
	Success float64 `json:"success"`         // likewise
	P99     float64 `json:"p99Milliseconds"` // of all clients

	PeakLoad        float64 `json:"peakLoad"`        // of the busiest endpoint in a second; above 1 its queue grows
	DollarsPerMonth float64 `json:"dollarsPerMonth"` // of bytes that cross zones, 730 hours
}

func summaryOf(results []*sim.Result) Summary {
	var f Summary
	n, known := float64(len(results)), 0.0
	for _, r := range results {
		f.PeakLoad += r.PeakLoad / n
		f.DollarsPerMonth += score.PerMonth(r.Window.Dollars) / n
		if r.Window.Requests == 0 {
			continue
		}
		known++
		f.Requests += float64(r.Window.Requests) / n
		f.InZone += r.Window.InZone
		f.Success += r.Window.Success
		f.P99 += r.Window.P99.Seconds() * 1000
	}
	if known > 0 {
		f.InZone, f.Success, f.P99 = f.InZone/known, f.Success/known, f.P99/known
	}
	return f
}

// Answer is what one question comes to with one strategy.
type Answer struct {
	Question string  `json:"question"`
	Title    string  `json:"title"`
	Strategy string  `json:"strategy"`
	Before   Summary `json:"before"` // as it is now
	After    Summary `json:"after"`
}

// Inquiry is what Ask is to find out.
type Inquiry struct {
	Base       *scenario.Scenario // the service as it is
	Questions  []Question
	Strategies []strategy.Strategy
	Run        Options // what is not above; its Scenarios and Strategies are ignored
}

// Ask answers all questions with all strategies. The answers are in the order of the questions, for each in that of the
// strategies.
func Ask(ctx context.Context, in Inquiry) ([]Answer, error) {
	if len(in.Questions) == 0 {
		return nil, errors.New("nothing is asked")
	}
	plan, err := in.jobs()
	if err != nil {
		return nil, err
	}
	o := in.Run.withDefaults()
	results, err := o.run(ctx, o.repeat(plan))
	if err != nil {
		return nil, err
	}
	of := func(question, strategy int) []*sim.Result {
		first := (question*len(in.Strategies) + strategy) * o.Seeds
		return results[first : first+o.Seeds]
	}
	answers := make([]Answer, 0, len(plan))
	for q := range in.Questions {
		for s := range in.Strategies {
			answers = append(answers, Answer{
				Question: in.Questions[q].Name, Title: in.Questions[q].Title, Strategy: in.Strategies[s].Title,
				Before: summaryOf(of(0, s)), After: summaryOf(of(q+1, s)),
			})
		}
	}
	return answers, nil
}

// jobs lists a run with each strategy, as it is and for each question.
func (in *Inquiry) jobs() ([]Job, error) {
	var jobs []Job
	for i := range in.Strategies {
		jobs = append(jobs, Job{Scenario: in.Base, Strategy: &in.Strategies[i]})
	}
	for i := range in.Questions {
		q := &in.Questions[i]
		sc := q.apply(in.Base)
		for k := range in.Strategies {
			c := in.Strategies[k]
			if q.Mode != topology.ModeUnset {
				other, err := inMode(&c, q.Mode)
				if err != nil {
					return nil, err
				}
				c = other
			}
			jobs = append(jobs, Job{Scenario: sc, Strategy: &c})
		}
	}
	return jobs, nil
}
