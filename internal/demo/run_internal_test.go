package demo

import (
	"context"
	"errors"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// stubborn is a fleet that never leaves its zone: what a client gets that knows zones but no load.
type stubborn struct {
	servers []*http.Server
	running sync.WaitGroup
}

func startStubborn(_ context.Context, l *layout, _ string, _ *agentOptions) (fleet, error) {
	f := &stubborn{}
	for zone, agent := range l.agents {
		var next atomic.Uint64
		proxy := &httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) {
				i := zone*endpointsPerZone + int(next.Add(1)%endpointsPerZone)
				r.SetURL(&url.URL{Scheme: "http", Host: l.endpoints[i].addr.String()})
			},
			ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
			Transport:    &http.Transport{DisableKeepAlives: true},
		}
		server := &http.Server{Addr: agent.addr.String(), Handler: proxy, ReadHeaderTimeout: time.Second}
		f.servers = append(f.servers, server)
		f.running.Go(func() { _ = server.ListenAndServe() })
	}
	return f, nil
}

func (f *stubborn) states() []poolState { return make([]poolState, zoneCount) }

func (f *stubborn) close() error {
	var errs []error
	for _, s := range f.servers {
		errs = append(errs, s.Close())
	}
	f.running.Wait()
	return errors.Join(errs...)
}

func TestZoneAwarenessAloneFallsShort(t *testing.T) {
	var out, progress strings.Builder
	dir := filepath.Join(t.TempDir(), "manifests")
	reports, err := Run(t.Context(), Options{
		Strategies: []string{"Static"}, Rate: 50, Lost: Gone, ManifestDir: dir,
		Speed:   8, // a fault outlasts a second in which the machine is busy, and there is little for it to do
		Summary: &out, Progress: &Display{out: &progress}, fleet: startStubborn,
	})
	if !errors.Is(err, ErrShort) || len(reports) != 1 {
		t.Fatalf("got %d reports and %v: want one that falls short", len(reports), err)
	}
	r := reports[0]
	if len(r.Phases) != len(Script(zoneNames(), Gone, 1)) {
		t.Fatalf("%d phases", len(r.Phases))
	}
	if r.Total.InZone != 1 {
		t.Errorf("%v in zone: want all", r.Total.InZone)
	}
	for _, p := range r.Phases {
		// Requests that were due in the phase and were sent or answered around its ends count, too.
		if p.Event == Gone && p.Hit.Success > 0.5 {
			t.Errorf("%v of the requests from the zone that is gone were answered well", p.Hit.Success)
		}
		if p.Event == Failing && p.Hit.Requests > 0 && p.Hit.Success > 0.9 {
			t.Errorf("half of the endpoints fail, and %v of the requests were answered well", p.Hit.Success)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "service.yaml")); err != nil {
		t.Errorf("the manifests were not kept: %v", err)
	}
	if !strings.Contains(out.String(), "Static falls short") || !strings.Contains(progress.String(), "zone-c") {
		t.Errorf("the results read:\n%s\nthe progress:\n%s", out.String(), progress.String())
	}
}

func TestInterruptedRunReportsWhatItHas(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
	defer cancel()
	reports, err := Run(ctx, Options{Strategies: []string{"Static", "Random"}, Rate: 50, fleet: startStubborn})
	if !errors.Is(err, ErrShort) || len(reports) != 1 {
		t.Fatalf("got %d reports and %v: want the one that began, and short", len(reports), err)
	}
	if r := reports[0]; !r.Interrupted || len(r.Phases) != 1 || r.Total.Requests == 0 {
		t.Errorf("interrupted %v, %d phases, %d requests", r.Interrupted, len(r.Phases), r.Total.Requests)
	}
}

func TestAFleetThatCannotStartEndsTheRun(t *testing.T) {
	cause := errors.New("no")
	_, err := Run(t.Context(), Options{fleet: func(context.Context, *layout, string, *agentOptions) (fleet, error) {
		return nil, cause
	}})
	if !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
}

func TestOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	_, err := Run(t.Context(), Options{
		Rate: -1, Speed: 1e9, Lost: Slow, Mode: "Sideways", RetryOn: "4xx", Strategies: []string{"Hope"},
	})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, part := range []string{"rate", "speed", `"slow"`, "Sideways", "4xx", "Hope"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%v says nothing of %s", err, part)
		}
	}
}
