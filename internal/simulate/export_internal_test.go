package simulate

import "github.com/weir-lb/weir/internal/sim/scenario"

// Apply gives the scenario that answers a question.
func Apply(q *Question, base *scenario.Scenario) *scenario.Scenario { return q.apply(base) }
