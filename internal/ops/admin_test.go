package ops_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/ops"
)

// admin starts an admin server for the length of the test and gives a function that asks it.
func admin(t *testing.T, o ops.AdminOptions) func(method, path string) (status int, body string) {
	t.Helper()
	a, err := ops.ListenAdmin(t.Context(), "127.0.0.1:0", o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return func(method, path string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+a.Addr().String()+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
}

func TestHealthAnswersLikeAKubernetesComponent(t *testing.T) {
	good := ops.Check{Name: "snapshot", Probe: func() error { return nil }}
	bad := ops.Check{Name: "listeners", Probe: func() error { return errors.New("none is bound") }}
	ask := admin(t, ops.AdminOptions{Live: []ops.Check{good}, Ready: []ops.Check{good, bad}})
	type answer struct {
		Status int
		Body   string
	}
	for path, want := range map[string]answer{
		"/livez":                            {200, "ok"},
		"/livez?verbose":                    {200, "[+]snapshot ok\nlivez check passed\n"},
		"/readyz":                           {503, "[+]snapshot ok\n[-]listeners failed: none is bound\nreadyz check failed\n"},
		"/readyz/snapshot":                  {200, "ok"},
		"/readyz/listeners":                 {503, "[-]listeners failed: none is bound\nreadyz check failed\n"},
		"/readyz?exclude=listeners":         {200, "ok"},
		"/readyz?verbose&exclude=listeners": {200, "[+]snapshot ok\n[+]listeners excluded: ok\nreadyz check passed\n"},
		"/readyz/moon":                      {404, "no check \"moon\" at /readyz\n"},
	} {
		t.Run(path, func(t *testing.T) {
			status, body := ask(http.MethodGet, path)
			if diff := cmp.Diff(want, answer{status, body}); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestMetricsHoldTheBuildAndTheRuntime(t *testing.T) {
	ask := admin(t, ops.AdminOptions{Gatherer: ops.NewRegistry(ops.Build{Version: "v1.2.3"})})
	status, body := ask(http.MethodGet, "/metrics")
	if status != http.StatusOK {
		t.Errorf("status %d", status)
	}
	for _, want := range []string{`version="v1.2.3"`, "go_goroutines", "process_open_fds"} {
		if !strings.Contains(body, want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
}

func TestAdminPagesAreReadOnlyAndListed(t *testing.T) {
	page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.PathValue("name"))
	})
	ask := admin(t, ops.AdminOptions{Pages: map[string]http.Handler{"/pools/{name}": page}})
	if status, body := ask(http.MethodGet, "/pools/web"); status != 200 || body != "web" {
		t.Errorf("GET /pools/web: %d %q", status, body)
	}
	if status, _ := ask(http.MethodPost, "/pools/web"); status != http.StatusMethodNotAllowed {
		t.Errorf("POST /pools/web: %d, want 405", status)
	}
	if _, body := ask(http.MethodGet, "/"); body != "/livez\n/pools/{name}\n/readyz\n" {
		t.Errorf("GET /: %q", body)
	}
}

func TestPprofIsServedOnlyOnRequest(t *testing.T) {
	for _, c := range []struct {
		options ops.AdminOptions
		want    int
	}{
		{ops.AdminOptions{}, http.StatusNotFound},
		{ops.AdminOptions{Pprof: true}, http.StatusOK},
	} {
		if status, _ := admin(t, c.options)(http.MethodGet, "/debug/pprof/"); status != c.want {
			t.Errorf("with %+v: status %d, want %d", c.options, status, c.want)
		}
	}
}

func TestAnAddressInUseIsAnErrorThatNamesIt(t *testing.T) {
	a, err := ops.ListenAdmin(t.Context(), "127.0.0.1:0", ops.AdminOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	defer func() { _ = a.Run(ctx) }()
	_, err = ops.ListenAdmin(t.Context(), a.Addr().String(), ops.AdminOptions{})
	if err == nil || !strings.Contains(err.Error(), a.Addr().String()) {
		t.Errorf("ListenAdmin: %v, want an error that names %s", err, a.Addr())
	}
}

func TestConnectionsAboveTheLimitWaitForAnEarlierOneToClose(t *testing.T) {
	ask := admin(t, ops.AdminOptions{})
	// Each request has a connection of its own: 100 of them pass the limit of 64 only if closed ones count no more.
	for range 100 {
		if status, _ := ask(http.MethodGet, "/livez"); status != http.StatusOK {
			t.Fatalf("status %d", status)
		}
	}
}

func TestIdleConnectionsNeverTakeEveryPlace(t *testing.T) {
	a, err := ops.ListenAdmin(t.Context(), "127.0.0.1:0", ops.AdminOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("want the server to end without an error, got %v", err)
		}
	}()
	const more = 70 // than there are places
	for i := range more {
		client := &http.Client{Transport: &http.Transport{}, Timeout: 10 * time.Second} // far below how long one may idle
		defer client.CloseIdleConnections()
		resp, err := client.Get("http://" + a.Addr().String() + "/livez") //nolint:noctx // it has a timeout.
		if err != nil {
			t.Fatalf("with %d idle clients: %v", i, err)
		}
		_, _ = io.Copy(io.Discard, resp.Body) // so that the connection is kept, if the server wants it
		_ = resp.Body.Close()
	}
}
