package simulate_test

import (
	"strings"
	"testing"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/simulate"
)

func TestReplicasGoWhereTheyAreFewestAndLeaveWhereTheyAreMost(t *testing.T) {
	base, err := built(t, shop, simulate.Given{Rates: rates(t, "600")}) // a:3 b:2 c:1
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		zone  topology.Zone
		count int
		want  string
	}{
		{"", 7, "a:3 b:2 c:2"},
		{"", 9, "a:3 b:3 c:3"},
		{"", 5, "a:2 b:2 c:1"},
		{"", 1, "a:1"},
		{"b", 0, "a:3 c:1"},
		{"c", 4, "a:3 b:2 c:4"},
		{"a", 3, "a:3 b:2 c:1"},
	} {
		q, err := simulate.AskReplicas(base, c.zone, c.count)
		if err != nil {
			t.Errorf("%d replicas in %q: %v", c.count, c.zone, err)
			continue
		}
		if got := zonesOf(simulate.Apply(&q, base).Snapshot.Services[0].Endpoints); got != c.want {
			t.Errorf("%d replicas in %q: %s, want %s", c.count, c.zone, got, c.want)
		}
	}
	if got := zonesOf(base.Snapshot.Services[0].Endpoints); got != "a:3 b:2 c:1" {
		t.Errorf("asking changed the service: %s", got)
	}
}

// zonesOf counts endpoints by zone, and fails to count twice what has the same address.
func zonesOf(endpoints []topology.Endpoint) string {
	var parts []string
	count := make(map[topology.Zone]int)
	seen := make(map[string]bool)
	for _, e := range endpoints {
		if !seen[e.Addr.String()] {
			seen[e.Addr.String()] = true
			count[e.Zone]++
		}
	}
	for _, z := range []topology.Zone{"a", "b", "c"} {
		if count[z] > 0 {
			parts = append(parts, string(z)+":"+string(rune('0'+count[z])))
		}
	}
	return strings.Join(parts, " ")
}

func TestQuestionsThatCannotBeAskedAreRefused(t *testing.T) {
	base, err := built(t, shop, simulate.Given{Rates: rates(t, "a:300,b:300")})
	if err != nil {
		t.Fatal(err)
	}
	alone, err := built(t, "nodes a:4; service web; endpoints a:2", simulate.Given{Rates: rates(t, "300")})
	if err != nil {
		t.Fatal(err)
	}
	loss := func(zone topology.Zone) error { _, err := simulate.AskLoss(base, zone); return err }
	traffic := func(zone topology.Zone, factor float64) error {
		_, err := simulate.AskTraffic(base, zone, factor)
		return err
	}
	replicas := func(zone topology.Zone, n int) error { _, err := simulate.AskReplicas(base, zone, n); return err }
	_, lonely := simulate.AskLoss(alone, "a")
	_, empty := simulate.AskReplicas(alone, "a", 0)
	for want, err := range map[string]error{
		"lose zone x: it has no endpoints":     loss("x"),
		"no other zone has endpoints":          lonely,
		"the service would have no endpoint":   empty,
		"traffic × 1000: want 0 to 100":        traffic("a", 1000),
		"traffic of zone c: it has no clients": traffic("c", 2),
		"no zone x: did you mean":              replicas("x", 2),
		"0 replicas: want 1 to 10000":          replicas("", 0),
		"-1 replicas: want 1":                  replicas("a", -1),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

func TestTheDefaultQuestionsAreModesLossTrafficAndReplicas(t *testing.T) {
	base, err := built(t, shop, simulate.Given{Rates: rates(t, "600")})
	if err != nil {
		t.Fatal(err)
	}
	questions, err := simulate.DefaultQuestions(base)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range questions {
		got = append(got, questions[i].Name)
		sc := simulate.Apply(&questions[i], base)
		if !strings.HasSuffix(sc.Name, questions[i].Name) || sc.Title != questions[i].Title {
			t.Errorf("%s makes the scenario %s, %s", questions[i].Name, sc.Name, sc.Title)
		}
	}
	want := "mode-disabled mode-prefersamezone mode-balanced lose-a traffic-a-x2 traffic-b-x2 traffic-c-x2 replicas-7 replicas-5"
	if strings.Join(got, " ") != want {
		t.Errorf("asked %s\nwant  %s", strings.Join(got, " "), want)
	}
	if len(base.Steps) != 0 || base.Snapshot.Services[0].Mode != topology.ModeAuto {
		t.Error("asking changed the scenario")
	}
}

func TestTheDefaultQuestionsSuitTheLargestService(t *testing.T) {
	base, err := built(t, "nodes a:4 b:4; service web; endpoints a:5000 b:5000", simulate.Given{Rates: rates(t, "600")})
	if err != nil {
		t.Fatal(err)
	}
	questions, err := simulate.DefaultQuestions(base)
	if err != nil {
		t.Fatal(err)
	}
	if last := questions[len(questions)-1]; last.Title != "9999 replicas" {
		t.Errorf("the last question is %s", last.Title)
	}
}

// A question is asked before there is a progress bar: its cost must not be endpoints × nodes.
func TestAskingForManyReplicasIsCheap(t *testing.T) {
	base, err := built(t, "nodes a:4 b:4 c:4; service web; endpoints a:2 b:2 c:2", simulate.Given{Rates: rates(t, "600")})
	if err != nil {
		t.Fatal(err)
	}
	const more = 1000
	allocations := testing.AllocsPerRun(1, func() {
		if _, err := simulate.AskReplicas(base, "", more); err != nil {
			t.Error(err)
		}
	})
	if allocations > more/2 {
		t.Errorf("%d replicas cost %.0f allocations", more, allocations)
	}
}
