package l7_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/l7"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// long is a wait that only a failure reaches.
const long = 10 * time.Second

// recorder is an Observer that remembers.
type recorder struct {
	mu      sync.Mutex
	results []l7.Result
	open    int
	more    chan struct{}
}

func newRecorder() *recorder { return &recorder{more: make(chan struct{}, 1_000)} }

func (r *recorder) Request(result l7.Result) {
	r.mu.Lock()
	r.results = append(r.results, result)
	r.mu.Unlock()
	r.more <- struct{}{}
}

func (r *recorder) Connections(delta int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open += delta
}

// next waits for one more result.
func (r *recorder) next(t *testing.T) l7.Result {
	t.Helper()
	select {
	case <-r.more:
		r.mu.Lock()
		defer r.mu.Unlock()
		first := r.results[0]
		r.results = r.results[1:]
		return first
	case <-time.After(long):
		t.Fatal("no result was reported")
		return l7.Result{}
	}
}

// proxy is a Server under test with what it reports.
type proxy struct {
	*l7.Server
	pool *pick.Pool
	saw  *recorder
	url  string
}

// only are the upstreams where all clients have one.
func only(pool *pick.Pool, observer l7.Observer) *l7.Upstreams {
	return &l7.Upstreams{Default: &l7.Upstream{Pool: pool, Observer: observer}}
}

// start serves endpoints until the test ends. What happens on upstreams that o brings is not recorded.
func start(tb testing.TB, o l7.Options, endpoints ...netip.AddrPort) *proxy {
	tb.Helper()
	p := &proxy{saw: newRecorder()}
	if o.Upstreams == nil {
		o.Upstreams = only(poolOf(endpoints...), p.saw)
	}
	p.pool = o.Upstreams.Default.Pool
	server, err := l7.Listen(netip.MustParseAddrPort("127.0.0.1:0"), o)
	if err != nil {
		tb.Fatal(err)
	}
	p.Server, p.url = server, "http://"+server.Addr().String()
	served := make(chan error, 1)
	go func() { served <- server.Serve() }()
	tb.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // at once: tests that want grace ask for it themselves
		_ = server.Shutdown(ctx)
		if err := <-served; err != nil {
			tb.Errorf("Serve: %v", err)
		}
	})
	return p
}

// poolOf makes a pool that takes its endpoints in turn.
func poolOf(endpoints ...netip.AddrPort) *pick.Pool {
	pool := pick.NewPool(pick.Options{Zone: "a", Config: pick.Config{Algorithm: pick.RoundRobin}})
	update(pool, endpoints...)
	return pool
}

func update(pool *pick.Pool, endpoints ...netip.AddrPort) {
	targets := make([]pick.Target, 0, len(endpoints))
	for _, addr := range endpoints {
		targets = append(targets, pick.Target{Addr: addr, Zone: "a", Home: true})
	}
	pool.Update(0, targets)
}

// serve runs an HTTP endpoint that speaks HTTP/1 and HTTP/2 by prior knowledge.
func serve(tb testing.TB, h http.HandlerFunc) netip.AddrPort {
	tb.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Config.DisableGeneralOptionsHandler = true
	s.Start()
	tb.Cleanup(s.Close)
	return addrOf(s.Listener)
}

func addrOf(l net.Listener) netip.AddrPort { return netip.MustParseAddrPort(l.Addr().String()) }

// serveTCP runs an endpoint that treats each connection with f.
func serveTCP(tb testing.TB, f func(*net.TCPConn)) netip.AddrPort {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer shut(conn)
				f(conn.(*net.TCPConn))
			})
		}
	})
	tb.Cleanup(func() {
		shut(l)
		running.Wait()
	})
	return addrOf(l)
}

// refusing is an address where nobody listens, and nobody can begin to: the port is held.
func refusing(tb testing.TB) netip.AddrPort {
	tb.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		tb.Fatal(err)
	}
	bound, err := syscall.Getsockname(fd)
	if err != nil {
		tb.Fatal(err)
	}
	name, ok := bound.(*syscall.SockaddrInet4)
	if !ok {
		tb.Fatalf("bound to %T", bound)
	}
	return netip.AddrPortFrom(netip.AddrFrom4(name.Addr), uint16(name.Port))
}

// client is an HTTP client of the given protocol, with connections of its own.
func client(tb testing.TB, h2 bool) *http.Client {
	tb.Helper()
	tr := &http.Transport{Protocols: new(http.Protocols), DisableCompression: true}
	tr.Protocols.SetHTTP1(!h2)
	tr.Protocols.SetUnencryptedHTTP2(h2)
	tb.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: long, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
}

// answer is a response that was read to its end.
type answer struct {
	StatusCode      int
	Header, Trailer http.Header
}

// do sends a request and reads the whole response.
func do(tb testing.TB, c *http.Client, r *http.Request) (answer, string) {
	tb.Helper()
	resp, err := c.Do(r)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		tb.Fatal(err)
	}
	return answer{StatusCode: resp.StatusCode, Header: resp.Header, Trailer: resp.Trailer}, string(text)
}

func request(tb testing.TB, method, url string, body io.Reader) *http.Request {
	tb.Helper()
	r, err := http.NewRequestWithContext(tb.Context(), method, url, body)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// dial opens a raw connection with a deadline that only a failure reaches.
func dial(tb testing.TB, addr netip.AddrPort) *net.TCPConn {
	tb.Helper()
	conn, err := net.Dial("tcp", addr.String())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { shut(conn) })
	if err := conn.SetDeadline(time.Now().Add(long)); err != nil {
		tb.Fatal(err)
	}
	return conn.(*net.TCPConn)
}

// converse sends raw bytes and reads until the proxy closes.
func converse(tb testing.TB, addr netip.AddrPort, raw string) string {
	tb.Helper()
	conn := dial(tb, addr)
	if _, err := io.WriteString(conn, raw); err != nil {
		tb.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		tb.Fatalf("after %q: %v", answer, err)
	}
	return string(answer)
}

// statusLine is the first line of a raw response.
func statusLine(raw string) string {
	line, _, _ := strings.Cut(raw, "\r\n")
	return line
}

// say writes to a side that may be gone, which the other side of the test finds out.
func say(w io.Writer, raw string) { _, _ = io.WriteString(w, raw) }

// shut closes what may be closed already.
func shut(c io.Closer) { _ = c.Close() }

// hear reads a raw request's head.
func hear(conn net.Conn) (*bufio.Reader, string) {
	r := bufio.NewReader(conn)
	var head strings.Builder
	for {
		line, err := r.ReadString('\n')
		head.WriteString(line)
		if err != nil || line == "\r\n" {
			return r, head.String()
		}
	}
}
