package l7_test

import (
	"strings"
	"testing"

	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/l7"
)

// TestMalformedHTTP2RequestsAreRefused: none of them reaches the endpoint, each is answered 400 and its stream reset, and the connection
// goes on.
func TestMalformedHTTP2RequestsAreRefused(t *testing.T) {
	reached := make(chan string, 100)
	p := start(t, l7.Options{}, rawServer(t, func(p *peer) {
		for f := p.hear(); f != nil; f = p.hear() {
			reached <- f.Header().String()
			p.head(f.Header().StreamID, true, ":status: 200")
		}
	}))
	usual := []string{":method: POST", ":scheme: http", ":authority: h", ":path: /"}
	with := func(fields ...string) []string { return append(usual[:4:4], fields...) }
	for name, fields := range map[string][]string{
		"Content-Length with a sign":       with("content-length: +0"),
		"Content-Length as a list":         with("content-length: 0, 0"),
		"negative Content-Length":          with("content-length: -1"),
		"two Content-Lengths":              with("content-length: 0", "content-length: 0"),
		"Content-Length without a body":    with("content-length: 5"),
		"Content-Length above 2^63":        with("content-length: 9223372036854775808"),
		"connection":                       with("connection: close"),
		"keep-alive":                       with("keep-alive: timeout=5"),
		"proxy-connection":                 with("proxy-connection: keep-alive"),
		"transfer-encoding":                with("transfer-encoding: chunked"),
		"upgrade":                          with("upgrade: websocket"),
		"TE other than trailers":           with("te: trailers, gzip"),
		"a name in upper case":             with("X-Upper: 1"),
		"a name with a space":              with("x y: 1"),
		"an empty name":                    with(": 1"),
		"a value with a line end":          with("x: a\r\ninjected: b"),
		"a value with NUL":                 with("x: a\x00b"),
		"a value that ends in white space": with("x: a "),
		"a pseudo-field after a field":     {":method: GET", ":scheme: http", ":authority: h", "x: 1", ":path: /"},
		"an unknown pseudo-field":          with(":protocol: websocket"),
		"a response's pseudo-field":        with(":status: 200"),
		"a pseudo-field twice":             with(":path: /other"),
		"no :path":                         {":method: GET", ":scheme: http", ":authority: h"},
		"an empty :path":                   {":method: GET", ":scheme: http", ":authority: h", ":path: "},
		"a :path without a slash":          {":method: GET", ":scheme: http", ":authority: h", ":path: mailto:a"},
		"a :path with a space":             {":method: GET", ":scheme: http", ":authority: h", ":path: /a HTTP/1.1"},
		"a :path with a line end":          {":method: GET", ":scheme: http", ":authority: h", ":path: /\r\nx"},
		"a :method with a space":           {":method: GET /x", ":scheme: http", ":authority: h", ":path: /"},
		"no :method":                       {":scheme: http", ":authority: h", ":path: /"},
		"no :scheme":                       {":method: GET", ":authority: h", ":path: /"},
		"another :scheme":                  {":method: GET", ":scheme: ftp", ":authority: h", ":path: /"},
		"no authority":                     {":method: GET", ":scheme: http", ":path: /"},
		"an authority with a path":         {":method: GET", ":scheme: http", ":authority: h/x", ":path: /"},
		"an authority with a user":         {":method: GET", ":scheme: http", ":authority: u@h", ":path: /"},
		"a Host that differs":              with("host: other"),
		"two Hosts":                        with("host: h", "host: h"),
		"OPTIONS * of another method":      {":method: GET", ":scheme: http", ":authority: h", ":path: *"},
	} {
		t.Run(name, func(t *testing.T) {
			c := rawClient(t, p.Addr())
			c.head(1, true, fields...)
			got := c.reply(1)
			if got.status != "400" || got.reason != string(reason.MalformedRequest) {
				t.Errorf("got %+v", got)
			}
			if saw := p.saw.next(t); saw.Reason != reason.MalformedRequest || saw.Code != 400 || saw.Outcome != pick.Canceled || saw.Attempts != 0 {
				t.Errorf("reported %+v", saw)
			}
			if !c.isOpen() {
				t.Error("the connection was closed")
			}
		})
	}
	if len(reached) > 0 {
		t.Errorf("the endpoint got %s", <-reached)
	}
}

// TestHTTP2BodiesThatDifferFromTheirHeadAreRefused: the stream is reset before its end reaches the endpoint.
func TestHTTP2BodiesThatDifferFromTheirHeadAreRefused(t *testing.T) {
	for name, act := range map[string]func(*peer){
		"too much": func(c *peer) {
			c.post(1, "content-length: 3")
			_ = c.WriteData(1, true, []byte("four"))
		},
		"too little": func(c *peer) {
			c.post(1, "content-length: 5")
			_ = c.WriteData(1, true, []byte("four"))
		},
		"too little before a trailer": func(c *peer) {
			c.post(1, "content-length: 5")
			_ = c.WriteData(1, false, []byte("four"))
			c.head(1, true, "sum: 1")
		},
		"a trailer with a pseudo-field": func(c *peer) {
			c.post(1)
			c.head(1, true, ":path: /other")
		},
		"a trailer with Content-Length": func(c *peer) {
			c.post(1)
			c.head(1, true, "content-length: 3")
		},
		"a trailer with Transfer-Encoding": func(c *peer) {
			c.post(1)
			c.head(1, true, "transfer-encoding: chunked")
		},
		"a trailer with Host": func(c *peer) {
			c.post(1)
			c.head(1, true, "host: other")
		},
		"a trailer that is not the end": func(c *peer) {
			c.post(1)
			c.head(1, false, "sum: 1")
		},
	} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan bool, 10)
			p := start(t, l7.Options{}, rawServer(t, func(p *peer) {
				for f := p.hear(); f != nil; f = p.hear() {
					if f.Header().Flags.Has(1) && f.Header().Type < 2 {
						ended <- true
					}
				}
			}))
			c := rawClient(t, p.Addr())
			act(c)
			if got := c.reply(1); got.reset != "PROTOCOL_ERROR" {
				t.Errorf("got %+v", got)
			}
			if saw := p.saw.next(t); saw.Reason != reason.MalformedRequest || saw.Outcome != pick.Canceled {
				t.Errorf("reported %+v", saw)
			}
			if !c.isOpen() {
				t.Error("the connection was closed")
			}
			if len(ended) > 0 {
				t.Error("the endpoint saw the request's end")
			}
		})
	}
}

func TestHTTP2HeadsAboveTheLimitsAreRefused(t *testing.T) {
	many := make([]string, 200)
	for i := range many {
		many[i] = "a: b"
	}
	for _, c := range []struct {
		name   string
		fields []string
		status string
		code   reason.Code
	}{
		{"too many fields", many, "431", reason.HeadTooLarge},
		{"too large a field", []string{"a: " + strings.Repeat("x", 70_000)}, "431", reason.HeadTooLarge},
		{"too large a head", []string{"a: " + strings.Repeat("x", 40_000), "b: " + strings.Repeat("x", 40_000)}, "431", reason.HeadTooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := start(t, l7.Options{}, rawServer(t, answerAll("x")))
			conn := rawClient(t, p.Addr())
			conn.bigHead(1, append([]string{":method: GET", ":scheme: http", ":authority: h", ":path: /"}, c.fields...)...)
			if got := conn.reply(1); got.status != c.status || got.reason != string(c.code) {
				t.Errorf("got %+v", got)
			}
			if saw := p.saw.next(t); saw.Reason != c.code {
				t.Errorf("reported %+v", saw)
			}
			conn.get(3)
			if got := conn.reply(3); got.status != "200" {
				t.Errorf("the next request got %+v", got)
			}
		})
	}
	t.Run("too long a target", func(t *testing.T) {
		p := start(t, l7.Options{}, rawServer(t, answerAll("x")))
		conn := rawClient(t, p.Addr())
		conn.bigHead(1, ":method: GET", ":scheme: http", ":authority: h", ":path: /"+strings.Repeat("x", 17_000))
		if got := conn.reply(1); got.status != "414" || got.reason != string(reason.TargetTooLong) {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("CONNECT", func(t *testing.T) {
		p := start(t, l7.Options{}, rawServer(t, answerAll("x")))
		conn := rawClient(t, p.Addr())
		conn.head(1, false, ":method: CONNECT", ":authority: h:1")
		if got := conn.reply(1); got.status != "501" || got.reason != string(reason.UnsupportedMethod) {
			t.Errorf("got %+v", got)
		}
	})
}
