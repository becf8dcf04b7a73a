package e2e_test

import (
	"io"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weir-lb/weir/internal/patience"
)

// curl runs curl and gives what it printed.
func curl(t *testing.T, args ...string) string {
	t.Helper()
	args = append([]string{"--silent", "--show-error", "--max-time", "30", "--fail-early"}, args...)
	out, err := exec.CommandContext(t.Context(), "curl", args...).CombinedOutput()
	if err != nil {
		t.Errorf("curl %.200q: %v, %s", args, err, out)
	}
	return string(out)
}

func TestEachNodeKeepsItsTrafficInItsZone(t *testing.T) {
	c := newCluster(t, 1)
	for _, zone := range []string{"a", "b", "c"} {
		n := c.start(t, zone)
		url := n.url("/?[1-50]")
		if got, want := curl(t, url), strings.Repeat("zone-"+zone, 50); got != want {
			t.Errorf("node-%s: %s", zone, got)
		}
	}
}

func TestCurlGetsWhatAnEndpointSays(t *testing.T) {
	n := newCluster(t, 2).start(t, "a")
	body := strings.Repeat("x", 100_000)
	for name, c := range map[string]struct {
		args []string
		want string // has to be in what curl prints
	}{
		"HTTP/1.1":             {[]string{n.url("/count")}, "HTTP/1.1 0 <nil>"},
		"HTTP/1.0":             {[]string{"--http1.0", n.url("/")}, "zone-a"},
		"HTTP/2":               {[]string{"--http2-prior-knowledge", n.url("/count")}, "HTTP/2.0 0 <nil>"},
		"an offer of HTTP/2":   {[]string{"--http2", n.url("/count")}, "HTTP/1.1 0 <nil>"},
		"an upload":            {[]string{"-d", body, n.url("/count")}, "HTTP/1.1 100000 <nil>"},
		"an upload in chunks":  {[]string{"-H", "Transfer-Encoding: chunked", "-d", body, n.url("/count")}, " 100000 <nil>"},
		"an upload over 2":     {[]string{"--http2-prior-knowledge", "-d", body, n.url("/count")}, "HTTP/2.0 100000 <nil>"},
		"expecting 100":        {[]string{"-i", "-H", "Expect: 100-continue", "-d", body, n.url("/count")}, "HTTP/1.1 100 Continue\r\n"},
		"HEAD":                 {[]string{"-I", n.url("/")}, "Content-Length: 6\r\n"},
		"a trailer":            {[]string{"--raw", n.url("/trailer")}, "\r\n0\r\nZone: zone-a\r\n"},
		"a refused upgrade":    {[]string{"-o", "/dev/null", "-w", "%{http_code}", n.url("/socket")}, "426"},
		"a head that is large": {[]string{"-H", "X: " + strings.Repeat("x", 50_000), n.url("/")}, "zone-a"},
		"one that is too large": {
			[]string{"-i", "-H", "X: " + strings.Repeat("x", 66_000), n.url("/")}, "Weir-Reason: HeadTooLarge\r\n",
		},
		"what the endpoint is told": {
			[]string{
				"-H", "Host: shop.example", "-H", "X-Forwarded-For: 192.0.2.7", "-H", "X-Forwarded-Proto: https",
				"-H", "Connection: Secret", "-H", "Secret: hop", n.url("/told"),
			}, "host=shop.example for=192.0.2.7, 127.0.0.1 proto=https secret=",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := curl(t, c.args...); !strings.Contains(got, c.want) {
				t.Errorf("%q, want %q in it", got, c.want)
			}
		})
	}
}

func TestGRPCCallsAndStreamsPass(t *testing.T) {
	c := newCluster(t, 3)
	n := c.start(t, "a")
	conn, err := grpc.NewClient("passthrough:///"+n.at("grpc"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	answer, err := healthv1.NewHealthClient(conn).Check(t.Context(), &healthv1.HealthCheckRequest{})
	if err != nil || answer.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		t.Errorf("Check: %v, %v", answer, err)
	}
	open := func() func(string) string {
		s, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/shop.Talk/Talk")
		if err != nil {
			t.Fatal(err)
		}
		return func(word string) string {
			var said wrapperspb.StringValue
			if err := s.SendMsg(wrapperspb.String(word)); err != nil {
				return err.Error()
			}
			if err := s.RecvMsg(&said); err != nil {
				return err.Error()
			}
			return said.Value
		}
	}
	say := open()
	if got := say("one"); got != "zone-a one" {
		t.Errorf("the stream says %q", got)
	}
	c.writeService(t, c.endpoints[1:]...) // without zone a
	isElsewhere := func() bool { return !strings.HasPrefix(open()("new"), "zone-a") }
	patience.Within(t, followed, "a new stream goes elsewhere", isElsewhere)
	patience.Stays(t, 500*time.Millisecond, "a new stream goes elsewhere", isElsewhere)
	patience.Stays(t, time.Second, "the stream that was there goes on", func() bool { return say("two") == "zone-a two" })
}

func TestConnectionsOutliveAChangeOfEndpoints(t *testing.T) {
	c := newCluster(t, 4)
	n := c.start(t, "a")
	//nolint:bodyclose // the WebSocket owns the connection; a refusal's body is read and closed.
	socket, _, err := websocket.Dial(t.Context(), "ws://"+n.at("http")+"/socket", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = socket.CloseNow() }()
	talk := func(text string) string {
		if err := socket.Write(t.Context(), websocket.MessageText, []byte(text)); err != nil {
			return err.Error()
		}
		_, got, err := socket.Read(t.Context())
		if err != nil {
			return err.Error()
		}
		return string(got)
	}
	conn := dial(t, n.at("echo"))
	send(t, conn, "one")
	if got := receive(t, conn, 3); got != "one" {
		t.Errorf("the connection says %q", got)
	}
	if got := talk("one"); got != "zone-a one" {
		t.Errorf("the WebSocket says %q", got)
	}

	c.writeService(t, c.endpoints[1:]...) // without zone a
	isElsewhere := func() bool { return curl(t, n.url("/")) != "zone-a" }
	patience.Within(t, followed, "zone a answers no new connection", isElsewhere)
	patience.Stays(t, 500*time.Millisecond, "zone a answers no new connection", isElsewhere)
	if got := talk("two"); got != "zone-a two" {
		t.Errorf("after the change the WebSocket says %q", got)
	}
	send(t, conn, "two")
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(conn); err != nil || string(got) != "two zone-a" {
		t.Errorf("after half of it is closed the connection says %q, %v", got, err)
	}
	greeting, err := io.ReadAll(dial(t, n.at("greet")))
	if err != nil || !strings.HasSuffix(string(greeting), "ready\r\n") {
		t.Errorf("a server that speaks first says %q, %v", greeting, err)
	}
}

func dial(t *testing.T, addr string) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", addr) //nolint:noctx // on loopback, answers at once.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(limit)); err != nil {
		t.Fatal(err)
	}
	return c.(*net.TCPConn)
}

func send(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
}

func receive(t *testing.T, c net.Conn, n int) string {
	t.Helper()
	b := make([]byte, n)
	if _, err := io.ReadFull(c, b); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// load is what wrk said of a run.
type load struct{ requests, failed int }

// wrk asks n again and again over eight connections while f runs, and for as long as it has to.
func wrk(t *testing.T, n *node, f func()) load {
	t.Helper()
	c := exec.CommandContext(t.Context(), "wrk", "-t1", "-c8", "-d4s", n.url("/"))
	out := &patience.Log{}
	c.Stdout, c.Stderr = out, out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	f()
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	var l load
	for line := range strings.Lines(out.String()) {
		fields := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == ',' || r == '\n' })
		switch {
		case strings.Contains(line, " requests in "):
			l.requests, _ = strconv.Atoi(fields[0])
		case strings.Contains(line, "Socket errors") || strings.Contains(line, "Non-2xx"):
			t.Logf("wrk: %s", line)
			for _, field := range fields {
				count, _ := strconv.Atoi(field)
				l.failed += count
			}
		}
	}
	if l.requests == 0 {
		t.Errorf("wrk made no request:\n%s", out)
	}
	return l
}

func TestNoRequestIsLostWhileManifestsChange(t *testing.T) {
	c := newCluster(t, 5)
	n := c.start(t, "a")
	answers := func(zone string) func() bool { return func() bool { return curl(t, n.url("/")) == zone } }
	l := wrk(t, n, func() {
		c.writeService(t, c.endpoints[1]) // b alone
		patience.Within(t, followed, "zone b answers", answers("zone-b"))
		c.write(t, "web.yaml", "kind: Service\n")
		patience.Until(t, "the broken file is logged", func() bool { return strings.Contains(n.log.String(), "web.yaml:1") })
		patience.Stays(t, time.Second, "zone b answers while the file is broken", answers("zone-b"))
		c.writeService(t, c.endpoints...)
		patience.Within(t, followed, "zone a answers again", answers("zone-a"))
	})
	if l.failed > 0 {
		t.Errorf("%d of %d requests failed", l.failed, l.requests)
	}
}

func TestAnEndpointThatDiesCostsAtMostWhatWasOnItsWay(t *testing.T) {
	c := newCluster(t, 6)
	n := c.start(t, "a")
	l := wrk(t, n, func() {
		patience.Until(t, "zone a answers", func() bool { return curl(t, n.url("/")) == "zone-a" })
		_ = c.endpoints[0].web.Close()
		patience.Until(t, "the log tells that the zone is lost", func() bool {
			return strings.Contains(n.log.String(), "pool changed its state")
		})
	})
	if l.failed > 8 { // one for each connection: its answer was being written
		t.Errorf("%d of %d requests failed", l.failed, l.requests)
	}
	if lines := strings.Count(n.log.String(), "\n"); lines > 100 {
		t.Errorf("the log has %d lines after %d requests:\n%.3000s", lines, l.requests, n.log)
	}
}

func TestANodeThatIsToldToEndFinishesItsRequests(t *testing.T) {
	c := newCluster(t, 7)
	n := c.start(t, "b")
	answer := make(chan string)
	go func() { answer <- curl(t, n.url("/held")) }()
	e := c.endpoints[1]
	patience.Until(t, "the request waits", func() bool { return e.held.Load() == 1 })
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		n.stop(t)
	}()
	patience.Until(t, "the node drains", func() bool { return strings.Contains(n.log.String(), "draining") })
	close(e.free)
	if got := <-answer; got != "zone-b" {
		t.Errorf("the request in flight got %q", got)
	}
	<-ended
	if !strings.Contains(n.log.String(), `"msg":"drained"`) {
		t.Errorf("the log does not tell the end:\n%s", n.log)
	}
}
