package sim

import (
	"math/rand/v2"

	"github.com/weir-lb/weir/internal/sim/fleet"
	"github.com/weir-lb/weir/internal/sim/scenario"
)

// newCluster makes the fleet that the simulation runs on.
func newCluster(sc *scenario.Scenario, seed uint64) cluster {
	return fleet.New(sc, rand.New(generator(seed, ofFleet, 0))) //nolint:gosec // not for secrets.
}
