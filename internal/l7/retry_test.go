package l7_test

import (
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/l7"
)

// failing is an endpoint that answers every request with a status.
func failing(t *testing.T, status int) netip.AddrPort {
	t.Helper()
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(status)
	})
}

// resetting is an endpoint that reads a request, with a body of up to n bytes, and hangs up.
func resetting(t *testing.T, n int) netip.AddrPort {
	t.Helper()
	return serveTCP(t, func(conn *net.TCPConn) {
		r, _ := hear(conn)
		_, _ = io.ReadFull(r, make([]byte, n))
		_ = conn.SetLinger(0)
	})
}

func TestRetries(t *testing.T) {
	echo := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		say(w, string(body))
	}
	large := strings.Repeat("x", 100_000)
	for _, c := range []struct {
		name         string
		retry        l7.Retry
		method, body string
		bad          netip.AddrPort
		want         int // status
		attempts     int
	}{
		{"a refused connection, any method", l7.Retry{}, "POST", large, refusing(t), 200, 2},
		{"a reset, idempotent", l7.Retry{}, "GET", "", resetting(t, 0), 200, 2},
		{"a reset, not idempotent", l7.Retry{}, "POST", "x", resetting(t, 1), 502, 1},
		{"a reset, not idempotent, without a body", l7.Retry{}, "POST", "", resetting(t, 0), 502, 1},
		{"a reset, idempotent with a short body", l7.Retry{}, "PUT", "short", resetting(t, 5), 200, 2},
		{"a reset, idempotent with a long body", l7.Retry{}, "PUT", large, resetting(t, 100_000), 502, 1},
		{"a 500 by default", l7.Retry{}, "GET", "", failing(t, 500), 500, 1},
		{"a 500 on 5xx", l7.Retry{On: l7.On5xx}, "GET", "", failing(t, 500), 200, 2},
		{"a 500 on 5xx with a short body", l7.Retry{On: l7.On5xx}, "PUT", "short", failing(t, 500), 200, 2},
		{"a 500 on 5xx, not idempotent", l7.Retry{On: l7.On5xx}, "POST", "x", failing(t, 500), 500, 1},
		{"a 500 on 5xx, not idempotent, without a body", l7.Retry{On: l7.On5xx}, "POST", "", failing(t, 500), 500, 1},
		{"a 500 on gateway errors", l7.Retry{On: l7.OnGatewayError}, "GET", "", failing(t, 500), 500, 1},
		{"a 503 on gateway errors", l7.Retry{On: l7.OnGatewayError}, "GET", "", failing(t, 503), 200, 2},
		{"a 404 on 5xx", l7.Retry{On: l7.On5xx}, "GET", "", failing(t, 404), 404, 1},
		{"no second attempt allowed", l7.Retry{Attempts: 1}, "GET", "", refusing(t), 502, 1},
		{"no budget", l7.Retry{BudgetRatio: -1, MinPerSecond: -1}, "GET", "", refusing(t), 502, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			good := serve(t, echo)
			p := start(t, l7.Options{Retry: c.retry}, good, c.bad) // the pool under test begins with the second
			resp, text := do(t, client(t, false), request(t, c.method, p.url, strings.NewReader(c.body)))
			if resp.StatusCode != c.want || c.want == 200 && text != c.body {
				t.Errorf("got %d with %d bytes, want %d", resp.StatusCode, len(text), c.want)
			}
			if got := p.saw.next(t); got.Attempts != c.attempts || got.Code != c.want {
				t.Errorf("reported %+v, want %d attempts", got, c.attempts)
			}
		})
	}
}

func TestEachEndpointIsTriedOnce(t *testing.T) {
	var asked [3]atomic.Int64
	var endpoints []netip.AddrPort
	for i := range asked {
		endpoints = append(endpoints, serve(t, func(w http.ResponseWriter, _ *http.Request) {
			asked[i].Add(1)
			w.WriteHeader(503)
			say(w, "busy")
		}))
	}
	p := start(t, l7.Options{Retry: l7.Retry{On: l7.On5xx, Attempts: 3}}, endpoints...)
	resp, text := do(t, client(t, false), request(t, "GET", p.url, nil))
	if resp.StatusCode != 503 || text != "busy" {
		t.Errorf("got %d %q, want the last endpoint's own answer", resp.StatusCode, text)
	}
	got := []int64{asked[0].Load(), asked[1].Load(), asked[2].Load()}
	if d := cmp.Diff([]int64{1, 1, 1}, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestAConnectionThatDiedWhileKeptIsReplaced(t *testing.T) {
	// The endpoint closes after each answer without saying so: a request may meet the closed connection.
	p := start(t, l7.Options{}, serveTCP(t, func(conn *net.TCPConn) {
		hear(conn)
		say(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	}))
	c := client(t, false)
	for range 20 {
		if resp, _ := do(t, c, request(t, "GET", p.url, nil)); resp.StatusCode != 200 {
			t.Fatalf("got %d", resp.StatusCode)
		}
	}
}

func TestRetryOccasionsParse(t *testing.T) {
	for list, want := range map[string]l7.RetryOn{
		"connect-failure":       l7.OnConnectFailure,
		"reset,connect-failure": l7.OnReset | l7.OnConnectFailure,
		"reset, 5xx":            l7.OnConnectFailure | l7.OnReset | l7.On5xx,
		"gateway-error":         l7.OnConnectFailure | l7.OnReset | l7.OnGatewayError,
	} {
		if got, err := l7.ParseRetryOn(list); got != want || err != nil {
			t.Errorf("%q: got %v, %v; want %v", list, got, err, want)
		}
	}
	for _, list := range []string{"", "5XX", "reset,,5xx", "always"} {
		if _, err := l7.ParseRetryOn(list); err == nil {
			t.Errorf("%q was accepted", list)
		}
	}
}
