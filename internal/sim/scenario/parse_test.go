package scenario_test

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/sim/scenario"
)

// same compares whole scenarios. Lines of steps change when a text is written anew; a list that is empty equals one that
// is missing; a cost table of nothing but zeros does not equal one that is not set.
func same() cmp.Options {
	return cmp.Options{
		cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
		cmp.Comparer(func(a, b topology.Costs) bool {
			return a.String() == b.String() && (a.Pairs == nil) == (b.Pairs == nil)
		}),
		cmpopts.IgnoreFields(scenario.Step{}, "Line"),
		cmpopts.EquateEmpty(),
	}
}

func parse(t *testing.T, text string) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Parse("dir/story.txtar", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// head is what a scenario needs at least, six lines.
const head = `Hello
-- cluster --
service web
endpoints a:6 b:6
-- run --
clients a:8 b:8
rate a:660 b:330
`

func TestAMinimalScenarioHasDefaults(t *testing.T) {
	got := parse(t, head)
	ready := topology.Conditions{Ready: topology.True, Serving: topology.True, Terminating: topology.False}
	want := &scenario.Scenario{
		Name: "story", Title: "Hello",
		Snapshot: got.Snapshot,
		Clients: []scenario.Clients{
			{Zone: "a", Count: 8, Rate: 660},
			{Zone: "b", Count: 8, Rate: 330},
		},
		Server: scenario.Server{
			Workers: 4, Queue: 250, Service: scenario.Distribution{Kind: scenario.Lognormal, Mean: 20 * time.Millisecond, CV: 1},
			Start: 5 * time.Second, Cold: 1, Drain: 5 * time.Second,
		},
		Network: scenario.Network{
			SameZone: 300 * time.Microsecond, CrossZone: 1200 * time.Microsecond, CrossCluster: 5 * time.Millisecond, Jitter: 0.1,
		},
		Request:   scenario.Request{Timeout: time.Second, Budget: 0.2, Backoff: 25 * time.Millisecond, Bytes: 20 * 1024},
		Price:     scenario.Price{PerGB: 0.02},
		Discovery: scenario.Discovery{Delay: 500 * time.Millisecond, Jitter: 0.5, Lost: 40 * time.Second},
		Length:    100 * time.Second,
		Stress:    scenario.Window{From: 30 * time.Second, To: 70 * time.Second},
	}
	if diff := cmp.Diff(want, got, same()); diff != "" {
		t.Errorf("wrong defaults (-want +got):\n%s", diff)
	}
	svc := got.Service()
	if len(svc.Endpoints) != 12 || svc.Endpoints[0].Zone != "a" || svc.Endpoints[0].Conditions != ready {
		t.Errorf("wrong snapshot: %s", got.Snapshot)
	}
}

const full = `A title
A line of it.

Another
paragraph.   ` + `
-- cluster --
# the cluster
nodes eu/a:4x2 eu/b:4x2
costs a>b=3; service shop/web mode=Auto
endpoints a:6 b:6 c:2{cluster=west}
-- run --
clients a:2 shares=70,30   # one big one
clients b:300
rate b:100.5 a:50
server workers=2 queue=10 service=bimodal:20ms,heavy=0.2 start=2s cold=3 warm=10s drain=1m
speed a/1-3:0.5 b/50%:2
speed @west:0.9
network same-zone=200us cross-zone=1.5ms cross-cluster=30ms jitter=0
request timeout=2s good=100ms attempt=500ms retries=2 budget=0 backoff=10ms bytes=1MB polls=0.02 streams=0.1 hold=5s load=0.1 accepted
price per-gb=0.01
discovery delay=1s jitter=0.2 lost=20s
day period=30s low=0.5 high=1.5 lag=b:5s
autoscale min=2 max=50 target=0.5 every=10s tolerance=0.2 window=1m stabilization=0s
nodes pods-per-node=3 max=5 boot=20s idle=30s
length 2m
stress 20s..1m20s
affected b a
-- steps --
1m10s rate * x1 over 5s
30s rate a x3.5
30s slow a/2 x10
30s delay c@west/1-2 200ms
`

func TestAFullScenarioMeansWhatItSays(t *testing.T) {
	got := parse(t, full+`31s fail a/12.5% 0.5
32s hang b
33s refuse @west
34s heal *
35s lose a
36s return a
37s rollout *
37s rollout b batch=2
38s scale b 9
39s slow b/9 x2
40s drain a 30s
-- explain --

 as it is
-- results --
`)
	want := &scenario.Scenario{
		Name: "story", Title: "A title", About: "A line of it.\n\nAnother\nparagraph.\n", Snapshot: got.Snapshot,
		Clients: []scenario.Clients{
			{Zone: "a", Count: 2, Rate: 50, Shares: []float64{0.7, 0.3}},
			{Zone: "b", Count: 300, Rate: 100.5},
		},
		Server: scenario.Server{
			Workers: 2, Queue: 10,
			Service: scenario.Distribution{Kind: scenario.Bimodal, Mean: 20 * time.Millisecond, Heavy: 0.2, Factor: 10},
			Speeds: []scenario.Speed{
				{Where: scenario.Where{Zone: "a", First: 1, Last: 3}, Factor: 0.5},
				{Where: scenario.Where{Zone: "b", Part: 0.5}, Factor: 2},
				{Where: scenario.Where{Cluster: "west"}, Factor: 0.9},
			},
			Start: 2 * time.Second, Cold: 3, Warm: 10 * time.Second, Drain: time.Minute,
		},
		Network: scenario.Network{
			SameZone: 200 * time.Microsecond, CrossZone: 1500 * time.Microsecond, CrossCluster: 30 * time.Millisecond,
		},
		Request: scenario.Request{
			Timeout: 2 * time.Second, Good: 100 * time.Millisecond, Attempt: 500 * time.Millisecond, Retries: 2,
			Backoff: 10 * time.Millisecond, Bytes: 1e6, Polls: 0.02, Streams: 0.1, Hold: 5 * time.Second, Load: 0.1, Accepted: true,
		},
		Price:     scenario.Price{PerGB: 0.01},
		Discovery: scenario.Discovery{Delay: time.Second, Jitter: 0.2, Lost: 20 * time.Second},
		Day: &scenario.Day{
			Period: 30 * time.Second, Low: 0.5, High: 1.5, Lag: map[topology.Zone]time.Duration{"b": 5 * time.Second},
		},
		Autoscale: &scenario.Autoscale{
			Min: 2, Max: 50, Target: 0.5, Every: 10 * time.Second, Tolerance: 0.2, Window: time.Minute,
		},
		NodePools: &scenario.NodePools{PodsPerNode: 3, Max: 5, Boot: 20 * time.Second, Idle: 30 * time.Second},
		Length:    2 * time.Minute,
		Stress:    scenario.Window{From: 20 * time.Second, To: 80 * time.Second},
		Affected:  []topology.Zone{"a", "b"},
		Explain:   " as it is\n",
		Steps: []scenario.Step{
			{At: 30 * time.Second, Verb: scenario.Rate, Where: scenario.Where{Zone: "a"}, Factor: 3.5, Line: 30},
			{At: 30 * time.Second, Verb: scenario.Slow, Where: scenario.Where{Zone: "a", First: 2, Last: 2}, Factor: 10, Line: 31},
			{
				At: 30 * time.Second, Verb: scenario.Delay, Time: 200 * time.Millisecond, Line: 32,
				Where: scenario.Where{Zone: "c", Cluster: "west", First: 1, Last: 2},
			},
			{At: 31 * time.Second, Verb: scenario.Fail, Where: scenario.Where{Zone: "a", Part: 0.125}, Ratio: 0.5, Line: 33},
			{At: 32 * time.Second, Verb: scenario.Hang, Where: scenario.Where{Zone: "b"}, Line: 34},
			{At: 33 * time.Second, Verb: scenario.Refuse, Where: scenario.Where{Cluster: "west"}, Line: 35},
			{At: 34 * time.Second, Verb: scenario.Heal, Line: 36},
			{At: 35 * time.Second, Verb: scenario.Lose, Where: scenario.Where{Zone: "a"}, Line: 37},
			{At: 36 * time.Second, Verb: scenario.Return, Where: scenario.Where{Zone: "a"}, Line: 38},
			{At: 37 * time.Second, Verb: scenario.Rollout, Count: 1, Line: 39},
			{At: 37 * time.Second, Verb: scenario.Rollout, Where: scenario.Where{Zone: "b"}, Count: 2, Line: 40},
			{At: 38 * time.Second, Verb: scenario.Scale, Where: scenario.Where{Zone: "b"}, Count: 9, Line: 41},
			{At: 39 * time.Second, Verb: scenario.Slow, Where: scenario.Where{Zone: "b", First: 9, Last: 9}, Factor: 2, Line: 42},
			{At: 40 * time.Second, Verb: scenario.Drain, Where: scenario.Where{Zone: "a"}, Time: 30 * time.Second, Line: 43},
			{At: 70 * time.Second, Verb: scenario.Rate, Factor: 1, Over: 5 * time.Second, Line: 29},
		},
	}
	if diff := cmp.Diff(want, got, same()); diff != "" {
		t.Errorf("wrong scenario (-want +got):\n%s", diff)
	}
	for i, st := range got.Steps {
		if st.Line != want.Steps[i].Line {
			t.Errorf("step %q is in line %d, want %d", st, st.Line, want.Steps[i].Line)
		}
	}
	if diff := cmp.Diff([]string{"A line of it.", "Another paragraph."}, got.Paragraphs()); diff != "" {
		t.Errorf("wrong paragraphs (-want +got):\n%s", diff)
	}
}

// refusals gives the errors of a text, one line each.
func refusals(text string) []string {
	_, err := scenario.Parse("story.txtar", []byte(text))
	if err == nil {
		return nil
	}
	return strings.Split(err.Error(), "\n")
}

func TestEveryMistakeOfAFileIsReported(t *testing.T) {
	got := refusals(`
-- cluster --
service web
endpoints a:6 b:6
-- run --
clients a:8 x:3 shares=50,30
rate a:660 c:5
server workers=0 worker=3 queue=1e3 service=normal:20ms
request timeout=30 retries=50% attempt=2s bytes=20 accepted=yes
network jitter
day period=60s low=2
stress 5s..80s
speed a/7:0.5 z:1
server queue=3
sever queue=3
-- steps --
30 slow a x10
100s slow a x10
30s slow a 10
30s melt a
30s fail a 50%
30s lose a/2
30s scale * 3
30s rate y x2
30s drain a
-- stories --
`)
	want := []string{
		`story.txtar:1: title: is missing: write what happens into the first line of the file`,
		`story.txtar:6: clients.a: has 8 clients and 2 shares: write one share for each`,
		`story.txtar:6: clients.x: zone x is not in the cluster: it has a, b`,
		`story.txtar:6: clients.x: has 3 clients and 2 shares: write one share for each`,
		`story.txtar:7: rate.c: zone c has a rate but no clients: add it to clients`,
		`story.txtar:8: server.worker: unknown field of server: did you mean workers?`,
		`story.txtar:8: server.queue: bad number "1e3": want a whole number without unit, as in 4`,
		`story.txtar:8: server.service: bad distribution "normal:20ms": want KIND:MEAN with constant, exponential, lognormal or bimodal, ` +
			`as in lognormal:20ms,cv=1`,
		`story.txtar:8: server.workers: is 0: want a whole number from 1 to 1000`,
		`story.txtar:9: request.timeout: bad time "30": want a number and its unit, as in 30s, 20ms or 300us`,
		`story.txtar:9: request.retries: bad number "50%": want a whole number without unit, as in 4`,
		`story.txtar:9: request.bytes: bad size "20": want a number and its unit, as in 500B, 20KiB or 2MB`,
		`story.txtar:9: request.accepted: is a word of its own: write it without a value`,
		`story.txtar:10: network.jitter: has no value: write jitter=VALUE`,
		`story.txtar:11: day.low: is above high, 1: exchange them`,
		`story.txtar:12: stress: is 5s..80s: want a time that begins at 10s or later, when clients have warmed up, and ends by 100s, the run's end`,
		`story.txtar:13: speed.a/7: place a/7: there is no endpoint 7, the zone never has more than 6`,
		`story.txtar:13: speed.z: place z has no endpoints: the zones with some are a, b`,
		`story.txtar:14: server: is there already, in line 8: write one statement`,
		`story.txtar:15: sever: is unknown: did you mean server?`,
		`story.txtar:17: steps.slow: bad time "30": want a number and its unit, as in 30s, 20ms or 300us`,
		`story.txtar:18: steps.slow: at 100s is not within the run of 100s: make the run longer, or the step earlier`,
		`story.txtar:19: steps.slow: bad factor "10": want x and a number, as in x3 or x0.5 (TIME slow PLACE xFACTOR)`,
		`story.txtar:20: steps: unknown verb "melt": want one of rate, slow, delay, fail, hang, refuse, heal, lose, return, rollout, scale, drain`,
		`story.txtar:21: steps.fail: bad number "50%": write a fraction, as in 0.5 for 50 % (TIME fail PLACE FRACTION)`,
		`story.txtar:22: steps.lose: place a/2: this verb is about whole zones; leave /2 out`,
		`story.txtar:23: steps.scale: place *: want one whole zone, as in a or a@west`,
		`story.txtar:24: steps.rate: zone y has no clients: it is not in clients`,
		`story.txtar:25: steps.drain: has 0 words after the place: want one (TIME drain PLACE TIME)`,
		`story.txtar:26: stories: is no section: want cluster, run, steps, explain or results`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSingleMistakesAreRefused(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{head + "-- cluster --\nservice web", "8: cluster: is there already, in line 2: make one section of them"},
		{strings.Replace(head, "a:6 b:6", "a:6\nendpoints b", 1), `5: cluster: column 11: bad endpoint "b": want ZONE:COUNT, as in a:3, b:1! or -:1`},
		{strings.Replace(head, "b:6", "b:6; service two", 1), "2: cluster: has 2 services: write exactly one, as in service web"},
		{strings.Replace(head, "b:6", "b:6!", 1), "2: cluster: endpoint 10.0.0.7 and 5 more are not ready: all are when a run begins; leave it out, or fail it in a step"},
		{strings.Replace(head, "b:6", "v6=b:1", 1), "2: cluster: endpoint fd00::7 is of another family than the first: each pod is one endpoint, keep one family"},
		{strings.Replace(head, "b:6", "b:1 -:1", 1), "2: cluster: endpoint 10.0.0.8 is without a zone: write one"},
		{strings.Replace(head, "b:6", "b:1{ports=9:9}", 1), "2: cluster: endpoint 10.0.0.7 is without a port of the service: leave the endpoint's ports out"},
		{strings.Replace(head, "service web", "service web port=-", 1), "2: cluster: service default/web has no port: write one, or leave port= out"},
		{strings.Replace(head, "a:6", "a:9999 c:99", 1), "2: cluster: service default/web has 10104 endpoints: 10000 are the most"},
		{strings.Replace(head, "a:8", "a:10001", 1), "6: clients.a: has 10001 clients: want 1 to 10000"},
		{strings.Replace(head, "a:8 b:8", "a:8000 b:8000", 1), "6: clients: there are 16000 in all: 10000 are the most"},
		{strings.Replace(head, "a:8 b:8", "a:8 b:8 a:3", 1), "6: clients.a: is there already, in line 6: remove one"},
		{strings.Replace(head, "clients a:8 b:8", "clients a:8", 1), "7: rate.b: zone b has a rate but no clients: add it to clients"},
		{strings.Replace(head, "rate a:660 ", "rate ", 1), "7: rate.a: zone a has 0 requests per second: want more than 0 and at most 1000000, as in rate a:660"},
		{strings.Replace(head, "a:660 b:330", "a:900000 b:900000", 1), "7: rate: all zones together have 1800000 requests per second: 1000000 is the most"},
		{strings.Replace(head, "b:8", "b:8 shares=30,20x", 1), `6: clients.shares: bad percentage "20x": want a number, as in 30 or 12.5; ` +
			`shares are percentages, as in shares=50,30,20`},
		{head + "length 25h", "8: length: is 25h: want 15s to 24h; the first 10s are never counted"},
		{head + "length 100", `8: length: bad time "100": want a number and its unit, as in 30s, 20ms or 300us`},
		{head + "stress 30s..101s", "8: stress: is 30s..101s: want a time that begins at 10s or later, when clients have warmed up, and ends by 100s, the run's end"},
		{head + "stress 30s", "8: stress: want FROM..TO, as in stress 30s..70s"},
		{head + "affected c", "8: affected: zone c has no clients: leave it out"},
		{head + "affected", "8: affected: names no zone: write one, or leave the statement out for all of them"},
		{head + "server cold=3", "8: server.warm: is 0s, so that pods are never cold: write how long they take to warm up, as in warm=10s"},
		{head + "server cold=0.5", "8: server.cold: is 0.5, which makes new pods faster: want 1 for no difference, or more"},
		{head + "server service=constant:20ms,cv=1", `8: server.service: unknown "cv=1" of a constant distribution: lognormal has cv=, bimodal has heavy= and factor=`},
		{head + "server service=lognormal:0s", "8: server.service: has a mean of 0s: want more than 0s and at most 600s"},
		{head + "server service=bimodal:1s,factor=1", "8: server.service: has a factor that is 1: want more than 1 and at most 1000"},
		{head + "request attempt=2s", "8: request.attempt: is longer than the timeout of the whole request, 1s: make it shorter"},
		{head + "request good=2s", "8: request.good: is longer than the timeout, 1s: make it shorter"},
		{head + "request polls=0.6 streams=0.5 hold=1s", "8: request.streams: and polls together are more than all requests: make them sum to at most 1"},
		{head + "request polls=0.6", "8: request.hold: is 0s: say how long polls and streams are held, as in hold=5s"},
		{head + "request retries=2 retries=3", "8: request.retries: is there already, in line 8: remove one"},
		{head + "request timeout=-1s", `8: request.timeout: bad time "-1s": want a number and its unit, as in 30s, 20ms or 300us`},
		{head + "price per-gb=0.02/GB", `8: price.per-gb: bad number "0.02/GB": want a number without unit, as in 0.25 or 660`},
		{head + "discovery jitter=2", "8: discovery.jitter: is 2: want a number from 0 to 1"},
		{head + "day lag=c:3s", "8: day.lag: zone c has no clients: leave it out"},
		{head + "day lag=b", `8: day.lag: bad lag "b": want ZONE:TIME, as in b:20s`},
		{head + "autoscale min=6 max=3", "8: autoscale.min: is above max, 3: exchange them"},
		{strings.Replace(head, "service", "nodes b:4x2\nservice", 1) + "nodes pods-per-node=4", "9: nodes.pods-per-node: zone a has 0 nodes with room for 0 pods and 6 endpoints: write more nodes into the section cluster"},
		{head + "speed a:0", "8: speed.a: is 0: want more than 0 and at most 1000; 0.5 takes twice as long"},
		{head + "speed a", `8: speed: bad "a": want PLACE:FACTOR, as in a/1-3:0.5`},
		{head + "-- steps --\n30s slow a", "9: steps.slow: has 0 words after the place: want one (TIME slow PLACE xFACTOR)"},
		{head + "-- steps --\n30s heal a b", `9: steps.heal: does not understand "b": nothing follows the place (TIME heal PLACE)`},
		{head + "-- steps --\n30s rollout a 2", `9: steps.rollout: does not understand "2": want batch=COUNT, as in batch=2 (TIME rollout PLACE [batch=COUNT])`},
		{head + "-- steps --\n30s slow", `9: steps: bad step "30s slow": want TIME VERB PLACE, as in 30s slow a x10`},
		{head + "-- steps --\n30s slow a/0 x2", `9: steps.slow: bad place "a/0": endpoints count from 1, as in a/1, a/1-3 or a/50%`},
		{head + "-- steps --\n30s slow a/120% x2", `9: steps.slow: bad place "a/120%": want a part above 0 and up to 100 %, as in a/50%`},
		{head + "-- steps --\n30s slow @ x2", `9: steps.slow: bad place "@": want the name of a cluster after @, as in @west or a@west`},
		{head + "-- steps --\n30s slow @west x2", "9: steps.slow: place @west has no endpoints: the clusters with some are none"},
		{head + "-- steps --\n30s slow a x2000", "9: steps.slow: the factor is 2000: want more than 0 and at most 1000"},
		{head + "-- steps --\n" + strings.Repeat("30s slow z x2\n", 10_001), "8: steps: there are 10001: 10000 are the most"},
		{head + "-- steps --\n30s slow a x0", "9: steps.slow: the factor is 0: want more than 0 and at most 1000"},
		{head + "-- steps --\n30s rate a x2000", "9: steps.rate: the factor is 2000: want a number from 0 to 1000"},
		{head + "-- steps --\n30s fail a 1.5", "9: steps.fail: the fraction is 1.5: want a number from 0 to 1"},
		{head + "-- steps --\n30s rate a@west x2", "9: steps.rate: place a@west: want the clients of a zone, as in a, or *"},
		{head + "-- steps --\n30s drain @west 3s", "9: steps.drain: place @west: want one whole zone of the clients' own cluster, as in a"},
		{head + "-- steps --\n30s scale z 3", "9: steps.scale: zone z is not in the cluster: it has a, b"},
		{"Hello", "1: cluster: there is no such section: write the line -- cluster --, and below it the service; weir simulate --show steady prints a whole file"},
		{strings.Replace(head, "rate ", "raet ", 1), "7: raet: is unknown: did you mean rate?"},
		{strings.Replace(head, "clients ", "client ", 1), "6: client: is unknown: did you mean clients?"},
		{strings.Replace(head, "-- cluster", "-- clustre", 1), "2: clustre: is unknown: did you mean cluster?"},
		{strings.Replace(head, "-- cluster", "-- world", 1), "2: world: this section is called cluster now: write -- cluster --"},
		{head + "-- stpes --\n30s melt a", "8: stpes: is unknown: did you mean steps?"},
		{head + "-- steps --\n30s slwo a x2", `9: steps: unknown verb "slwo": did you mean slow?`},
		{head + "-- cluster --\n", "8: cluster: is there already, in line 2: make one section of them"},
		{head + "\xff", "8: the text is not UTF-8: save it as UTF-8"},
		{"\x1b[31m" + head, "1: the text has the control character U+001B: take it out"},
	} {
		got := refusals(c.text)
		if len(got) != 1 || got[0] != "story.txtar:"+c.want {
			t.Errorf("%q:\n got %q\nwant %q", c.text, got, "story.txtar:"+c.want)
		}
	}
}

func TestWhatIsNoScenarioIsNotToldLineByLine(t *testing.T) {
	got := refusals(head + strings.Repeat("nonsense\n", 100_000))
	if want := "story.txtar: there are 99950 mistakes more: mend these first"; len(got) != 51 || got[50] != want {
		t.Errorf("got %d mistakes, the last %q; want 51 and %q", len(got), got[len(got)-1], want)
	}
}

func TestErrorsAreForPrograms(t *testing.T) {
	_, err := scenario.Parse("dir/story.txtar", []byte(head+"server workers=0"))
	var got *scenario.Error
	if !errors.As(err, &got) {
		t.Fatalf("got %v", err)
	}
	want := scenario.Error{
		File: "dir/story.txtar", Line: 8, Field: "server.workers", Message: "is 0: want a whole number from 1 to 1000",
	}
	if diff := cmp.Diff(want, *got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestScenariosMadeInCodeAreCheckedToo(t *testing.T) {
	s := parse(t, head)
	if errs := s.Validate(); errs != nil {
		t.Errorf("a parsed scenario is refused: %v", errs)
	}
	sorted := "is not what is read again when it is written: steps, clients or zones are not sorted, or a text begins a section"
	for _, c := range []struct {
		spoil func(*scenario.Scenario)
		want  []string
	}{
		{func(s *scenario.Scenario) { s.About = "two\a\n" }, []string{"the text has the control character U+0007: take it out"}},
		{func(s *scenario.Scenario) { s.Title = "two\nlines" }, []string{sorted}},
		{func(s *scenario.Scenario) { s.About = "-- steps --\n30s heal *" }, []string{sorted}},
		{
			func(s *scenario.Scenario) { s.Title = "-- title --" },
			[]string{"title: is no section: want cluster, run, steps, explain or results", "title: is missing: write what happens into the first line of the file"},
		},
		{func(s *scenario.Scenario) {
			s.Server.Workers = 0
			s.Steps = []scenario.Step{{At: 30 * time.Second, Verb: "melt"}}
		}, []string{
			`steps: unknown verb "melt": want one of rate, slow, delay, fail, hang, refuse, heal, lose, return, rollout, scale, drain`,
			"server.workers: is 0: want a whole number from 1 to 1000",
		}},
		{func(s *scenario.Scenario) {
			s.Steps = []scenario.Step{{At: 40 * time.Second, Verb: scenario.Heal}, {At: 30 * time.Second, Verb: scenario.Heal}}
		}, []string{sorted}},
		{func(s *scenario.Scenario) { s.Clients[0], s.Clients[1] = s.Clients[1], s.Clients[0] }, []string{sorted}},
		{func(s *scenario.Scenario) { s.Affected = []topology.Zone{"b", "a"} }, []string{sorted}},
	} {
		s := parse(t, head)
		c.spoil(s)
		var got []string
		for _, err := range s.Validate() {
			got = append(got, err.Error())
		}
		for i := range c.want {
			c.want[i] = "story: " + c.want[i]
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(head)
	f.Add(full)
	paths, err := filepath.Glob("../../../test/scenarios/*.txtar")
	if err != nil || len(paths) == 0 {
		f.Fatalf("no standard scenarios: %v", err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := scenario.Parse("fuzz", []byte(text))
		if err != nil {
			return
		}
		printed := s.String()
		again, err := scenario.Parse("fuzz", []byte(printed))
		if err != nil {
			t.Fatalf("%q printed as %q, which is refused: %v", text, printed, err)
		}
		const few = 100 // to compare thousands of endpoints takes longer than all else
		if len(s.Snapshot.Nodes)+len(s.Service().Endpoints) < few {
			if diff := cmp.Diff(s, again, same()); diff != "" {
				t.Fatalf("%q changed on its way (-want +got):\n%s", text, diff)
			}
		}
		if second := again.String(); second != printed {
			t.Fatalf("%q printed as %q, then as %q", text, printed, second)
		}
	})
}

func TestStepsMayNameEndpointsThatOtherStepsMake(t *testing.T) {
	text := strings.Replace(head, "service", "nodes c:4x2\nservice", 1) + "-- steps --\n20s scale c 9\n30s slow */9 x2\n40s hang c/9\n"
	if got := len(parse(t, text).Steps); got != 3 {
		t.Errorf("%d steps, want 3", got)
	}
	_, err := scenario.Parse("", []byte(strings.Replace(text, "*/9", "*/10", 1)))
	if err == nil || !strings.Contains(err.Error(), "the zone never has more than 9") {
		t.Errorf("a tenth endpoint: %v", err)
	}
}

func TestASuccessIsGoodWithinFiveServiceTimesUnlessTheFileSaysOtherwise(t *testing.T) {
	for text, want := range map[string]time.Duration{head: 100 * time.Millisecond, head + "request good=30ms": 30 * time.Millisecond} {
		if got := parse(t, text).GoodWithin(); got != want {
			t.Errorf("%v, want %v", got, want)
		}
	}
}

func TestOnlyWholePlacesNamePodsThatHaveNoPlaceYet(t *testing.T) {
	for _, c := range []struct {
		where scenario.Where
		want  bool
	}{
		{scenario.Where{}, true},
		{scenario.Where{Part: 0.5}, false},
		{scenario.Where{Part: 1}, false},
		{scenario.Where{First: 1, Last: 9}, false},
		{scenario.Where{Zone: "a"}, false},
	} {
		if got := c.where.Has("", "", 0, 0); got != c.want {
			t.Errorf("%s: %v, want %v", c.where, got, c.want)
		}
	}
}
