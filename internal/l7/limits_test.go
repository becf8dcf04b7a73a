package l7_test

import (
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/l7"
)

const short = 30 * time.Millisecond

func TestTimeoutsHaveTheirStatus(t *testing.T) {
	silent := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	for _, c := range []struct {
		name, raw string
		timeouts  l7.Timeouts
		want      string
		code      reason.Code
		outcome   pick.Outcome
	}{
		{
			"a head that drips", "GET / HTTP/1.1\r\nHost: h\r\nA: ",
			l7.Timeouts{Head: short},
			"HTTP/1.1 408 Request Timeout", reason.HeadTimeout, pick.Canceled,
		},
		{
			"an HTTP/2 preface that drips", "PRI * HTTP/2.0\r\n\r\nSM",
			l7.Timeouts{Head: short},
			"HTTP/1.1 408 Request Timeout", reason.HeadTimeout, pick.Canceled,
		},
		{
			"a body that stalls", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\na",
			l7.Timeouts{Body: short},
			"HTTP/1.1 408 Request Timeout", reason.BodyTimeout, pick.Canceled,
		},
		{
			"an endpoint that does not answer", "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
			l7.Timeouts{Response: short},
			"HTTP/1.1 504 Gateway Timeout", reason.ResponseTimeout, pick.Failure,
		},
		{
			"an endpoint that heard all and does not answer", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nConnection: close\r\n\r\na",
			l7.Timeouts{Response: short},
			"HTTP/1.1 504 Gateway Timeout", reason.ResponseTimeout, pick.Failure,
		},
		{
			"a request that takes too long", "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
			l7.Timeouts{Request: short},
			"HTTP/1.1 504 Gateway Timeout", reason.RequestTimeout, pick.Failure,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := start(t, l7.Options{Protocol: l7.HTTP, Timeouts: c.timeouts}, silent)
			got := converse(t, p.Addr(), c.raw)
			if statusLine(got) != c.want || !strings.Contains(got, "Connection: close\r\n") {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if saw := p.saw.next(t); saw.Reason != c.code || saw.Outcome != c.outcome {
				t.Errorf("reported %+v, want %s", saw, c.code)
			}
		})
	}
}

func TestALongUploadDoesNotUseUpTheTimeToAnswer(t *testing.T) {
	p := start(t, l7.Options{Timeouts: l7.Timeouts{Response: 4 * short}}, serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	}))
	body, pipe := io.Pipe()
	go func() {
		for range 8 {
			say(pipe, "x")
			time.Sleep(short)
		}
		shut(pipe)
	}()
	if resp, text := do(t, client(t, false), request(t, "POST", p.url, body)); resp.StatusCode != 200 || text != "xxxxxxxx" {
		t.Errorf("got %d %q", resp.StatusCode, text)
	}
}

func TestATimeThatEndsAfterTheHeadCutsTheResponse(t *testing.T) {
	p := start(t, l7.Options{Timeouts: l7.Timeouts{Request: short}}, serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	resp, err := client(t, false).Do(request(t, "GET", p.url, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if text, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("got %q and an orderly end", text)
	}
	if saw := p.saw.next(t); saw.Outcome != pick.LocalError || saw.Code != 200 {
		t.Errorf("reported %+v", saw)
	}
}

func TestAConnectionWithoutRequestsIsClosed(t *testing.T) {
	p := start(t, l7.Options{Timeouts: l7.Timeouts{Idle: short}}, failing(t, 200))
	conn := dial(t, p.Addr())
	say(conn, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
	all, err := io.ReadAll(conn)
	if err != nil || statusLine(string(all)) != "HTTP/1.1 200 OK" {
		t.Errorf("got %q, %v", all, err)
	}
}

func TestAConnectionThatNeverAsksIsClosedWithoutAWord(t *testing.T) {
	p := start(t, l7.Options{Protocol: l7.HTTP, Timeouts: l7.Timeouts{Head: short}})
	if all, err := io.ReadAll(dial(t, p.Addr())); err != nil || len(all) > 0 {
		t.Errorf("got %q, %v", all, err)
	}
}

func TestMoreConnectionsThanAllowedAreTurnedAway(t *testing.T) {
	for _, protocol := range []l7.Protocol{l7.Detect, l7.HTTP} {
		p := start(t, l7.Options{Protocol: protocol, Limits: l7.Limits{Connections: 1}}, failing(t, 200))
		first := dial(t, p.Addr())
		say(first, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
		hear(first)
		p.saw.next(t)
		got := converse(t, p.Addr(), "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
		if statusLine(got) != "HTTP/1.1 503 Service Unavailable" || !strings.Contains(got, "Retry-After: 1\r\n") {
			t.Errorf("%v: got %q", protocol, got)
		}
		if saw := p.saw.next(t); saw.Reason != reason.ConnectionLimit || saw.Code != 503 {
			t.Errorf("reported %+v", saw)
		}
	}
	t.Run("raw TCP is reset", func(t *testing.T) {
		p := start(t, l7.Options{Protocol: l7.TCP, Limits: l7.Limits{Connections: 1}}, answering(t))
		first := dial(t, p.Addr())
		conn, err := net.Dial("tcp", p.Addr().String())
		if err == nil {
			_, err = io.ReadAll(conn)
			shut(conn)
		}
		if err == nil {
			t.Error("got an orderly end")
		}
		_ = first.CloseWrite()
		if got, err := io.ReadAll(first); err != nil || string(got) != "heard " {
			t.Errorf("the first got %q, %v", got, err)
		}
	})
}

func TestMorePendingRequestsThanAllowedAreTurnedAway(t *testing.T) {
	arrived, answer := make(chan struct{}), make(chan struct{})
	p := start(t, l7.Options{Limits: l7.Limits{Pending: 1}}, serve(t, func(w http.ResponseWriter, _ *http.Request) {
		arrived <- struct{}{}
		<-answer
		w.(http.Flusher).Flush() // from here on it is pending no more
		arrived <- struct{}{}
		<-answer
	}))
	go func() {
		resp, err := http.Get(p.url) //nolint:noctx // ends with the test's endpoint
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
		http.DefaultClient.CloseIdleConnections()
	}()
	<-arrived
	resp, text := do(t, client(t, false), request(t, "GET", p.url, nil))
	if resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "1" || resp.Header.Get("Weir-Reason") != "PendingLimit" {
		t.Errorf("got %d %v %q", resp.StatusCode, resp.Header, text)
	}
	answer <- struct{}{}
	<-arrived
	answer <- struct{}{}
	if saw := p.saw.next(t); saw.Reason != reason.PendingLimit {
		t.Errorf("reported %+v", saw)
	}
	if saw := p.saw.next(t); saw.Code != 200 {
		t.Errorf("reported %+v", saw)
	}
}

func TestWithoutAnEndpoint(t *testing.T) {
	p := start(t, l7.Options{})
	resp, text := do(t, client(t, false), request(t, "GET", p.url, nil))
	if resp.StatusCode != 503 || text != "weir: the service has no ready endpoint\n" || resp.Header.Get("Weir-Reason") != "NoEndpoints" {
		t.Errorf("got %d %v %q", resp.StatusCode, resp.Header, text)
	}
}

// shedding is a strategy that wants every request rejected.
type shedding struct{}

func (shedding) Reset(time.Duration, overflow.Layout) {}

func (shedding) Step(time.Duration, *overflow.Counters) overflow.Decision {
	return overflow.Decision{Routes: []overflow.Route{{}}, Shed: 1, Cap: 1, Groups: make([]overflow.GroupStatus, 1)}
}

func TestAServiceThatShedsSaysWhenToTryAgain(t *testing.T) {
	pool := pick.NewPool(pick.Options{Zone: "a", Strategy: shedding{}})
	update(pool, failing(t, 200))
	pool.Pick(0, pick.Request{}) // wakes it
	pool.Tick(100 * time.Millisecond)
	p := start(t, l7.Options{Upstreams: only(pool, nil)})
	resp, _ := do(t, client(t, false), request(t, "GET", p.url, nil))
	if resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "1" || resp.Header.Get("Weir-Reason") != "RequestShed" {
		t.Errorf("got %d %v", resp.StatusCode, resp.Header)
	}
	err := dialGRPC(t, p).Invoke(t.Context(), "/test.Words/One", wrapperspb.String("x"), new(wrapperspb.StringValue))
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("got %v", err)
	}
}

func TestARefusalDoesNotWaitForTheBody(t *testing.T) {
	p := start(t, l7.Options{})
	got := converse(t, p.Addr(), "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nabc")
	if statusLine(got) != "HTTP/1.1 503 Service Unavailable" || !strings.Contains(got, "Connection: close\r\n") {
		t.Errorf("got %q", got)
	}
}

func TestAPortThatCannotBeBoundSaysWhatToDo(t *testing.T) {
	taken := answering(t)
	for _, c := range []struct {
		addr netip.AddrPort
		want string
	}{
		{taken, "listen on " + taken.String() + ": listen tcp " + taken.String() + ": bind: address already in use: another process has the port"},
		{netip.MustParseAddrPort("192.0.2.1:80"), "listen on 192.0.2.1:80: listen tcp 192.0.2.1:80: bind: cannot assign requested address: no interface of this machine has the address"},
	} {
		s, err := l7.Listen(c.addr, l7.Options{Upstreams: only(poolOf(), nil)})
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("got %v, %v; want %q", s, err, c.want)
		}
	}
	if _, err := l7.Listen(taken, l7.Options{}); err == nil {
		t.Error("a server without a pool was made")
	}
}
