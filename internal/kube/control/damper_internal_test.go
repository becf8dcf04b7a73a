package control

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/time/rate"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/feed"
	"github.com/weir-lb/weir/internal/kube/plans"
	"github.com/weir-lb/weir/internal/kube/status"
)

// rivalry is a service whose hints somebody takes off a second after they were written, as kube-controller-manager does.
type rivalry struct {
	t       *testing.T
	cluster *cluster
	store   *store
	reconciler
	told   *told
	counts *counts
	began  time.Time
	plan   string
}

func newRivalry(t *testing.T) *rivalry {
	t.Helper()
	r := &rivalry{t: t, told: &told{}, counts: &counts{}, began: time.Now(), plan: "a"}
	r.store = &store{}
	r.strip()
	r.cluster = newCluster(r.store.d)
	w := newWriter(r.cluster, r.store, rate.NewLimiter(rate.Inf, 1), r.counts)
	r.reconciler = reconciler{writer: w, reporter: r.told}
	return r
}

// strip is what the feed shows after the rival's write.
func (r *rivalry) strip() {
	r.t.Helper()
	versions := map[string]int{}
	if r.cluster != nil {
		r.cluster.versions["s1"]++
		versions = r.cluster.versions
	}
	r.store.d = decide(r.t, versions, "->"+r.plan)
}

// written is what the feed shows after a write of ours.
func (r *rivalry) written() { r.store.d = decide(r.t, r.cluster.versions, r.plan+">"+r.plan) }

// look reconciles once and tells whether that wrote.
func (r *rivalry) look() (wrote bool, again time.Duration) {
	r.t.Helper()
	before := len(r.cluster.patched)
	again, err := r.reconcile(r.t.Context(), web)
	if err != nil {
		r.t.Fatal(err)
	}
	return len(r.cluster.patched) > before, again
}

// rewrites goes on until n writes were undone, and gives when they were made.
func (r *rivalry) rewrites(n int) []time.Duration {
	r.t.Helper()
	var at []time.Duration
	for len(at) < n {
		wrote, again := r.look()
		switch {
		case wrote:
			at = append(at, time.Since(r.began))
			r.written()
			r.look()
			time.Sleep(time.Second)
			r.strip()
		case again <= 0:
			r.t.Fatalf("neither written nor to be looked at again, after writes at %v", at)
		default:
			time.Sleep(again)
		}
	}
	return at
}

func TestHintsThatAreUndoneAgainAndAgainAreWrittenLessAndLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRivalry(t)
		at := r.rewrites(15)
		// Each is undone after a second, and written again after 0, 0, 0, 1, 2, 4, … 300 more.
		var want []time.Duration
		for _, s := range []int{0, 1, 2, 3, 5, 8, 13, 22, 39, 72, 137, 266, 523, 824, 1125} {
			want = append(want, time.Duration(s)*time.Second)
		}
		if diff := cmp.Diff(want, at); diff != "" {
			t.Errorf("writes (-want +got)\n%s", diff)
		}
		if diff := cmp.Diff([]time.Duration{0, 0, 0, time.Second, 2 * time.Second, 4 * time.Second}, r.counts.waits[:6]); diff != "" {
			t.Errorf("counted (-want +got)\n%s", diff)
		}
		told := slices.IndexFunc(r.told.outcomes, func(o status.Outcome) bool { return o.Undone })
		if told < 0 || r.told.outcomes[told].Pending != 1 || slices.ContainsFunc(r.told.outcomes[told:], func(o status.Outcome) bool { return !o.Undone }) {
			t.Errorf("told from report %d on, want it from the first wait on, without a break: %+v", told, r.told.outcomes)
		}
		written := 0
		for _, o := range r.told.outcomes[:max(told, 0)] {
			written += o.Written
		}
		if written != 1+freeRewrites {
			t.Errorf("told after %d writes, want %d", written, 1+freeRewrites)
		}
	})
}

func TestAChangeIsWrittenAtOnceDuringAStruggle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRivalry(t)
		r.rewrites(10)
		if wrote, again := r.look(); wrote || again < time.Minute {
			t.Fatalf("written %v, look again after %v: not slowed", wrote, again)
		}
		r.plan = "b"
		r.strip()
		if wrote, _ := r.look(); !wrote {
			t.Error("another plan had to wait")
		}
		r.written()
		time.Sleep(time.Second)
		r.strip()
		if wrote, again := r.look(); wrote || again < time.Minute {
			t.Errorf("undone after a change: written %v, look again after %v; want it to wait as before", wrote, again)
		}
	})
}

func TestAnotherWishIsAnotherStruggle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRivalry(t)
		r.rewrites(10)
		removed := func() {
			r.cluster.versions["s1"]++
			r.store.d = decide(t, r.cluster.versions, "a>-")
			r.store.d.Plans, r.store.d.Record.Managed = nil, false
		}
		removed()
		if wrote, _ := r.look(); !wrote {
			t.Error("the label is gone, yet the hints stay")
		}
		for range freeRewrites { // a webhook that does not know of it puts them back
			time.Sleep(time.Second)
			removed()
			if wrote, again := r.look(); !wrote || r.last().Undone {
				t.Errorf("written %v, look again after %v, reported %+v; want it written at once", wrote, again, r.last())
			}
		}
	})
}

func TestAStruggleIsOverOnceHintsHaveStood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRivalry(t)
		r.rewrites(8)
		if wrote, _ := r.look(); wrote {
			t.Fatal("not slowed")
		}
		time.Sleep(time.Second)
		r.store.d = decide(t, r.cluster.versions, "a>a") // the webhook is back, and did it
		_, again := r.look()
		if again != calm || !r.last().Undone {
			t.Errorf("hints are back: look again after %v, reported %+v", again, r.last())
		}
		time.Sleep(again)
		if _, again := r.look(); again != 0 || r.last().Undone {
			t.Errorf("hints have stood: look again after %v, reported %+v", again, r.last())
		}
		r.strip()
		if wrote, _ := r.look(); !wrote {
			t.Error("undone for the first time since, yet not written at once")
		}
	})
}

func TestHintsThatAreUndoneNowAndThenAreWrittenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRivalry(t)
		r.look()
		for range 20 {
			r.written()
			time.Sleep(calm)
			r.strip()
			if wrote, _ := r.look(); !wrote || r.last().Undone {
				t.Fatalf("not written at once: %+v", r.last())
			}
		}
	})
}

func TestSlicesThatAreUndoneOneAfterTheOtherCountOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRivalry(t)
		r.store.d = decide(t, nil, "->a", "->a")
		r.cluster = newCluster(r.store.d)
		r.writer.client = r.cluster
		r.look()
		for range freeRewrites {
			time.Sleep(time.Second)
			for _, texts := range [][]string{{"->a", "a>a"}, {"a>a", "->a"}} {
				time.Sleep(50 * time.Millisecond)
				r.cluster.versions["s1"]++
				r.cluster.versions["s2"]++
				r.store.d = decide(t, r.cluster.versions, texts...)
				if wrote, again := r.look(); !wrote {
					t.Fatalf("look again after %v; counted %v", again, r.counts.waits)
				}
			}
		}
		if diff := cmp.Diff(make([]time.Duration, freeRewrites), r.counts.waits); diff != "" {
			t.Errorf("counted (-want +got)\n%s", diff)
		}
	})
}

func TestRewritesOfAllServicesTakeAQuarterOfTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const services, perSecond, burst = 100, 20, 28
		g := newDamper(rate.NewLimiter(perSecond, burst), func(time.Duration) {})
		var decisions []*plans.Decision
		for i := range services {
			d := decide(t, nil, "->a")
			d.Record = &feed.Record{Name: topology.ServiceName{Namespace: "shop", Name: fmt.Sprint(i)}, Managed: true}
			decisions = append(decisions, d)
			g.wrote(d)
		}
		began := time.Now()
		var at []time.Duration
		for len(decisions) > 0 {
			decisions = slices.DeleteFunc(decisions, func(d *plans.Decision) bool {
				if g.ask(d, 1) > 0 {
					return false
				}
				at = append(at, time.Since(began))
				return true
			})
			time.Sleep(10 * time.Millisecond)
		}
		for i, got := range at {
			want := max(0, time.Duration(i+1-burst/rewriteShare)*time.Second*rewriteShare/perSecond)
			if got < want || got > want+20*time.Millisecond {
				t.Errorf("rewrite %d after %v, want %v", i, got, want)
			}
		}
		if slowed, _ := g.slows(topology.ServiceName{Namespace: "shop", Name: "0"}); slowed {
			t.Error("the first of them did not wait, yet is called slowed")
		}
	})
}

func (r *rivalry) last() status.Outcome { return r.told.outcomes[len(r.told.outcomes)-1] }
