package control

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
)

// watchman notes who is on duty, and fails the test when two are.
type watchman struct {
	mu     sync.Mutex
	onDuty string
	terms  []string
}

// duty gives a part that is on duty while it runs, and takes a second to end.
func (w *watchman) duty(t *testing.T, name string) func(context.Context) error {
	t.Helper()
	return func(ctx context.Context) error {
		w.mu.Lock()
		if w.onDuty != "" {
			t.Errorf("%s begins while %s is on duty", name, w.onDuty)
		}
		w.onDuty = name
		w.terms = append(w.terms, name)
		w.mu.Unlock()
		<-ctx.Done()
		time.Sleep(time.Second)
		w.mu.Lock()
		w.onDuty = ""
		w.mu.Unlock()
		return nil
	}
}

func (w *watchman) now() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.onDuty
}

// stand makes a candidate whose way to the API server can be cut.
func stand(t *testing.T, w *watchman, name string, client coordinationv1client.LeasesGetter) *election {
	t.Helper()
	o := Options{LeaderElection: LeaderElection{On: true, Identity: name}}
	o, err := o.complete()
	if err != nil {
		t.Fatal(err)
	}
	return &election{
		lease:  &lease{client: client, options: o.LeaderElection, identity: name, logger: o.Logger},
		logger: o.Logger, status: newLeaderStatus(name), duties: []func(context.Context) error{w.duty(t, name)},
	}
}

// newLeases makes an API server that is away while the returned flag says so.
func newLeases() (coordinationv1client.LeasesGetter, *atomic.Bool) {
	isAway := new(atomic.Bool)
	server := fake.NewClientset()
	server.PrependReactor("*", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		return isAway.Load(), nil, errors.New("connection refused")
	})
	return server.CoordinationV1(), isAway
}

func TestALeaderHandsOverOnceItsDutiesHaveEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &watchman{}
		lock, _ := newLeases()
		var candidates sync.WaitGroup
		run := func(e *election) (stop func()) {
			ctx, cancel := context.WithCancel(t.Context())
			candidates.Go(func() {
				if err := e.run(ctx); err != nil {
					t.Error(err)
				}
			})
			return cancel
		}
		stopFirst := run(stand(t, w, "first", lock))
		time.Sleep(time.Second)
		stopSecond := run(stand(t, w, "second", lock))
		time.Sleep(time.Minute)
		if w.now() != "first" {
			t.Errorf("after a minute %q is on duty, want first", w.now())
		}
		stopFirst()
		time.Sleep(10 * time.Second) // well below the lease's duration
		if w.now() != "second" {
			t.Errorf("after first has stopped %q is on duty, want second", w.now())
		}
		stopSecond()
		candidates.Wait()
	})
}

func TestALeaderThatLostItsLeaseStandsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &watchman{}
		lock, isAway := newLeases()
		e := stand(t, w, "only", lock)
		ctx, cancel := context.WithCancel(t.Context())
		var candidate sync.WaitGroup
		candidate.Go(func() {
			if err := e.run(ctx); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(time.Minute)
		isAway.Store(true)
		time.Sleep(DefaultLeaseDuration) // by then another may hold it
		if w.now() != "" || e.leads.Load() {
			t.Errorf("%q is on duty after its lease has ended", w.now())
		}
		time.Sleep(time.Minute)
		isAway.Store(false)
		time.Sleep(2*DefaultRetryPeriod + DefaultRetryPeriod)
		if w.now() != "only" || !e.leads.Load() || len(w.terms) != 2 {
			t.Errorf("%q is on duty, terms: %v, want a second one", w.now(), w.terms)
		}
		cancel()
		candidate.Wait()
	})
}

func TestWithoutElectionTheOnlyReplicaLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &watchman{}
		e := &election{logger: slog.New(slog.DiscardHandler), status: newLeaderStatus("only"), duties: []func(context.Context) error{w.duty(t, "only")}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := e.run(ctx); err != nil || len(w.terms) != 1 {
			t.Errorf("%v, terms %v", err, w.terms)
		}
	})
}

func TestTheElectionLeavesTheConfigOfOtherClientsAlone(t *testing.T) {
	config := &rest.Config{Host: "http://127.0.0.1:1", UserAgent: "weir"}
	o := &Options{
		Logger: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(),
		LeaderElection: LeaderElection{On: true, Name: "weir", Namespace: "weir-system", RenewDeadline: 10 * time.Second},
	}
	if _, err := newElection(config, o); err != nil {
		t.Fatal(err)
	}
	if config.Timeout != 0 || config.UserAgent != "weir" {
		t.Errorf("the config has now timeout %v and user agent %q", config.Timeout, config.UserAgent)
	}
}
