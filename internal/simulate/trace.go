package simulate

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/sim"
	"github.com/weir-lb/weir/internal/sim/scenario"
)

// Client names one client of a scenario.
type Client struct {
	Zone   topology.Zone // empty: Number counts the clients of all zones
	Number int           // from 1, in the order of the scenario
}

// ParseClient reads client=3, the third client of all, or client=a/3, the third of zone a.
func ParseClient(text string) (Client, error) {
	value, ok := strings.CutPrefix(text, "client=")
	zone, number, inZone := strings.Cut(value, "/")
	if !inZone {
		zone, number = "", value
	}
	n, err := strconv.Atoi(number)
	if !ok || err != nil || n < 1 || inZone && zone == "" {
		return Client{}, fmt.Errorf("%q: want client=NUMBER or client=ZONE/NUMBER, counted from 1", text)
	}
	return Client{topology.Zone(zone), n}, nil
}

// index finds the client's place among all, from 0.
func (c Client) index(sc *scenario.Scenario) (int, error) {
	before := 0
	for _, group := range sc.Clients {
		if c.Zone == group.Zone && c.Number <= group.Count {
			return before + c.Number - 1, nil
		}
		before += group.Count
	}
	if c.Zone == "" && c.Number <= before {
		return c.Number - 1, nil
	}
	if c.Zone != "" {
		return 0, fmt.Errorf("scenario %s has no client %d in zone %s", sc.Name, c.Number, c.Zone)
	}
	return 0, fmt.Errorf("scenario %s has %s, not %d", sc.Name, plural(before, "client"), c.Number)
}

// Moment is how one client's balancer stood when something changed.
type Moment struct {
	Seconds  float64 `json:"seconds"`
	State    string  `json:"state"`
	Because  string  `json:"because"`
	Baseline float64 `json:"baselineMilliseconds"` // 0: not known yet
	Shed     float64 `json:"shed"`                 // fraction of requests
	Groups   []Group `json:"groups"`               // in waterfall order, home first
}

// Group is one group of endpoints at that moment.
type Group struct {
	Zone     topology.Zone `json:"zone"`
	Cluster  string        `json:"cluster,omitempty"`
	Share    float64       `json:"share"`    // of requests
	Slowdown float64       `json:"slowdown"` // 1 is normal, 0 not known
}

// visible is how far a share moves before the trace has another line.
const visible = 0.05

// Trace plays a job and tells what one of its clients decided: a Moment at the beginning, and whenever the state, its
// reason or a share changed visibly.
func Trace(ctx context.Context, j Job, c Client) ([]Moment, error) {
	index, err := c.index(j.Scenario)
	if err != nil {
		return nil, err
	}
	var moments []Moment
	tick := func(now time.Duration, status pick.Status) {
		next := momentOf(now, &status)
		if len(moments) == 0 || next.differs(&moments[len(moments)-1]) {
			moments = append(moments, next)
		}
	}
	start := func(j Job) (Simulation, error) {
		return sim.New(sim.Options{
			Scenario: j.Scenario, Strategy: j.Strategy, Seed: j.Seed, Trace: &sim.Trace{Client: index, Tick: tick},
		})
	}
	o := Options{Parallel: 1, Start: start}
	if _, err := o.run(ctx, []Job{j}); err != nil {
		return nil, err
	}
	return moments, nil
}

func momentOf(now time.Duration, s *pick.Status) Moment {
	m := Moment{
		Seconds: now.Seconds(), State: s.State.String(), Because: s.Reason.String(),
		Baseline: s.Baseline.Seconds() * 1000, Shed: s.Shed, //nolint:mnd // milliseconds.
	}
	for _, g := range s.Groups {
		m.Groups = append(m.Groups, Group{Zone: g.Zone, Cluster: g.Key.Cluster, Share: g.Share, Slowdown: g.Slowdown})
	}
	return m
}

// differs tells whether a person would see the difference to the moment before.
func (m *Moment) differs(before *Moment) bool {
	if m.State != before.State || m.Because != before.Because || len(m.Groups) != len(before.Groups) {
		return true
	}
	for i, g := range m.Groups {
		b := before.Groups[i]
		if g.Zone != b.Zone || g.Cluster != b.Cluster || math.Abs(g.Share-b.Share) >= visible {
			return true
		}
	}
	return false
}

// TraceTable shows a trace, a row for each moment. A reason that stays is shown once.
func TraceTable(moments []Moment) Table {
	t := Table{Columns: []string{"TIME", "STATE", "SHARE % (SLOWDOWN)", "BASELINE MS", "BECAUSE"}}
	said := ""
	for _, m := range moments {
		because := m.Because
		if because == said {
			because = ""
		}
		said = m.Because
		var groups []string
		for _, g := range m.Groups {
			name := string(g.Zone)
			if g.Cluster != "" {
				name = g.Cluster + "/" + name
			}
			groups = append(groups, fmt.Sprintf("%s %s (%.2f)", name, percent(g.Share, 0), g.Slowdown))
		}
		t.Rows = append(t.Rows, []string{
			fmt.Sprintf("%.1f s", m.Seconds), m.State, strings.Join(groups, "  "), fmt.Sprintf("%.1f", m.Baseline), because,
		})
	}
	return t
}
