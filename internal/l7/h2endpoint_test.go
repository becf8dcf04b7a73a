package l7_test

import (
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/l7"
)

// TestABodyWhereNoneMayBeReachesNoClient: an endpoint that sends DATA on HEAD, 204 or 304 is reported, and its next answer is whole.
func TestABodyWhereNoneMayBeReachesNoClient(t *testing.T) {
	for _, c := range []struct{ method, status string }{{"HEAD", "200"}, {"GET", "204"}, {"GET", "304"}} {
		t.Run(c.method+" "+c.status, func(t *testing.T) {
			p := start(t, l7.Options{}, rawServer(t, func(p *peer) {
				for f := p.hear(); f != nil; f = p.hear() {
					if h, ok := f.(*http2.MetaHeadersFrame); ok {
						status := c.status
						if h.PseudoValue("path") == "/good" {
							status = "200"
						}
						p.head(h.StreamID, false, ":status: "+status)
						_ = p.WriteData(h.StreamID, true, []byte("poison"))
					}
				}
			}))
			conn := rawClient(t, p.Addr())
			for stream := uint32(1); stream < 40; stream += 4 {
				conn.head(stream, true, ":method: "+c.method, ":scheme: http", ":authority: h", ":path: /")
				if got := conn.reply(stream); got.status != c.status || got.body != "" || !got.ended {
					t.Fatalf("got %+v", got)
				}
				if saw := p.saw.next(t); saw.Outcome != pick.LocalError {
					t.Errorf("reported %+v", saw)
				}
				conn.head(stream+2, true, ":method: GET", ":scheme: http", ":authority: h", ":path: /good")
				if got := conn.reply(stream + 2); got.status != "200" || got.body != "poison" {
					t.Fatalf("the next one got %+v", got)
				}
				p.saw.next(t)
			}
		})
	}
}

// TestAnswersToHEADThatEndLaterAreWhole: HEADERS and an empty DATA frame with the end are an answer like any other.
func TestAnswersToHEADThatEndLaterAreWhole(t *testing.T) {
	p := start(t, l7.Options{}, rawServer(t, func(p *peer) {
		for f := p.hear(); f != nil; f = p.hear() {
			if h, ok := f.(*http2.MetaHeadersFrame); ok {
				p.head(h.StreamID, false, ":status: 200", "content-length: 10")
				_ = p.WriteData(h.StreamID, true, nil)
			}
		}
	}))
	conn := rawClient(t, p.Addr())
	conn.head(1, true, ":method: HEAD", ":scheme: http", ":authority: h", ":path: /")
	if got := conn.reply(1); got.status != "200" || !got.ended {
		t.Errorf("got %+v", got)
	}
	if saw := p.saw.next(t); saw.Outcome != pick.Success {
		t.Errorf("reported %+v", saw)
	}
}

// limited is an endpoint that processes so many requests on a connection and then says GOAWAY: what comes later is not processed. It counts
// what it processed, by body.
type limited struct {
	perConnection int
	graceful      bool
	refuses       bool // RST_STREAM(REFUSED_STREAM) for every third stream, once each
	mu            sync.Mutex
	processed     map[string]int
}

func (l *limited) serve(p *peer) {
	bodies, done, last := make(map[uint32]string), 0, uint32(0)
	for f := p.hear(); f != nil; f = p.hear() {
		id := f.Header().StreamID
		if done >= l.perConnection {
			if f.Header().Type == http2.FrameHeaders && l.graceful {
				continue // not processed: the proxy hears of it by GOAWAY
			}
			if id > last {
				continue
			}
		}
		switch f := f.(type) {
		case *http2.MetaHeadersFrame:
			bodies[id] = f.PseudoValue("path") + " "
		case *http2.DataFrame:
			bodies[id] += string(f.Data())
		default:
			continue
		}
		if !f.Header().Flags.Has(http2.FlagDataEndStream) {
			continue
		}
		if l.refuses && id%3 == 0 && done%2 == 0 {
			_ = p.WriteRSTStream(id, http2.ErrCodeRefusedStream)
			delete(bodies, id)
			done++
			continue
		}
		l.mu.Lock()
		l.processed[bodies[id]]++
		l.mu.Unlock()
		last = max(last, id)
		if done++; done >= l.perConnection {
			_ = p.WriteGoAway(last, http2.ErrCodeNo, nil)
		}
		p.head(id, false, ":status: 200")
		_ = p.WriteData(id, true, []byte(bodies[id]))
		delete(bodies, id)
	}
}

// TestWhatAnEndpointDidNotProcessIsSentAgain has an endpoint end connections after few requests, whose methods must not be repeated on
// suspicion. Each is processed once.
func TestWhatAnEndpointDidNotProcessIsSentAgain(t *testing.T) {
	const conns, streams, each = 4, 10, 30
	for name, l := range map[string]*limited{
		"GOAWAY after 60":         {perConnection: 60},
		"GOAWAY after 20":         {perConnection: 20},
		"and REFUSED_STREAM":      {perConnection: 60, refuses: true},
		"GOAWAY, then deaf to it": {perConnection: 50, graceful: true},
	} {
		t.Run(name, func(t *testing.T) {
			l.processed = make(map[string]int)
			p := start(t, l7.Options{Upstreams: only(poolOf(rawServer(t, l.serve)), nil), Retry: l7.Retry{Attempts: 1}})
			var asking sync.WaitGroup
			var failed atomic.Int64
			for conn := range conns {
				c := client(t, true)
				for stream := range streams {
					asking.Go(func() {
						for i := range each {
							path := fmt.Sprintf("/%d/%d/%d", conn, stream, i)
							want := path + " body of " + path
							resp, err := c.Post(p.url+path, "text/plain", strings.NewReader("body of "+path)) //nolint:noctx // the client has a limit
							if err != nil {
								failed.Add(1)
								t.Log(err)
								continue
							}
							text, err := io.ReadAll(resp.Body)
							_ = resp.Body.Close()
							if err != nil || resp.StatusCode != 200 || string(text) != want {
								failed.Add(1)
								t.Logf("got %d %q %v", resp.StatusCode, text, err)
							}
						}
					})
				}
			}
			asking.Wait()
			if failed.Load() > 0 {
				t.Errorf("%d requests failed", failed.Load())
			}
			for body, times := range l.processed {
				if times != 1 {
					t.Errorf("%q was processed %d times", body, times)
				}
			}
		})
	}
}

// TestABodyThatIsGoneIsNotSentAgain: more than is kept was sent on, so that the request cannot be repeated.
func TestABodyThatIsGoneIsNotSentAgain(t *testing.T) {
	var conns atomic.Int64
	p := start(t, l7.Options{}, rawServer(t, func(p *peer) {
		conns.Add(1)
		got := 0
		for f := p.hear(); f != nil; f = p.hear() {
			if d, ok := f.(*http2.DataFrame); ok {
				if got += len(d.Data()); got >= 30_000 {
					_ = p.WriteGoAway(0, http2.ErrCodeNo, nil)
				}
			}
		}
	}))
	resp, _ := do(t, client(t, true), request(t, "POST", p.url, strings.NewReader(strings.Repeat("x", 40_000))))
	if resp.StatusCode != 502 || resp.Header.Get("Weir-Reason") != string(reason.EndpointReset) {
		t.Errorf("got %d %v", resp.StatusCode, resp.Header)
	}
	if n := conns.Load(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

// TestAnEndpointThatRefusesAllIsGivenUp: REFUSED_STREAM for ever costs few attempts, and another endpoint answers.
func TestAnEndpointThatRefusesAllIsGivenUp(t *testing.T) {
	var asked atomic.Int64
	refuses := rawServer(t, func(p *peer) {
		for f := p.hear(); f != nil; f = p.hear() {
			if h, ok := f.(*http2.MetaHeadersFrame); ok {
				asked.Add(1)
				_ = p.WriteRSTStream(h.StreamID, http2.ErrCodeRefusedStream)
			}
		}
	})
	for _, c := range []struct {
		endpoints []netip.AddrPort
		status    int
	}{{[]netip.AddrPort{refuses}, 502}, {[]netip.AddrPort{serve(t, func(http.ResponseWriter, *http.Request) {}), refuses}, 200}} {
		asked.Store(0)
		p := start(t, l7.Options{}, c.endpoints...)
		resp, _ := do(t, client(t, true), request(t, "POST", p.url, strings.NewReader("x")))
		if n := asked.Load(); resp.StatusCode != c.status || n < 1 || n > 25 {
			t.Errorf("got %d after %d attempts, want %d", resp.StatusCode, n, c.status)
		}
	}
}

func TestMalformedHTTP2AnswersAreBadGateways(t *testing.T) {
	for name, act := range map[string]func(*peer, uint32){
		"no :status":          func(p *peer, id uint32) { p.head(id, true, "x: 1") },
		"two-digit :status":   func(p *peer, id uint32) { p.head(id, true, ":status: 20") },
		"101":                 func(p *peer, id uint32) { p.head(id, false, ":status: 101") },
		"an end with 1xx":     func(p *peer, id uint32) { p.head(id, true, ":status: 103") },
		"upper case":          func(p *peer, id uint32) { p.head(id, true, ":status: 200", "X-Upper: 1") },
		"connection":          func(p *peer, id uint32) { p.head(id, true, ":status: 200", "connection: close") },
		"a line end":          func(p *peer, id uint32) { p.head(id, true, ":status: 200", "x: a\r\nb: c") },
		"two lengths":         func(p *peer, id uint32) { p.head(id, false, ":status: 200", "content-length: 1", "content-length: 1") },
		"a body first":        func(p *peer, id uint32) { _ = p.WriteData(id, true, []byte("x")) },
		"a pushed stream":     func(p *peer, id uint32) { _ = p.WritePushPromise(http2.PushPromiseParam{StreamID: id, PromiseID: 2}) },
		"1xx without end":     func(p *peer, id uint32) { endless(p, id) },
		"another protocol":    func(p *peer, _ uint32) { say(p.conn, "HTTP/1.1 400 Bad Request\r\n\r\n") },
		"a closed connection": func(p *peer, _ uint32) { shut(p.conn) },
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, l7.Options{}, rawServer(t, func(p *peer) {
				for f := p.hear(); f != nil; f = p.hear() {
					if h, ok := f.(*http2.MetaHeadersFrame); ok {
						act(p, h.StreamID)
					}
				}
			}))
			conn := rawClient(t, p.Addr())
			conn.post(1)
			_ = conn.WriteData(1, true, []byte("x"))
			if got := conn.reply(1); got.status != "502" && got.status != "103" || got.reason != string(reason.EndpointReset) {
				t.Errorf("got %+v", got)
			}
			if saw := p.saw.next(t); saw.Reason != reason.EndpointReset || saw.Outcome != pick.Failure {
				t.Errorf("reported %+v", saw)
			}
			if !conn.isOpen() {
				t.Error("the client's connection was closed")
			}
		})
	}
}

// endless sends interim responses for a while.
func endless(p *peer, id uint32) {
	for range 1_000 {
		p.head(id, false, ":status: 103", "link: </a>")
	}
}

func TestBrokenHTTP2AnswersAreNotTakenForWholeOnes(t *testing.T) {
	for name, act := range map[string]func(*peer, uint32){
		"too little":                 func(p *peer, id uint32) { _ = p.WriteData(id, true, []byte("hal")) },
		"too much":                   func(p *peer, id uint32) { _ = p.WriteData(id, true, []byte("halfhalfhalf")) },
		"a reset":                    func(p *peer, id uint32) { _ = p.WriteRSTStream(id, http2.ErrCodeInternal) },
		"a closed connection":        func(p *peer, _ uint32) { shut(p.conn) },
		"a trailer with a length":    func(p *peer, id uint32) { p.head(id, true, "content-length: 3") },
		"a trailer with :status":     func(p *peer, id uint32) { p.head(id, true, ":status: 200") },
		"a trailer without the end":  func(p *peer, id uint32) { p.head(id, false, "x: 1") },
		"GOAWAY that disowns it":     func(p *peer, _ uint32) { _ = p.WriteGoAway(0, http2.ErrCodeNo, nil) },
		"more than the window takes": func(p *peer, id uint32) { _ = p.WriteRawFrame(http2.FrameData, 0, id, make([]byte, 20_000)) },
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, l7.Options{}, rawServer(t, func(p *peer) {
				for f := p.hear(); f != nil; f = p.hear() {
					if h, ok := f.(*http2.MetaHeadersFrame); ok {
						p.head(h.StreamID, false, ":status: 200", "content-length: 10")
						_ = p.WriteData(h.StreamID, false, []byte("half"))
						act(p, h.StreamID)
					}
				}
			}))
			conn := rawClient(t, p.Addr())
			conn.get(1)
			if got := conn.reply(1); got.status != "200" || got.ended || got.reset != "INTERNAL_ERROR" {
				t.Errorf("got %+v", got)
			}
			if saw := p.saw.next(t); saw.Outcome != pick.LocalError || saw.Code != 200 {
				t.Errorf("reported %+v", saw)
			}
			if !conn.isOpen() {
				t.Error("the client's connection was closed")
			}
		})
	}
}

// TestAContentTypeDoesNotLiftTheResponseTimeout: only what is gRPC in every respect may wait for as long as its client likes.
func TestAContentTypeDoesNotLiftTheResponseTimeout(t *testing.T) {
	p := start(t, l7.Options{Timeouts: l7.Timeouts{Response: 100 * time.Millisecond}}, rawServer(t, func(p *peer) {
		for p.hear() != nil {
		}
	}))
	conn := rawClient(t, p.Addr())
	conn.get(1, "content-type: application/grpc")
	if got := conn.reply(1); got.reason != string(reason.ResponseTimeout) {
		t.Errorf("got %+v", got)
	}
	p.saw.next(t)
	conn.head(3, true, ":method: POST", ":scheme: http", ":authority: h", ":path: /", "content-type: application/grpc", "te: trailers", "grpc-timeout: 1S")
	if got := conn.reply(3); got.reason != string(reason.RequestTimeout) || got.trailer != "4" {
		t.Errorf("got %+v", got)
	}
	if saw := p.saw.next(t); saw.Duration < time.Second {
		t.Errorf("reported %+v", saw)
	}
}

// TestAContentTypeOverHTTP1DoesNotLiftTheResponseTimeout: gRPC is spoken over HTTP/2 only.
func TestAContentTypeOverHTTP1DoesNotLiftTheResponseTimeout(t *testing.T) {
	p := start(t, l7.Options{Timeouts: l7.Timeouts{Response: short}}, serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	r := request(t, "GET", p.url, nil)
	r.Header.Set("Content-Type", "application/grpc")
	do(t, client(t, false), r)
	if saw := p.saw.next(t); saw.Reason != reason.ResponseTimeout {
		t.Errorf("reported %+v", saw)
	}
}

func TestInterimAndEarlyAnswersOfHTTP2(t *testing.T) {
	p := start(t, l7.Options{}, rawServer(t, func(p *peer) {
		for f := p.hear(); f != nil; f = p.hear() {
			if h, ok := f.(*http2.MetaHeadersFrame); ok {
				p.head(h.StreamID, false, ":status: 103", "link: </a>")
				p.head(h.StreamID, false, ":status: 403")
				_ = p.WriteData(h.StreamID, true, []byte("no"))
				_ = p.WriteRSTStream(h.StreamID, http2.ErrCodeNo) // must not cut the answer
			}
		}
	}))
	conn := rawClient(t, p.Addr())
	conn.post(1)
	if f, ok := conn.hear().(*http2.MetaHeadersFrame); !ok || f.PseudoValue("status") != "103" {
		t.Fatalf("got %v", f)
	}
	if got := conn.reply(1); got.status != "403" || got.body != "no" || !got.ended {
		t.Errorf("got %+v", got)
	}
	if f, ok := conn.hear().(*http2.RSTStreamFrame); !ok || f.ErrCode != http2.ErrCodeNo {
		t.Errorf("got %v, want the client told not to send on", f)
	}
	if saw := p.saw.next(t); saw.Code != 403 || saw.Outcome != pick.Success {
		t.Errorf("reported %+v", saw)
	}
}
