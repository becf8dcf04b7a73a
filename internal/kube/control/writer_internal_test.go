package control

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/time/rate"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/plans"
	"github.com/weir-lb/weir/internal/kube/status"
)

// told remembers what was reported.
type told struct {
	outcomes  []status.Outcome
	rests     int
	forgotten int
}

func (t *told) Report(_ context.Context, _ *plans.Decision, o status.Outcome) error {
	t.outcomes = append(t.outcomes, o)
	return nil
}

// counts is what the writer told of its work.
type counts struct{ waits []time.Duration }

func (c *counts) Wrote(time.Duration, error) {}

func (c *counts) Undone(wait time.Duration) { c.waits = append(c.waits, wait) }

func (t *told) Forget(topology.ServiceName) { t.forgotten++ }

func (t *told) EndTerm() { t.rests++ }

func newTestReconciler(c *cluster, b *store) (*reconciler, *told) {
	people := &told{}
	w := newWriter(c, b, rate.NewLimiter(rate.Inf, 1), &counts{})
	return &reconciler{writer: w, reporter: people}, people
}

// once reconciles shop/web once.
func once(t *testing.T, r *reconciler) error {
	t.Helper()
	_, err := r.reconcile(t.Context(), web)
	return err
}

func TestSlicesAreWrittenPhaseByPhase(t *testing.T) {
	d := decide(t, nil, "->a", "ab>a", "a>ab", "a>a", "a>b")
	c := newCluster(d)
	r, people := newTestReconciler(c, &store{d})
	if err := once(t, r); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"s3", "s5", "s2", "s1"}, c.patched); diff != "" {
		t.Errorf("order (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]status.Outcome{{Slices: 5, Written: 4}}, people.outcomes); diff != "" {
		t.Errorf("report (-want +got)\n%s", diff)
	}
}

func TestASliceIsNotWrittenTwiceWhileTheFeedIsBehind(t *testing.T) {
	d := decide(t, nil, "a>b", "a>a")
	c, b := newCluster(d), &store{d}
	r, people := newTestReconciler(c, b)
	for range 3 {
		if err := once(t, r); err != nil {
			t.Fatal(err)
		}
	}
	b.d = decide(t, nil, "a>c", "a>a") // another plan for what is known to be past
	if err := once(t, r); err != nil {
		t.Fatal(err)
	}
	want := []status.Outcome{{Slices: 2, Written: 1}, {Slices: 2}, {Slices: 2}, {Slices: 2, Pending: 1}}
	if diff := cmp.Diff(want, people.outcomes); diff != "" {
		t.Errorf("reports (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"s1"}, c.patched); diff != "" {
		t.Errorf("while the feed is behind (-want +got)\n%s", diff)
	}
	b.d = decide(t, c.versions, "b>c", "a>a")
	if err := once(t, r); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"s1", "s1"}, c.patched); diff != "" {
		t.Errorf("once the feed has caught up (-want +got)\n%s", diff)
	}
}

func TestWhatSomebodyElseWroteIsNotOverwritten(t *testing.T) {
	for name, spoil := range map[string]func(*cluster){
		"changed":               func(c *cluster) { c.versions["s1"]++ },
		"gone":                  func(c *cluster) { delete(c.versions, "s1") },
		"changed, does not fit": func(c *cluster) { c.versions["s1"]++; c.refuse["s1"] = misfit() },
		"gone, does not fit":    func(c *cluster) { delete(c.versions, "s1"); c.refuse["s1"] = misfit() },
	} {
		t.Run(name, func(t *testing.T) {
			d := decide(t, nil, "a>b")
			c := newCluster(d)
			spoil(c)
			r, people := newTestReconciler(c, &store{d})
			for range 2 {
				if err := once(t, r); err != nil {
					t.Errorf("asked to try again, which the next decision does: %v", err)
				}
			}
			if len(c.patched) > 0 {
				t.Errorf("patched %v", c.patched)
			}
			if first := people.outcomes[0]; first.Pending != 1 || !apierrors.IsConflict(first.Err) && !apierrors.IsNotFound(first.Err) {
				t.Errorf("reported %+v, want 1 pending and why", first)
			}
		})
	}
}

func TestARefusalEndsTheTurnAndIsTriedAgain(t *testing.T) {
	resource := discoveryv1.Resource("endpointslices")
	for name, refusal := range map[string]error{
		"403":     apierrors.NewForbidden(resource, "s2", errors.New("no")),
		"409":     apierrors.NewConflict(resource, "s2", errors.New("a quota was updated meanwhile")),
		"422":     misfit(),
		"429":     apierrors.NewTooManyRequests("later", 1),
		"500":     apierrors.NewInternalError(errors.New("broken")),
		"timeout": context.DeadlineExceeded,
	} {
		t.Run(name, func(t *testing.T) {
			d := decide(t, nil, "ab>a", "a>ab", "->c")
			c := newCluster(d)
			c.refuse["s2"] = refusal
			r, people := newTestReconciler(c, &store{d})
			if err := once(t, r); !errors.Is(err, refusal) {
				t.Errorf("reconcile: %v, want %v", err, refusal)
			}
			if len(c.patched) > 0 {
				t.Errorf("%v were patched after a phase that failed", c.patched)
			}
			if got := people.outcomes[0]; got.Pending != 3 || !errors.Is(got.Err, refusal) {
				t.Errorf("reported %+v", got)
			}
			delete(c.refuse, "s2")
			if err := once(t, r); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff([]string{"s1", "s2", "s3"}, c.sorted()); diff != "" {
				t.Errorf("afterwards (-want +got)\n%s", diff)
			}
		})
	}
}

func TestATurnThatHasBegunIsEnded(t *testing.T) {
	d := decide(t, nil, "a>ab", "ab>a", "->c")
	c := newCluster(d)
	ctx, stop := context.WithCancel(t.Context())
	c.onPatch = stop
	r, people := newTestReconciler(c, &store{d})
	if _, err := r.reconcile(ctx, web); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"s1", "s2", "s3"}, c.patched); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if len(people.outcomes) > 0 {
		t.Errorf("reported %v while stopping", people.outcomes)
	}
}

func TestAServiceThatIsGoneIsForgotten(t *testing.T) {
	c := newCluster(decide(t, nil, "a>b"))
	r, people := newTestReconciler(c, &store{})
	if err := once(t, r); err != nil || people.forgotten != 1 || len(people.outcomes) > 0 {
		t.Errorf("%v, forgotten %d times, reported %v", err, people.forgotten, people.outcomes)
	}
}

func TestTheRateIsKeptAndAServiceGoesInOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const perSecond, burst, slicesEach = 10, 5, 20
		texts := slices.Repeat([]string{"a>b"}, slicesEach)
		d := decide(t, nil, texts...)
		c := newCluster(d)
		var at []time.Duration
		began := time.Now()
		c.onPatch = func() { at = append(at, time.Since(began)) }
		w := newWriter(c, &store{d}, rate.NewLimiter(perSecond, burst), &counts{})
		w.write(t.Context(), web)
		w.decisions = &store{decide(t, c.versions, slices.Repeat([]string{"b>c"}, slicesEach)...)}
		w.write(t.Context(), web)
		if len(at) != 2*slicesEach {
			t.Fatalf("%d patches, want %d", len(at), 2*slicesEach)
		}
		first, second := (slicesEach-burst)*time.Second/perSecond, (2*slicesEach-burst)*time.Second/perSecond
		for i, got := range at {
			want := first
			if i >= slicesEach {
				want = second
			}
			if (got - want).Abs() > time.Millisecond {
				t.Errorf("patch %d after %v, want %v", i, got, want)
			}
		}
	})
}

func TestWaitingForTokensEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := decide(t, nil, "a>b")
		c := newCluster(d)
		bucket := rate.NewLimiter(rate.Every(time.Hour), 1)
		bucket.Allow()
		w := newWriter(c, &store{d}, bucket, &counts{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if r := w.write(ctx, web); !errors.Is(r.err, context.DeadlineExceeded) || r.pending != 1 || len(c.patched) > 0 {
			t.Errorf("%+v, patched %v", r, c.patched)
		}
	})
}

func TestAPatchThatHangsDoesNotHoldUpOtherServices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := decide(t, nil, "a>b")
		c := newCluster(d)
		c.hang = patchTimeout
		r, _ := newTestReconciler(c, &store{d})
		began := time.Now()
		var services sync.WaitGroup
		services.Go(func() { _ = r.writer.write(t.Context(), web) })
		synctest.Wait()
		c.hang = 0
		if got := r.writer.write(t.Context(), web); got.written != 1 || time.Since(began) > slotLimit {
			t.Errorf("%+v after %v", got, time.Since(began))
		}
		services.Wait()
	})
}
