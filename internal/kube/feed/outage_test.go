package feed_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/apitest"
	"github.com/weir-lb/weir/internal/kube/feed"
	"github.com/weir-lb/weir/internal/patience"
)

// watch follows an API server with real informers for the length of the test.
func watch(t *testing.T, server *apitest.Server, o feed.Options) *feed.Feed {
	t.Helper()
	config := &rest.Config{Host: server.URL()}
	c, err := feed.NewCache(config, o)
	if err != nil {
		t.Fatal(err)
	}
	f, err := feed.New(c, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 2)
	go func() { done <- c.Start(ctx) }()
	go func() { done <- f.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-done, <-done); err != nil {
			t.Error(err)
		}
	})
	return f
}

// endpoints counts the endpoints of shop/NAME; -1 without such a service.
func endpoints(f *feed.Feed, name string) int {
	s, _ := f.States().Load()
	if s == nil {
		return -1
	}
	svc := s.Snapshot.Service(topology.ServiceName{Namespace: "shop", Name: name})
	if svc == nil {
		return -1
	}
	return len(svc.Endpoints)
}

func TestAnAPIServerThatIsGoneLeavesTheLastState(t *testing.T) {
	server := apitest.New(t)
	server.Set(node("n1", "a"), service("web"), service("api"), slice("web-1", "web", "10.1.0.1@n1", "10.1.0.2@n1"))
	var log patience.Log
	f := watch(t, server, feed.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	<-f.Synced()
	before, _ := f.States().Load()
	if n := endpoints(f, "web"); n != 2 || before.Records[1].Slices[0].ResourceVersion == "" {
		t.Fatalf("want 2 endpoints of a known version, got %d", n)
	}
	server.Go()
	server.Drop(service("api")) // no watch sees it go
	server.Set(slice("web-1", "web", "10.1.0.1@n1"))
	patience.Until(t, "the log tells of the outage", func() bool {
		return strings.Contains(log.String(), "level=WARN") && strings.Contains(log.String(), "the last state stays")
	})
	patience.Stays(t, time.Second, "the last state is there", func() bool { now, _ := f.States().Load(); return now == before })
	server.Return()
	seen := func() bool { return endpoints(f, "web") == 1 && endpoints(f, "api") == -1 }
	patience.Until(t, "what happened meanwhile is seen", seen)
	patience.Stays(t, time.Second, "what happened meanwhile is seen", seen)
}

func TestAFeedWaitsForAnAPIServerThatIsNotThereYet(t *testing.T) {
	server := apitest.New(t)
	server.Set(node("n1", "a"), service("web"))
	server.Go()
	var log patience.Log
	f := watch(t, server, feed.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	patience.Until(t, "the log tells of the outage", func() bool { return strings.Contains(log.String(), "the last state stays") })
	patience.Stays(t, time.Second, "no state is made of nothing", func() bool { s, _ := f.States().Load(); return s == nil })
	server.Return()
	<-f.Synced()
	if n := endpoints(f, "web"); n != 0 {
		t.Errorf("want a service without endpoints, got %d", n)
	}
}

func TestOnlyTheNodeThatIsAskedForIsWatched(t *testing.T) {
	server := apitest.New(t)
	server.Set(node("n1", "a"), node("n2", "b"))
	f := watch(t, server, feed.Options{Node: "n2"})
	<-f.Synced()
	s, _ := f.States().Load()
	if len(s.Snapshot.Nodes) != 1 || s.Snapshot.Nodes[0].Zone != "b" {
		t.Errorf("want n2 in zone b alone, got %+v", s.Snapshot.Nodes)
	}
	server.Set(node("n1", "c"), node("n2", "c"))
	isMoved := func() bool {
		s, _ := f.States().Load()
		return len(s.Snapshot.Nodes) == 1 && s.Snapshot.Nodes[0].Zone == "c"
	}
	patience.Within(t, time.Second, "the node is seen in its new zone", isMoved)
	patience.Stays(t, time.Second, "the node alone is seen in its new zone", isMoved)
}
