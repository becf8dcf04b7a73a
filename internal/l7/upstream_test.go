package l7_test

import (
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/l7"
)

// naming is an endpoint that answers with a name.
func naming(tb testing.TB, name string) netip.AddrPort {
	tb.Helper()
	return serve(tb, func(w http.ResponseWriter, _ *http.Request) { say(w, name) })
}

// from makes c connect from an address of its own.
func from(c *http.Client, addr string) *http.Client {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(addr)}}
	c.Transport.(*http.Transport).DialContext = dialer.DialContext
	return c
}

// fetch gives a page's text, or why there is none; for goroutines of tests.
func fetch(c *http.Client, url string) string {
	resp, err := c.Get(url) //nolint:noctx // the client has a limit
	if err != nil {
		return err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func TestEachClientHasItsUpstream(t *testing.T) {
	usual, special := newRecorder(), newRecorder()
	upstreams := only(poolOf(naming(t, "usual")), usual)
	upstreams.ByClient = map[netip.Addr]*l7.Upstream{
		netip.MustParseAddr("127.0.0.2"): {Pool: poolOf(naming(t, "special")), Observer: special},
	}
	p := start(t, l7.Options{Upstreams: upstreams})
	for _, h2 := range []bool{false, true} {
		for addr, want := range map[string]string{"127.0.0.1": "usual", "127.0.0.2": "special", "127.0.0.3": "usual"} {
			if _, got := do(t, from(client(t, h2), addr), request(t, "GET", p.url, nil)); got != want {
				t.Errorf("%s: got %s, want %s", addr, got, want)
			}
		}
	}
	for range 4 {
		usual.next(t)
	}
	for range 2 {
		special.next(t)
	}
}

func TestTCPClientsHaveTheirUpstreams(t *testing.T) {
	named := func(name string) netip.AddrPort {
		return serveTCP(t, func(conn *net.TCPConn) { say(conn, name) })
	}
	upstreams := only(poolOf(named("usual")), nil)
	upstreams.ByClient = map[netip.Addr]*l7.Upstream{netip.MustParseAddr("127.0.0.2"): {Pool: poolOf(named("special"))}}
	p := start(t, l7.Options{Upstreams: upstreams, Protocol: l7.TCP})
	for addr, want := range map[string]string{"127.0.0.1": "usual", "127.0.0.2": "special"} {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(addr)}}
		conn, err := dialer.Dial("tcp", p.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(conn)
		shut(conn)
		if string(got) != want || err != nil {
			t.Errorf("%s: got %q, %v; want %s", addr, got, err, want)
		}
	}
}

// TestAKeptConnectionFollows: the next request of a connection goes where the new upstreams lead, the one under way stays.
func TestAKeptConnectionFollows(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		arrived, leave := make(chan struct{}), make(chan struct{})
		old := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/slow" {
				close(arrived)
				<-leave
			}
			say(w, "old")
		})
		before, after := newRecorder(), newRecorder()
		p := start(t, l7.Options{Upstreams: only(poolOf(old), before)})
		c := client(t, h2)
		do(t, c, request(t, "GET", p.url, nil))
		before.next(t)
		slow := make(chan string, 1)
		go func() { slow <- fetch(c, p.url+"/slow") }()
		<-arrived
		p.Follow(only(poolOf(naming(t, "new")), after))
		if _, got := do(t, c, request(t, "GET", p.url, nil)); got != "new" {
			t.Errorf("after the change: got %q", got)
		}
		after.next(t)
		close(leave)
		if got := <-slow; got != "old" {
			t.Errorf("under way: got %q", got)
		}
		before.next(t) // and is reported where it began
	}
}

// TestARetryStaysInItsUpstream: an endpoint that fails after the change is followed by another one of the old upstream.
func TestARetryStaysInItsUpstream(t *testing.T) {
	var p *proxy
	saw := newRecorder()
	failing := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		p.Follow(only(poolOf(naming(t, "new")), nil))
		w.WriteHeader(503)
	})
	p = start(t, l7.Options{Upstreams: only(poolOf(naming(t, "old"), failing), saw), Retry: l7.Retry{On: l7.On5xx}})
	if _, got := do(t, client(t, false), request(t, "GET", p.url, nil)); got != "old" {
		t.Errorf("got %q", got)
	}
	if got := saw.next(t); got.Attempts != 2 {
		t.Errorf("reported %+v", got)
	}
}

// TestConnectionsAreCountedWhereTheyBegan: whoever heard of a connection's beginning hears of its end.
func TestConnectionsAreCountedWhereTheyBegan(t *testing.T) {
	before, after := newRecorder(), newRecorder()
	pool := poolOf(naming(t, "x"))
	p := start(t, l7.Options{Upstreams: only(pool, before)})
	conn := dial(t, p.Addr())
	say(conn, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
	hear(conn)
	p.Follow(only(pool, after))
	if got := before.connections(); got != 1 {
		t.Errorf("%d open, want 1", got)
	}
	shut(conn)
	waitFor(t, func() bool { return before.connections() == 0 })
	if got := after.connections(); got != 0 {
		t.Errorf("%d open on a upstream without connections", got)
	}
}

func (r *recorder) connections() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.open
}

// waitFor waits until something is so.
func waitFor(t *testing.T, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(long); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it never came to that")
		}
	}
}

func TestWhoIsTurnedAwayIsReportedOnItsUpstream(t *testing.T) {
	usual, special := newRecorder(), newRecorder()
	upstreams := only(poolOf(naming(t, "x")), usual)
	upstreams.ByClient = map[netip.Addr]*l7.Upstream{netip.MustParseAddr("127.0.0.2"): {Pool: poolOf(), Observer: special}}
	p := start(t, l7.Options{Upstreams: upstreams, Limits: l7.Limits{Connections: 1}})
	conn := dial(t, p.Addr())
	say(conn, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
	hear(conn)
	usual.next(t)
	resp, _ := do(t, from(client(t, false), "127.0.0.2"), request(t, "GET", p.url, nil))
	if got := special.next(t); resp.StatusCode != 503 || got.Reason != "ConnectionLimit" {
		t.Errorf("got %d, reported %+v", resp.StatusCode, got)
	}
}

func TestUpstreamsThatLeadNowhereAreRefused(t *testing.T) {
	anyone := netip.MustParseAddrPort("127.0.0.1:0")
	for _, c := range []struct {
		upstreams *l7.Upstreams
		want      string
	}{
		{nil, "listen: no pool of endpoints given"},
		{&l7.Upstreams{}, "listen: no pool of endpoints given"},
		{&l7.Upstreams{Default: &l7.Upstream{}}, "listen: no pool of endpoints given"},
		{
			&l7.Upstreams{Default: &l7.Upstream{Pool: poolOf()}, ByClient: map[netip.Addr]*l7.Upstream{netip.MustParseAddr("10.0.0.1"): nil}},
			"listen: no pool of endpoints given for client 10.0.0.1",
		},
	} {
		if _, err := l7.Listen(anyone, l7.Options{Upstreams: c.upstreams}); err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
	p := start(t, l7.Options{})
	defer func() {
		if recover() == nil {
			t.Error("upstreams without a pool were followed")
		}
	}()
	p.Follow(&l7.Upstreams{})
}

// TestFollowingUnderLoad swaps upstreams as fast as it can while clients ask on kept connections: every request is answered by
// an endpoint of upstreams that held while it was under way, and every ticket is closed.
func TestFollowingUnderLoad(t *testing.T) {
	rules := compiled(t, header("a"), sourceIP())
	pools := []*pick.Pool{poolOf(naming(t, "0")), poolOf(naming(t, "1"))}
	upstreams := func(i int) *l7.Upstreams {
		upstream := &l7.Upstream{Pool: pools[i%2], Hash: []l7.HashRules{{}, rules}[i%2]}
		return &l7.Upstreams{Default: upstream, ByClient: map[netip.Addr]*l7.Upstream{netip.MustParseAddr("127.0.0.2"): upstream}}
	}
	p := start(t, l7.Options{Upstreams: upstreams(0)})
	var done atomic.Bool
	var swapping, asking sync.WaitGroup
	swapping.Go(func() {
		for i := 1; !done.Load(); i++ {
			p.Follow(upstreams(i))
			time.Sleep(50 * time.Microsecond)
		}
	})
	const clients, each = 6, 200
	var saw [2]atomic.Int64
	for i := range clients {
		c := from(client(t, i%2 == 0), []string{"127.0.0.1", "127.0.0.2"}[i%2])
		asking.Go(func() {
			for range each {
				text := fetch(c, p.url)
				if text != "0" && text != "1" {
					t.Errorf("got %q", text)
					return
				}
				saw[text[0]-'0'].Add(1)
			}
		})
	}
	asking.Wait()
	done.Store(true)
	swapping.Wait()
	if saw[0].Load() == 0 || saw[1].Load() == 0 {
		t.Errorf("%d requests went to one pool, %d to the other", saw[0].Load(), saw[1].Load())
	}
	for _, pool := range pools {
		waitFor(t, func() bool { return pool.Status().Endpoints[0].InFlight == 0 })
	}
}

// TestPoliciesOfALaneAreItsOwn: two upstreams may hash by different things.
func TestPoliciesOfALaneAreItsOwn(t *testing.T) {
	w := spread(t, 8)
	upstreams := w.upstreams(t, header("a"))
	upstreams.ByClient = map[netip.Addr]*l7.Upstream{
		netip.MustParseAddr("127.0.0.2"): w.upstreams(t, header("b")).Default,
	}
	p := start(t, l7.Options{Upstreams: upstreams})
	for addr, want := range map[string]string{"127.0.0.1": "x", "127.0.0.2": "y"} {
		r := request(t, "GET", p.url, nil)
		r.Header.Set("A", "x")
		r.Header.Set("B", "y")
		if _, got := do(t, from(client(t, false), addr), r); got != w.home(of(want)) {
			t.Errorf("%s: %s answered, want the home of %s: %s", addr, got, want, w.home(of(want)))
		}
	}
}

func TestClientsAreKnownByPlainAddresses(t *testing.T) {
	for want, a := range map[string]net.Addr{
		"10.0.0.1:80":         &net.TCPAddr{IP: net.ParseIP("::ffff:10.0.0.1"), Port: 80},
		"[fe80::1]:80":        &net.TCPAddr{IP: net.ParseIP("fe80::1"), Port: 80, Zone: "eth0"},
		"[2001:db8::1]:65535": &net.TCPAddr{IP: net.ParseIP("2001:db8::1"), Port: 65535},
		"invalid AddrPort":    &net.UnixAddr{Name: "x", Net: "unix"},
	} {
		if got := l7.AddrPortOf(a); got.String() != want {
			t.Errorf("%v: got %v, want %s", a, got, want)
		}
	}
}
