package plan_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"testing"

	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/core/topology"
)

// vector is one case that weir and the controller of Kubernetes both decide.
type vector struct {
	ID        string           `json:"id"`
	Nodes     []vectorNode     `json:"nodes"`
	Mode      string           `json:"mode"` // "None" asks for nothing
	Endpoints []vectorEndpoint `json:"endpoints"`
	// Unchanged names the slices that nothing but hints would change; all others are new.
	Unchanged []int `json:"unchangedSlices"`

	local bool // internal policy Local
}

type vectorNode struct {
	Name         string `json:"name"`
	Zone         string `json:"zone"`     // empty: no label
	CPU          int64  `json:"cpuMilli"` // 0: not reported
	Ready        bool   `json:"ready"`
	ControlPlane bool   `json:"controlPlane"`
}

type vectorEndpoint struct {
	IP       string   `json:"ip"`
	Node     string   `json:"node"`
	Zone     string   `json:"zone"`
	Ready    *bool    `json:"ready"` // nil: not known
	ForZones []string `json:"forZones"`
	ForNodes []string `json:"forNodes"`
	Slice    int      `json:"slice"`
}

// clone copies everything that a test may change.
func (v vector) clone() vector {
	v.Nodes, v.Endpoints = slices.Clone(v.Nodes), slices.Clone(v.Endpoints)
	v.Unchanged = slices.Clone(v.Unchanged)
	return v
}

// input puts the case before the planner.
func (v vector) input() plan.Input {
	var nodes []topology.Node
	for _, n := range v.Nodes {
		nodes = append(nodes, topology.Node{
			Name: n.Name, Zone: topology.Zone(n.Zone), CPU: topology.MilliCPU(n.CPU), Ready: n.Ready, ControlPlane: n.ControlPlane,
		})
	}
	var endpoints []topology.Endpoint
	for _, e := range v.Endpoints {
		endpoints = append(endpoints, topology.Endpoint{
			Addr: netip.MustParseAddr(e.IP), Zone: topology.Zone(e.Zone), Node: e.Node,
			Conditions: topology.Conditions{Ready: condition(e.Ready)},
			Hints:      topology.Hints{Zones: zonesNamed(e.ForZones), Nodes: e.ForNodes},
		})
	}
	mode := topology.Mode(v.Mode)
	if mode == "None" {
		mode = topology.ModeDisabled
	}
	in := inputOf(mode, nodes, endpoints)
	if v.local {
		in.Service.InternalPolicy = topology.PolicyLocal
	}
	return in
}

func condition(c *bool) topology.Condition {
	switch {
	case c == nil:
		return topology.Unknown
	case *c:
		return topology.True
	default:
		return topology.False
	}
}

func zonesNamed(names []string) []topology.Zone {
	var zones []topology.Zone
	for _, n := range names {
		zones = append(zones, topology.Zone(n))
	}
	return zones
}

// readVectors reads the fixed cases.
func readVectors(t *testing.T) []vector {
	t.Helper()
	file, err := os.Open("testdata/hints.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // nothing was written
	var vectors []vector
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var v vector
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatalf("line %d: %v", len(vectors)+1, err)
		}
		vectors = append(vectors, v)
	}
	return vectors
}

// anyVector makes a case for Auto: up to 6 zones and 60 endpoints in up to 3 slices, with the flaws of real clusters.
func anyVector(random *rand.Rand, n int) vector {
	v := vector{ID: fmt.Sprintf("generated %d", n), Mode: string(topology.ModeAuto), local: random.IntN(50) == 0}
	zones := 1 + random.IntN(6)
	v.Nodes = anyVectorNodes(random, zones)
	slicesWithHints := random.IntN(3) == 0
	for i := range random.IntN(1 + 10*zones) {
		zone := string(zoneOf(random.IntN(zones)))
		ready := random.IntN(12) > 0
		e := vectorEndpoint{IP: fmt.Sprintf("10.1.0.%d", i+1), Zone: zone, Ready: &ready, Slice: random.IntN(3)}
		switch random.IntN(120) {
		case 0:
			e.Zone = ""
		case 1:
			e.Zone = "zone-cp" // where no worker is
		case 2:
			e.Ready = nil
		}
		if slicesWithHints {
			e.ForZones = anyHints(random, zones, zone)
		}
		v.Endpoints = append(v.Endpoints, e)
	}
	if slicesWithHints {
		v.Unchanged = [][]int{{0, 1, 2}, {0, 1}, {0}}[random.IntN(3)]
	}
	return v
}

func anyVectorNodes(random *rand.Rand, zones int) []vectorNode {
	equal, silent, flawed := random.IntN(2) == 0, random.IntN(40) == 0, random.IntN(12) == 0
	var nodes []vectorNode
	for z := range zones {
		for i := range 1 + random.IntN(2) {
			n := vectorNode{Name: fmt.Sprintf("n-%d-%d", z, i), Zone: string(zoneOf(z)), Ready: true, CPU: 4000}
			if equal && i > 0 {
				continue
			}
			if !equal {
				n.CPU = 100 * int64(10+random.IntN(60))
			}
			if silent {
				n.CPU = 0
			}
			nodes = append(nodes, n)
		}
	}
	if flawed {
		n := &nodes[random.IntN(len(nodes))]
		switch random.IntN(4) {
		case 0:
			n.CPU = 0
		case 1:
			n.Zone = ""
		case 2:
			n.Ready = false
		default:
			n.ControlPlane = true
		}
	}
	return nodes
}

// anyHints makes hints as a controller leaves them: mostly home, sometimes elsewhere, to several zones, or none.
func anyHints(random *rand.Rand, zones int, home string) []string {
	switch random.IntN(30) {
	case 0:
		return nil
	case 1, 2, 3:
		return []string{string(zoneOf(random.IntN(zones + 1)))}
	case 4:
		if random.IntN(5) == 0 {
			return slices.Compact([]string{home, string(zoneOf(zones))})
		}
	}
	return []string{home}
}
