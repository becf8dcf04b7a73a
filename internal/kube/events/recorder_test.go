package events_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/weir-lb/weir/internal/kube/events"
)

// about is an event of Service shop/web.
func about(action, note string) events.Event {
	return events.Event{
		Regarding: corev1.ObjectReference{APIVersion: "v1", Kind: "Service", Namespace: "shop", Name: "web", UID: "u1"},
		Type:      corev1.EventTypeNormal, Reason: "TrafficDistributionEnabled", Action: action, Note: note,
	}
}

// record runs a recorder on an API server without its sockets, in virtual time.
func record(t *testing.T, play func(s *fake.Clientset, r *events.Recorder)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := fake.NewClientset()
		r := events.New(server.EventsV1(), "host-1", slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.Run(ctx) }()
		play(server, r)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// written lists the events on the server, oldest first.
func written(t *testing.T, server *fake.Clientset) []eventsv1.Event {
	t.Helper()
	synctest.Wait()
	list, err := server.EventsV1().Events("shop").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(list.Items, func(a, b eventsv1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
	return list.Items
}

func TestAnEventNamesTheObjectAndTheReporter(t *testing.T) {
	record(t, func(s *fake.Clientset, r *events.Recorder) {
		r.Send(about("Hint", "hints are set"))
		list := written(t, s)
		if len(list) != 1 {
			t.Fatalf("want one event, got %v", list)
		}
		e := list[0]
		if e.Regarding.Name != "web" || e.ReportingController != "weir" || e.ReportingInstance != "weir-host-1" ||
			e.Note != "hints are set" || e.Action != "Hint" || e.EventTime.IsZero() || e.Series != nil {
			t.Errorf("got %+v", e)
		}
	})
}

func TestEventsThatDifferInTheNoteOnlyAreASeries(t *testing.T) {
	record(t, func(s *fake.Clientset, r *events.Recorder) {
		writes := func() int { synctest.Wait(); return len(s.Actions()) }
		r.Send(about("Hint", "a"))
		r.Send(about("Unhint", "a"))
		time.Sleep(time.Second)
		for range 5 {
			r.Send(about("Hint", "b"))
		}
		if n := writes(); n != 3 {
			t.Errorf("want two events and one series written, got %d writes", n)
		}
		time.Sleep(6 * time.Minute)
		r.Send(about("Hint", "c"))
		list := written(t, s)
		if len(list) != 2 {
			t.Fatalf("want two events, got %v", list)
		}
		i := slices.IndexFunc(list, func(e eventsv1.Event) bool { return e.Action == "Hint" })
		if list[i].Series == nil || list[i].Series.Count != 7 {
			t.Errorf("want a series of 7, got %v", list[i].Series)
		}
		time.Sleep(13 * time.Minute)
		r.Send(about("Hint", "d"))
		if list := written(t, s); len(list) != 3 {
			t.Errorf("want a new event after the series, got %d", len(list))
		}
	})
}

func TestAnEventWaitsForTheAPIServer(t *testing.T) {
	record(t, func(s *fake.Clientset, r *events.Recorder) {
		var isAway atomic.Bool
		isAway.Store(true)
		s.PrependReactor("create", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
			return isAway.Load(), nil, errors.New("connection refused")
		})
		r.Send(about("Hint", "a"))
		time.Sleep(time.Minute)
		isAway.Store(false)
		time.Sleep(11 * time.Second)
		if list := written(t, s); len(list) != 1 {
			t.Errorf("want the event, got %v", list)
		}
	})
}

func TestEventsBeyondTheQueueAreDropped(t *testing.T) {
	var log strings.Builder
	r := events.New(fake.NewClientset().EventsV1(), "host-1", slog.New(slog.NewTextHandler(&log, nil)))
	for range 1003 { // nothing runs that would take them
		r.Send(about("Hint", "a"))
	}
	if got := strings.Count(log.String(), "one is dropped"); got != 3 {
		t.Errorf("%d of 3 dropped events were logged", got)
	}
}
