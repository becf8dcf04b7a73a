package overflow_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/golden"
)

// Each script in testdata/states says what the zones do and when; its golden lists every transition of the law, with
// the numbers and the sentence that people are told.
func TestStatesAreEnteredForTheReasonsTheyTell(t *testing.T) {
	scripts, err := filepath.Glob("testdata/states/*.txt")
	if err != nil || len(scripts) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, path := range scripts {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			script, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			golden.Check(t, filepath.Join("states", strings.TrimSuffix(filepath.Base(path), ".txt")+".golden"), play(t, string(script)))
		})
	}
}

// plant is a zone of a script: it answers in 20 ms times slow, and slower when it gets more than it holds.
type plant struct {
	slow, ok, holds, usable float64
	drained                 bool
	owed                    float64 // requests due by the rate and not sent yet
	lag                     float64 // of the queue, in baselines
}

// stage plays a script.
type stage struct {
	t      *testing.T
	law    overflow.Strategy
	names  []string
	plants map[string]*plant
	rps    float64
	now    time.Duration
	last   overflow.Decision
	out    strings.Builder
}

func play(t *testing.T, script string) string {
	t.Helper()
	law, err := overflow.New("Weir", overflow.Config{})
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{t: t, law: law, names: []string{"a", "b", "c"}}
	for line := range strings.Lines(script) {
		line, _, _ = strings.Cut(line, "#")
		s.line(strings.Fields(line))
	}
	fmt.Fprintf(&s.out, "t=%.1f end %s %s\n", s.now.Seconds(), s.last.State, s.shares())
	return s.out.String()
}

func (s *stage) line(words []string) {
	zone := ""
	for _, word := range words {
		name, value, found := strings.Cut(word, "=")
		if !found {
			zone = word
			continue
		}
		if name == "zones" {
			s.names = strings.Split(value, ",")
			continue
		}
		number, err := strconv.ParseFloat(value, 64)
		if err != nil {
			s.t.Fatalf("%s: %v", word, err)
		}
		s.set(zone, name, number)
	}
}

func (s *stage) set(zone, name string, v float64) {
	if s.plants == nil {
		s.begin()
	}
	p := s.plants[zone]
	switch name {
	case "t":
		s.until(time.Duration(v * float64(time.Second)))
	case "rps":
		s.rps = v
	case "sleep":
		s.now += time.Duration(v * float64(time.Second))
	case "slow":
		p.slow = v
	case "ok":
		p.ok = v
	case "holds":
		p.holds = v
	case "usable":
		p.usable = v
	case "drained":
		p.drained = v > 0
	default:
		s.t.Fatalf("unknown word %q", name)
	}
}

func (s *stage) begin() {
	s.plants = map[string]*plant{}
	var layout overflow.Layout
	for i, name := range s.names {
		s.plants[name] = &plant{slow: 1, ok: 1, holds: 1000, usable: 3}
		g := overflow.Group{Zone: topology.Zone("zone-" + name), Cost: topology.Cost(min(i, 1))}
		for range 3 {
			g.Endpoints = append(g.Endpoints, layout.Endpoints)
			layout.Endpoints++
		}
		layout.Groups = append(layout.Groups, g)
	}
	s.law.Reset(0, layout)
	s.last = s.law.Step(0, s.count(0))
	fmt.Fprintf(&s.out, "t=0.0 %s: %s\n", s.last.State, s.last.Reason)
}

func (s *stage) until(end time.Duration) {
	const step = 100 * time.Millisecond
	for s.now+step <= end {
		s.now += step
		d := s.law.Step(s.now, s.count(step.Seconds()))
		if d.State != s.last.State || d.Reason.Code != s.last.Reason.Code {
			fmt.Fprintf(&s.out, "t=%.1f %s→%s S=%.1f %s: %s\n", s.now.Seconds(), s.last.State, d.State,
				d.Groups[0].Slowdown, shares(d), d.Reason)
		}
		s.last = d
	}
}

func (s *stage) shares() string { return shares(s.last) }

func shares(d overflow.Decision) string {
	words := make([]string, 0, len(d.Groups))
	for _, g := range d.Groups {
		words = append(words, fmt.Sprintf("%.0f", g.Share*100))
	}
	return strings.Join(words, "/")
}

// count gives what a client would have seen in the last step, had it followed the last decision.
func (s *stage) count(dt float64) *overflow.Counters {
	c := &overflow.Counters{Groups: make([]overflow.GroupCounters, len(s.names))}
	for i, name := range s.names {
		p := s.plants[name]
		share := 0.0
		if len(s.last.Groups) > 0 {
			share = s.last.Groups[i].Share
		}
		rate := share * s.rps
		p.lag = math.Min(20, math.Max(0, p.lag+(rate-p.holds)/p.holds*dt/0.02))
		p.owed += rate * dt
		sent := math.Floor(p.owed)
		p.owed -= sent
		good := math.Round(sent * p.ok)
		slowdown := math.Min(8, p.slow+p.lag)
		c.Groups[i] = overflow.GroupCounters{
			Sent: int64(sent), OK: int64(good), Failed: int64(sent - good),
			Latency: time.Duration(good * slowdown * float64(20*time.Millisecond)),
			Usable:  int(p.usable), Drained: p.drained,
		}
	}
	return c
}
