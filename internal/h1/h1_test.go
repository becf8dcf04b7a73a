package h1_test

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/h1"
)

// head parses the request that raw begins with, and gives what is behind its head.
func head(raw []byte) (h h1.Head, rest []byte, refused reason.Code, whole bool) {
	end, _, ok := h1.Scan(raw, 0)
	if !ok {
		return h, nil, reason.MalformedRequest, true
	}
	if end == 0 {
		return h, nil, "", false
	}
	h, refused = h1.ParseRequest(slices.Clone(raw[:end]), nil, 128)
	return h, raw[end:], refused, true
}

// body reads a body to its end, fed in pieces of n bytes.
func body(d *h1.Body, raw []byte, n int) (data []byte, left int, refused reason.Code) {
	var in []byte
	for {
		part, used, refused := d.Next(in)
		data = append(data, part...)
		in = in[used:]
		switch {
		case refused != "":
			return data, 0, refused
		case d.IsDone():
			return data, len(in) + len(raw), ""
		case used == 0 && len(raw) == 0:
			return data, -1, ""
		case used == 0:
			more := min(n, len(raw))
			in = append(slices.Clone(in), raw[:more]...)
			raw = raw[more:]
		}
	}
}

func framing(h *h1.Head) h1.Framing {
	switch {
	case h.Chunked:
		return h1.Chunked
	case h.Length > 0:
		return h1.Sized
	default:
		return h1.Empty
	}
}

func TestAHeadIsTakenApart(t *testing.T) {
	raw := []byte("POST http://shop/a?b HTTP/1.1\r\nHost: other\r\nX-One: 1\r\nCONNECTION: X-Mine, close\r\nx-mine: 2\r\nTE: gzip, trailers\r\n" +
		"Keep-Alive: 5\r\ncontent-length: 3\r\nx-one: \t2 \r\n\r\n")
	got, refused := h1.ParseRequest(raw, nil, 0)
	want := h1.Head{
		Method: "POST", Target: "/a?b", Authority: "shop", Length: 3,
		Fields: []h1.Field{
			{Name: "x-one", Value: "1"},
			{Name: "content-length", Value: "3"},
			{Name: "x-one", Value: "2"},
			{Name: "te", Value: "trailers"},
		},
	}
	if d := cmp.Diff(want, got); d != "" || refused != "" {
		t.Errorf("refused %q, -want +got\n%s", refused, d)
	}
}

func TestAbsoluteTargets(t *testing.T) {
	for asked, want := range map[string]string{
		"GET http://h": "h /", "GET HTTP://h/": "h /", "GET https://h:1?x": "h:1 /?x", "OPTIONS http://h": "h *", "GET http://h//x": "h //x",
	} {
		h, refused := h1.ParseRequest([]byte(asked+" HTTP/1.1\r\nHost: i\r\n\r\n"), nil, 0)
		if got := h.Authority + " " + h.Target; got != want || refused != "" {
			t.Errorf("%s: got %q %q, want %q", asked, got, refused, want)
		}
	}
}

func TestABodyEndsWhereItsFramingSays(t *testing.T) {
	for _, c := range []struct {
		framing h1.Framing
		length  int64
		raw     string
		want    string
		left    int // -1: it does not end
	}{
		{h1.Empty, 0, "GET", "", 3},
		{h1.Sized, 3, "abcGET", "abc", 3},
		{h1.Sized, 4, "abc", "abc", -1},
		{h1.Chunked, 0, "1\r\na\r\n2;x=y\r\nbc\r\n0\r\n\r\nGET", "abc", 3},
		{h1.Chunked, 0, "A\r\n0123456789\r\n0\r\nSum: 1\r\n\r\n", "0123456789", 0},
		{h1.Chunked, 0, "1\r\na\r\n0\r\n", "a", -1},
		{h1.Unframed, 0, "abc", "abc", -1},
	} {
		for n := 1; n <= len(c.raw); n++ {
			d := h1.NewBody(c.framing, c.length, 1<<10)
			got, left, refused := body(&d, []byte(c.raw), n)
			if string(got) != c.want || left != c.left || refused != "" {
				t.Errorf("%q in pieces of %d: got %q, %d left, %q", c.raw, n, got, left, refused)
			}
		}
	}
}

func TestParsingMakesNoGarbage(t *testing.T) {
	raw := []byte("GET /a/b?c=d HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: tester\r\nAccept: */*\r\nConnection: keep-alive, x-a\r\nX-A: 1\r\n\r\n")
	list := make([]h1.Field, 0, 16)
	if got := testing.AllocsPerRun(100, func() { _, _ = h1.ParseRequest(raw, list, 128) }); got > 0 {
		t.Errorf("%v allocations", got)
	}
}

// FuzzRequest compares with net/http, which is more generous: what is accepted here means the same there, head and body, and ends at the same
// byte. What only net/http accepts is refused with a reason.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{
		"GET / HTTP/1.1\r\nHost: h\r\n\r\n",
		"POST /a?b HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabcGET",
		"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\nA: b\r\n\r\n",
		"GET http://h/x HTTP/1.1\r\nHost: i\r\nConnection: x-y\r\nX-Y: 1\r\n\r\n",
		"OPTIONS * HTTP/1.0\r\n\r\n", "GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n c\r\n\r\n", "GET / HTTP/1.1\nHost: h\n\n",
		"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n",
	} {
		f.Add([]byte(seed), 3)
	}
	f.Fuzz(func(t *testing.T, raw []byte, n int) {
		h, rest, refused, whole := head(raw)
		if !whole || refused != "" {
			return
		}
		reader := bytes.NewReader(raw)
		buffered := bufio.NewReader(reader)
		other, err := http.ReadRequest(buffered)
		if err != nil {
			// net/http refuses what net/url cannot parse: escapes, and hosts with odd characters; those are the endpoint's business.
			if strings.ContainsAny(h.Target+h.Authority, "%:[]") || !isVisible(h.Target+h.Authority) || strings.HasPrefix(h.Target, "//") {
				return
			}
			t.Fatalf("net/http: %v, ours: %+v", err, h)
		}
		if h.Method != other.Method || h.Old != (other.ProtoMinor == 0) || h.Authority != other.Host && h.Authority != "" {
			t.Fatalf("got %+v, net/http has %s %s", h, other.Method, other.Host)
		}
		wantLength := other.ContentLength
		if got := max(h.Length, 0); !h.Chunked && got != wantLength || h.Chunked != (wantLength < 0) {
			t.Fatalf("got length %d, chunked %v, net/http has %d", h.Length, h.Chunked, wantLength)
		}
		for _, field := range h.Fields {
			if field.Name == "te" || field.Name == "trailer" {
				continue
			}
			if !slices.Contains(other.Header.Values(field.Name), field.Value) {
				t.Fatalf("field %q is not what net/http has: %q", field, other.Header)
			}
		}
		d := h1.NewBody(framing(&h), h.Length, 1<<10)
		got, left, broken := body(&d, rest, max(n%64, 1))
		if broken != "" || left < 0 {
			return
		}
		want, err := io.ReadAll(other.Body)
		if err != nil {
			t.Fatalf("net/http cannot read the body: %v, ours is %q", err, got)
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("got %q, net/http has %q", got, want)
		}
		if behind := reader.Len() + buffered.Buffered(); behind != left {
			t.Fatalf("%d bytes are behind it, net/http has %d", left, behind)
		}
	})
}

func isVisible(s string) bool {
	for _, c := range []byte(s) {
		if c <= ' ' || c >= 0x7f {
			return false
		}
	}
	return true
}

// FuzzResponse parses what an endpoint may send: nothing panics, and what is accepted is accepted by net/http with the same status and length.
func FuzzResponse(f *testing.F) {
	for _, seed := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", "HTTP/1.1 204\r\n\r\n", "HTTP/1.0 200 OK\r\n\r\nhi", "HTTP/1.1 042 x\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nhi",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		end, _, ok := h1.Scan(raw, 0)
		if !ok || end == 0 {
			return
		}
		h, ok := h1.ParseResponse(slices.Clone(raw[:end]), nil, 128)
		if !ok {
			return
		}
		other, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(raw)), nil)
		if err != nil {
			t.Fatalf("net/http: %v, ours: %+v", err, h)
		}
		defer func() { _ = other.Body.Close() }()
		if h.Status != other.StatusCode {
			t.Fatalf("got %d, net/http has %d", h.Status, other.StatusCode)
		}
		if h.Status >= 200 && h.Status != 204 && h.Status != 304 && !h.Chunked && h.Length != other.ContentLength {
			t.Fatalf("got length %d, net/http has %d", h.Length, other.ContentLength)
		}
	})
}
