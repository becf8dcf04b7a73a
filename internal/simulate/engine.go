package simulate

import "github.com/weir-lb/weir/internal/sim"

// start begins a run of the real engine.
func start(j Job) (Simulation, error) {
	return sim.New(sim.Options{Scenario: j.Scenario, Strategy: j.Strategy, Seed: j.Seed})
}
