package l7_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/l7"
)

// TestMalformedRequestsAreRefused sends what smugglers send. Each request would have a second one hidden behind it for
// a parser that is generous in another way: none may reach the endpoint.
func TestMalformedRequestsAreRefused(t *testing.T) {
	const hidden = "GET /hidden HTTP/1.1\r\nHost: h\r\n\r\n"
	long := strings.Repeat("x", 70<<10)
	for _, c := range []struct {
		name, raw string
		status    int
		code      reason.Code
	}{
		{"a length beside chunks", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, reason.MalformedRequest},
		{"two different lengths", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcd", 400, reason.MalformedRequest},
		{"two equal lengths", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nContent-Length: 4\r\n\r\nabcd", 400, reason.MalformedRequest},
		{"a list of lengths", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4, 4\r\n\r\nabcd", 400, reason.MalformedRequest},
		{"a signed length", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: +4\r\n\r\nabcd", 400, reason.MalformedRequest},
		{"a negative length", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -4\r\n\r\nabcd", 400, reason.MalformedRequest},
		{"a length beyond 2^63", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999\r\n\r\n", 400, reason.MalformedRequest},
		{"no length", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length:\r\n\r\n", 400, reason.MalformedRequest},
		{"a coding that hides chunked", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: xchunked\r\n\r\n", 400, reason.MalformedRequest},
		{"chunked twice", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", 400, reason.MalformedRequest},
		{"two codings fields", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n", 400, reason.MalformedRequest},
		{"chunked not last", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n", 400, reason.MalformedRequest},
		{"a coding behind a vertical tab", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n", 400, reason.MalformedRequest},
		{"a coding before chunked", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501, reason.UnsupportedCoding},
		{"chunks in HTTP/1.0", "POST / HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, reason.MalformedRequest},
		{"a folded field", "GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n c\r\n\r\n", 400, reason.MalformedRequest},
		{"a folded coding", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", 400, reason.MalformedRequest},
		{"a space before the colon", "GET / HTTP/1.1\r\nHost: h\r\nA : b\r\n\r\n", 400, reason.MalformedRequest},
		{"a space before the coding's colon", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n", 400, reason.MalformedRequest},
		{"a line without a colon", "GET / HTTP/1.1\r\nHost: h\r\nA\r\n\r\n", 400, reason.MalformedRequest},
		{"a field without a name", "GET / HTTP/1.1\r\nHost: h\r\n: b\r\n\r\n", 400, reason.MalformedRequest},
		{"a bare line feed", "GET / HTTP/1.1\r\nHost: h\nA: b\r\n\r\n", 400, reason.MalformedRequest},
		{"bare line feeds only", "GET / HTTP/1.1\nHost: h\n\n", 400, reason.MalformedRequest},
		{"a bare carriage return", "GET / HTTP/1.1\r\nHost: h\r\nA: b\rC: d\r\n\r\n", 400, reason.MalformedRequest},
		{"a zero byte", "GET / HTTP/1.1\r\nHost: h\r\nA: b\x00c\r\n\r\n", 400, reason.MalformedRequest},
		{"no Host", "GET / HTTP/1.1\r\n\r\n", 400, reason.MalformedRequest},
		{"two Hosts", "GET / HTTP/1.1\r\nHost: h\r\nHost: i\r\n\r\n", 400, reason.MalformedRequest},
		{"two spaces in the request line", "GET  / HTTP/1.1\r\nHost: h\r\n\r\n", 400, reason.MalformedRequest},
		{"a space in the target", "GET /a b HTTP/1.1\r\nHost: h\r\n\r\n", 400, reason.MalformedRequest},
		{"a fragment in the target", "GET /a#b HTTP/1.1\r\nHost: h\r\n\r\n", 400, reason.MalformedRequest},
		{"no version", "GET /\r\nHost: h\r\n\r\n", 400, reason.MalformedRequest},
		{"a version in lower case", "GET / http/1.1\r\nHost: h\r\n\r\n", 400, reason.MalformedRequest},
		{"a version of the future", "GET / HTTP/3.0\r\nHost: h\r\n\r\n", 505, reason.UnsupportedVersion},
		{"HTTP/2 with a broken preface", "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n", 400, reason.MalformedRequest},
		{"HTTP/2 too late", "GET / HTTP/1.1\r\nHost: h\r\n\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, reason.UnsupportedVersion},
		{"a method with a bracket", "G(T / HTTP/1.1\r\nHost: h\r\n\r\n", 400, reason.MalformedRequest},
		{"CONNECT", "CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n", 501, reason.UnsupportedMethod},
		{"a target that is too long", "GET /" + long + " HTTP/1.1\r\nHost: h\r\n\r\n", 414, reason.TargetTooLong},
		{"a field that is too long", "GET / HTTP/1.1\r\nHost: h\r\nA: " + long + "\r\n\r\n", 431, reason.HeadTooLarge},
		{"too many fields", "GET / HTTP/1.1\r\nHost: h\r\n" + strings.Repeat("A: b\r\n", 200) + "\r\n", 431, reason.HeadTooLarge},
		{"a chunk size that is no number", chunked("x\r\na\r\n0\r\n\r\n"), 400, reason.MalformedRequest},
		{"a chunk size with a prefix", chunked("0x1\r\na\r\n0\r\n\r\n"), 400, reason.MalformedRequest},
		{"a negative chunk size", chunked("-1\r\na\r\n0\r\n\r\n"), 400, reason.MalformedRequest},
		{"a chunk size that overflows", chunked("ffffffffffffffff1\r\na\r\n0\r\n\r\n"), 400, reason.MalformedRequest},
		{"a chunk size behind a space", chunked(" 1\r\na\r\n0\r\n\r\n"), 400, reason.MalformedRequest},
		{"a chunk size before a space", chunked("1 \r\na\r\n0\r\n\r\n"), 400, reason.MalformedRequest},
		{"a chunk extension behind a space", chunked("1 ;a\r\na\r\n0\r\n\r\n"), 400, reason.MalformedRequest},
		{"no chunk size", chunked("\r\na\r\n0\r\n\r\n"), 400, reason.MalformedRequest},
		{"a chunk size before a bare line feed", chunked("1\na\r\n0\r\n\r\n"), 400, reason.MalformedRequest},
		{"a chunk extension with a bare line feed", chunked("1;a\nb\r\na\r\n0\r\n\r\n"), 400, reason.MalformedRequest},
		{"a chunk longer than its size", chunked("1\r\nab\r\n0\r\n\r\n"), 400, reason.MalformedRequest},
		{"a folded trailer", chunked("1\r\na\r\n0\r\nA: b\r\n c\r\n\r\n"), 400, reason.MalformedRequest},
		{"a trailer that is too long", chunked("1\r\na\r\n0\r\nA: " + long + "\r\n\r\n"), 400, reason.MalformedRequest},
	} {
		t.Run(c.name, func(t *testing.T) {
			endpoint := serve(t, func(_ http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/hidden" {
					t.Error("the hidden request reached the endpoint")
				}
				_, _ = http.MaxBytesReader(nil, r.Body, 1<<20).Read(make([]byte, 1<<10))
			})
			p := start(t, l7.Options{Protocol: l7.HTTP}, endpoint)
			got := converse(t, p.Addr(), c.raw+hidden)
			last := got[strings.LastIndex(got, "HTTP/1.1 "):]
			want := "HTTP/1.1 " + strconv.Itoa(c.status)
			if !strings.HasPrefix(last, want) || !strings.Contains(last, "Weir-Reason: "+string(c.code)+"\r\n") ||
				!strings.Contains(last, "Connection: close\r\n") {
				t.Errorf("got %q, want %s for %s and a closed connection", got, want, c.code)
			}
		})
	}
}

func chunked(body string) string {
	return "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" + body
}

func TestUnusualButSoundRequestsPass(t *testing.T) {
	for _, c := range []struct{ name, raw, want string }{
		{"an empty line first", "\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n", "GET / "},
		{"a field without a value", "GET / HTTP/1.1\r\nHost: h\r\nA:\r\n", "GET / "},
		{"bytes above ASCII", "GET /\xc3\xa4 HTTP/1.1\r\nHost: h\r\nA: \xe4\r\n", "GET /\xc3\xa4 "},
		{"a target of all that is allowed", "GET //a;b=c/../d%2F|?e=[f]{g}\"h\" HTTP/1.1\r\nHost: h\r\n", "GET //a;b=c/../d%2F|?e=[f]{g}\"h\" h"},
		{"an absolute target", "GET http://other/a?b HTTP/1.1\r\nHost: h\r\n", "GET /a?b other"},
		{"no target but the server", "OPTIONS * HTTP/1.1\r\nHost: h\r\n", "OPTIONS * h"},
		{"a method of one's own", "PURGE / HTTP/1.1\r\nHost: h\r\n", "PURGE / h"},
		{"chunk extensions", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: Chunked\r\n\r\n1;a=b\r\nx\r\n0\r\nEnd: 1\r\n", "POST / h"},
	} {
		t.Run(c.name, func(t *testing.T) {
			endpoint := serve(t, func(w http.ResponseWriter, r *http.Request) {
				say(w, r.Method+" "+r.RequestURI+" "+r.Host)
			})
			p := start(t, l7.Options{Protocol: l7.HTTP}, endpoint)
			got := converse(t, p.Addr(), strings.Replace(c.raw, "Host: h\r\n", "Host: h\r\nConnection: close\r\n", 1)+"\r\n")
			if statusLine(got) != "HTTP/1.1 200 OK" || !strings.Contains(got, "\r\n\r\n"+c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
