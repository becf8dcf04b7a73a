package l7_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/netip"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/l7"
)

// ring is a pool whose endpoints are in zones of their own with equal shares: a key belongs to one of them, the same
// whatever the pool's algorithm, and the pool itself tells which.
type ring struct {
	pool  *pick.Pool
	names map[netip.AddrPort]string
}

// equal is a strategy that gives all groups the same share.
type equal struct{ groups int }

func (e *equal) Reset(_ time.Duration, s overflow.Layout) { e.groups = len(s.Groups) }

func (e *equal) Step(time.Duration, *overflow.Counters) overflow.Decision {
	d := overflow.Decision{Cap: 1, Groups: make([]overflow.GroupStatus, e.groups)}
	for i := range e.groups {
		d.Routes = append(d.Routes, overflow.Route{Group: i, Share: 1 / float64(e.groups)})
	}
	return d
}

// ringOf makes one of endpoints with names.
func ringOf(names map[netip.AddrPort]string) *ring {
	w := &ring{pool: pick.NewPool(pick.Options{Zone: "home", Strategy: &equal{}}), names: names}
	var targets []pick.Target
	for addr, name := range names {
		targets = append(targets, pick.Target{Addr: addr, Zone: topology.Zone(name)})
	}
	w.pool.Update(0, targets)
	return w
}

// spread runs n endpoints that answer with their names.
func spread(tb testing.TB, n int) *ring {
	tb.Helper()
	names := make(map[netip.AddrPort]string, n)
	for i := range n {
		name := fmt.Sprintf("z%02d", i)
		names[naming(tb, name)] = name
	}
	return ringOf(names)
}

// home is the name of the endpoint that a key belongs to.
func (w *ring) home(key uint64) string {
	ticket, _ := w.pool.Pick(0, pick.Request{Key: key, HasKey: true})
	defer ticket.Close(0, pick.Canceled)
	return w.names[ticket.Addr()]
}

func (w *ring) upstreams(tb testing.TB, policies ...policy.HashPolicy) *l7.Upstreams {
	tb.Helper()
	return &l7.Upstreams{Default: &l7.Upstream{Pool: w.pool, Hash: compiled(tb, policies...)}}
}

func TestAHeaderDecidesWhoAnswers(t *testing.T) {
	w := spread(t, 8)
	p := start(t, l7.Options{Upstreams: w.upstreams(t, header("x-user"))})
	met := make(map[string]bool)
	for _, h2 := range []bool{false, true} {
		c := client(t, h2)
		for user := range 40 {
			r := request(t, "GET", p.url, nil)
			name := fmt.Sprintf("user-%d", user)
			r.Header.Set("X-User", name)
			_, got := do(t, c, r)
			if want := w.home(of(name)); got != want {
				t.Errorf("%s: %s answered, want %s", name, got, want)
			}
			met[got] = true
		}
	}
	if len(met) < 6 {
		t.Errorf("40 users met %d of 8 endpoints", len(met))
	}
}

func TestAQueryParameterDecidesWhoAnswers(t *testing.T) {
	w := spread(t, 8)
	p := start(t, l7.Options{Upstreams: w.upstreams(t, query("q"))})
	for i := range 20 {
		value := fmt.Sprintf("v%d", i)
		if _, got := do(t, client(t, i%2 == 0), request(t, "GET", p.url+"/?p=1&q="+value, nil)); got != w.home(of(value)) {
			t.Errorf("%s: %s answered, want %s", value, got, w.home(of(value)))
		}
	}
}

func TestTheSourceDecidesWhoAnswers(t *testing.T) {
	w := spread(t, 8)
	p := start(t, l7.Options{Upstreams: w.upstreams(t, sourceIP())})
	for i := range 12 {
		addr := fmt.Sprintf("127.0.0.%d", i+1)
		for range 2 { // each time on a new connection
			if _, got := do(t, from(client(t, i%2 == 0), addr), request(t, "GET", p.url, nil)); got != w.home(of(addr)) {
				t.Errorf("%s: %s answered, want %s", addr, got, w.home(of(addr)))
			}
		}
	}
}

func TestASourceDecidesForTCPToo(t *testing.T) {
	names := make(map[netip.AddrPort]string)
	for i := range 8 {
		name := fmt.Sprintf("z%02d", i)
		names[serveTCP(t, func(conn *net.TCPConn) { say(conn, name) })] = name
	}
	w := ringOf(names)
	p := start(t, l7.Options{Upstreams: w.upstreams(t, header("x-user"), end(sourceIP()), state("weir.client.port")), Protocol: l7.TCP})
	for i := range 12 {
		addr := fmt.Sprintf("127.0.0.%d", i+1)
		for range 2 {
			conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(addr)}}).Dial("tcp", p.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(conn)
			shut(conn)
			if want := w.home(of(addr)); string(got) != want || err != nil {
				t.Errorf("%s: %q answered, %v; want %s", addr, got, err, want)
			}
		}
	}
}

// TestAGeneratedCookieIsKept follows a browser: it gets the cookie once, and stays where it was on other connections.
func TestAGeneratedCookieIsKept(t *testing.T) {
	w := spread(t, 8)
	p := start(t, l7.Options{Upstreams: w.upstreams(t, made("sid", time.Hour, "/"))})
	for _, h2 := range []bool{false, true} {
		for range 8 {
			jar, err := cookiejar.New(nil)
			if err != nil {
				t.Fatal(err)
			}
			c := client(t, h2)
			c.Jar = jar
			first, name := do(t, c, request(t, "GET", p.url, nil))
			set := first.Header["Set-Cookie"]
			if len(set) != 1 || !strings.HasPrefix(set[0], `sid="`) || !strings.HasSuffix(set[0], `"; Max-Age=3600; Path=/; HttpOnly`) {
				t.Fatalf("got cookies %q", set)
			}
			value := set[0][len(`sid="`):][:16]
			if want := w.home(of(value)); name != want {
				t.Errorf("cookie %s: %s answered, want %s", value, name, want)
			}
			for range 3 {
				c.CloseIdleConnections()
				again, same := do(t, c, request(t, "GET", p.url, nil))
				if same != name || len(again.Header["Set-Cookie"]) != 0 {
					t.Errorf("%s, then %s answered with cookies %q", name, same, again.Header["Set-Cookie"])
				}
			}
		}
	}
}

// TestCookiesOfTheEndpointStay: weir's cookie is added behind, as Envoy adds it, even to one of the same name.
func TestCookiesOfTheEndpointStay(t *testing.T) {
	endpoint := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Add("Set-Cookie", "other=1")
		w.Header().Add("Set-Cookie", "sid=theirs")
	})
	w := ringOf(map[netip.AddrPort]string{endpoint: "z"})
	p := start(t, l7.Options{Upstreams: w.upstreams(t, made("sid", 0, ""))})
	resp, _ := do(t, client(t, false), request(t, "GET", p.url, nil))
	got := resp.Header["Set-Cookie"]
	if len(got) != 3 || got[0] != "other=1" || got[1] != "sid=theirs" || !strings.HasPrefix(got[2], `sid="`) {
		t.Errorf("got %q", got)
	}
}

// TestAnswersOfWeirsOwnCarryTheCookie: the client that tries again has its key already.
func TestAnswersOfWeirsOwnCarryTheCookie(t *testing.T) {
	for name, endpoints := range map[string]map[netip.AddrPort]string{"no endpoint": nil, "refused": {refusing(t): "z"}} {
		p := start(t, l7.Options{Upstreams: ringOf(endpoints).upstreams(t, made("sid", 0, ""))})
		resp, _ := do(t, client(t, false), request(t, "GET", p.url, nil))
		if len(resp.Header["Set-Cookie"]) != 1 || resp.StatusCode < 502 {
			t.Errorf("%s: got %d %v", name, resp.StatusCode, resp.Header)
		}
	}
}

func TestAnUpgradeCarriesTheCookie(t *testing.T) {
	endpoint := serveTCP(t, func(conn *net.TCPConn) {
		hear(conn)
		say(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	})
	p := start(t, l7.Options{Upstreams: ringOf(map[netip.AddrPort]string{endpoint: "z"}).upstreams(t, made("sid", 0, ""))})
	got := converse(t, p.Addr(), "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	if statusLine(got) != "HTTP/1.1 101 Switching Protocols" || strings.Count(got, "\r\nSet-Cookie: sid=") != 1 {
		t.Errorf("got %q", got)
	}
}

// TestFilterStateComesFromTrustedFilters, and endpoints never see it: not in fields, not in trailers.
func TestFilterStateComesFromTrustedFilters(t *testing.T) {
	names := make(map[netip.AddrPort]string)
	for i := range 8 {
		name := fmt.Sprintf("z%02d", i)
		names[serve(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			if len(r.Header[l7.FilterStateField])+len(r.Trailer) != 0 {
				t.Errorf("the endpoint heard %v %v", r.Header, r.Trailer)
			}
			say(w, name)
		})] = name
	}
	w := ringOf(names)
	p := start(t, l7.Options{
		Upstreams:      w.upstreams(t, end(state("tenant")), sourceIP()),
		TrustedFilters: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/31")},
	})
	for _, h2 := range []bool{false, true} {
		for addr, isFilter := range map[string]bool{"127.0.0.1": false, "127.0.0.2": true, "127.0.0.3": true} {
			for i := range 4 {
				tenant := fmt.Sprintf("tenant-%d", i)
				r := request(t, "POST", p.url, struct{ io.Reader }{strings.NewReader("x")})
				r.Header.Set("x-weir-filter-state", "tenant="+tenant)
				r.Trailer = http.Header{l7.FilterStateField: {"tenant=trailer"}}
				want := w.home(of(addr))
				if isFilter {
					want = w.home(of(tenant))
				}
				if _, got := do(t, from(client(t, h2), addr), r); got != want {
					t.Errorf("%s, %s: %s answered, want %s", addr, tenant, got, want)
				}
			}
		}
	}
}

// TestAConnectionIsAKey: requests on one connection stay together, those of many do not.
func TestAConnectionIsAKey(t *testing.T) {
	p := start(t, l7.Options{Upstreams: spread(t, 8).upstreams(t, state("weir.connection.id"))})
	met := make(map[string]bool)
	for range 24 {
		c := client(t, true)
		_, first := do(t, c, request(t, "GET", p.url, nil))
		for range 3 {
			if _, got := do(t, c, request(t, "GET", p.url, nil)); got != first {
				t.Errorf("%s, then %s answered", first, got)
			}
		}
		met[first] = true
	}
	if len(met) < 3 {
		t.Errorf("24 connections met %d endpoints", len(met))
	}
}

// TestFirstConnectionsDiffer: the agents of a cluster, whose connections are numbered each by itself, do not all send their
// first one to the same endpoint.
func TestFirstConnectionsDiffer(t *testing.T) {
	w := spread(t, 8)
	met := make(map[string]bool)
	for range 12 {
		p := start(t, l7.Options{Upstreams: w.upstreams(t, state("io.grpc.channel_id"))})
		_, name := do(t, client(t, false), request(t, "GET", p.url, nil))
		met[name] = true
	}
	if len(met) == 1 {
		t.Errorf("12 agents met %v alone", met)
	}
}

func TestMetadataDecidesWhoAnswersACall(t *testing.T) {
	names := make(map[netip.AddrPort]string)
	for i := range 4 {
		name := fmt.Sprintf("z%02d", i)
		names[serveGRPC(t, func(_ any, stream grpc.ServerStream) error {
			var in wrapperspb.StringValue
			if err := stream.RecvMsg(&in); err != nil {
				return err
			}
			return stream.SendMsg(wrapperspb.String(name))
		})] = name
	}
	w := ringOf(names)
	p := start(t, l7.Options{Upstreams: w.upstreams(t, header("user"), end(header("data-bin")), made("sid", 0, ""))})
	conn := dialGRPC(t, p)
	call := func(ctx context.Context) (string, metadata.MD) {
		var out wrapperspb.StringValue
		var head metadata.MD
		if err := conn.Invoke(ctx, "/test.Words/One", wrapperspb.String("x"), &out, grpc.Header(&head)); err != nil {
			t.Fatal(err)
		}
		return out.GetValue(), head
	}
	for i := range 10 {
		user := fmt.Sprintf("user-%d", i)
		got, head := call(metadata.AppendToOutgoingContext(t.Context(), "user", user))
		if want := w.home(of(user)); got != want || len(head.Get("set-cookie")) != 0 {
			t.Errorf("%s: %s answered, want %s; cookies %v", user, got, want, head.Get("set-cookie"))
		}
	}
	// On the wire, a "-bin" value is base64 without padding.
	if got, _ := call(metadata.AppendToOutgoingContext(t.Context(), "data-bin", "\x00\x01\x02")); got != w.home(of("AAEC")) {
		t.Errorf("%s answered, want %s", got, w.home(of("AAEC")))
	}
	if _, head := call(t.Context()); len(head.Get("set-cookie")) != 1 || !strings.HasPrefix(head.Get("set-cookie")[0], `sid="`) {
		t.Errorf("a call without a key got %v", head)
	}
}

// TestARetryKeepsTheKey: who answers instead is who the key belongs to next.
func TestARetryKeepsTheKey(t *testing.T) {
	names := map[netip.AddrPort]string{refusing(t): "r0", refusing(t): "r1", refusing(t): "r2"}
	for i := range 5 {
		name := fmt.Sprintf("z%02d", i)
		names[naming(t, name)] = name
	}
	w := ringOf(names)
	p := start(t, l7.Options{Upstreams: w.upstreams(t, header("user")), Retry: l7.Retry{Attempts: 8}})
	retried := 0
	for i := range 6 { // few, so that nobody is ejected
		user := fmt.Sprintf("user-%d", i)
		want := ""
		for tried := []uint32(nil); want == "" || want[0] == 'r'; {
			ticket, verdict := w.pool.Pick(0, pick.Request{Key: of(user), HasKey: true, Avoid: tried})
			if verdict != pick.Picked {
				t.Fatalf("no endpoint for %s", user)
			}
			want, tried = names[ticket.Addr()], append(tried, ticket.ID())
			ticket.Close(0, pick.Canceled)
			retried += len(tried) - 1
		}
		r := request(t, "GET", p.url, nil)
		r.Header.Set("User", user)
		if _, got := do(t, client(t, false), r); got != want {
			t.Errorf("%s: %s answered, want %s", user, got, want)
		}
	}
	if retried == 0 {
		t.Error("no user belongs to an endpoint that refuses: choose other names")
	}
}

// TestWithoutAKeyNothingIsHashed: requests that bring no key, and upstreams without rules, are spread as ever.
func TestWithoutAKeyNothingIsHashed(t *testing.T) {
	w := spread(t, 4)
	for _, policies := range [][]policy.HashPolicy{nil, {header("absent")}} {
		p := start(t, l7.Options{Upstreams: w.upstreams(t, policies...)})
		met := make(map[string]int)
		c := client(t, false)
		for range 100 {
			_, name := do(t, c, request(t, "GET", p.url, nil))
			met[name]++
		}
		if len(met) != 4 {
			t.Errorf("%v: 100 requests went to %v", policies, met)
		}
	}
}
