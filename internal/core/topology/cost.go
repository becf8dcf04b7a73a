package topology

import (
	"fmt"
	"math"
)

// Cost is what it costs to carry traffic between two places, in units of one crossing between zones of one region.
type Cost float64

// Place is where a client or an endpoint is, as far as the bill is concerned.
type Place struct {
	Zone    Zone
	Region  string
	Cluster string
}

// ZonePair is a direction: from the client's zone to the endpoint's.
type ZonePair struct{ From, To Zone }

// Costs says what it costs to go from one place to another. The zero value means DefaultCosts; a table of nothing but
// zeros has Pairs that are empty but not nil.
type Costs struct {
	SameRegion   Cost // another zone of the same region
	OtherRegion  Cost // a zone of another region
	OtherCluster Cost // added when the endpoint is in another cluster
	Pairs        map[ZonePair]Cost
}

// DefaultCosts are the costs unless others are given: clouds bill a crossing between zones at about 0.01 $/GB in
// each direction and one between regions at two to eight times that; a cluster boundary adds gateways and latency, not
// money, and so only has to be dearer than staying.
func DefaultCosts() Costs { return Costs{SameRegion: 1, OtherRegion: 4, OtherCluster: 2} }

// Between gives the cost of a request from one place to another. An explicit pair wins over the region rule; places
// with an unknown zone count as different zones of the same region.
func (c Costs) Between(from, to Place) Cost {
	if c.isUnset() {
		c = DefaultCosts()
	}
	var cost Cost
	if from.Cluster != to.Cluster {
		cost = c.OtherCluster
	}
	if pair, ok := c.Pairs[ZonePair{from.Zone, to.Zone}]; ok {
		return cost + pair
	}
	switch {
	case from.Region != to.Region && from.Region != "" && to.Region != "":
		return cost + c.OtherRegion
	case from.Zone == to.Zone && from.Zone != "":
		return cost
	default:
		return cost + c.SameRegion
	}
}

func (c Costs) isUnset() bool {
	return c.SameRegion == 0 && c.OtherRegion == 0 && c.OtherCluster == 0 && c.Pairs == nil
}

// Validate refuses a table that cannot be ordered: a negative, infinite or undefined entry.
func (c Costs) Validate() error {
	named := []struct {
		name string
		cost Cost
	}{{"sameRegion", c.SameRegion}, {"otherRegion", c.OtherRegion}, {"otherCluster", c.OtherCluster}}
	for _, n := range named {
		if !n.cost.valid() {
			return fmt.Errorf("cost %s is %v: want a finite number of at least 0", n.name, n.cost)
		}
	}
	for pair, cost := range c.Pairs {
		if !cost.valid() {
			return fmt.Errorf("cost from %s to %s is %v: want a finite number of at least 0", pair.From, pair.To, cost)
		}
	}
	return nil
}

func (c Cost) valid() bool { return c >= 0 && !math.IsInf(float64(c), 0) }
