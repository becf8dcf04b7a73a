package peers_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// silence is how long a client waits for a proxy that sends nothing. It decides nothing where a proxy ends what it began.
const silence = 5 * time.Second

// last is the request that follows each form on its connection. Its answer shows that the connection is in step; its
// end, or that of a refusal, is the connection's.
const last = "GET /last HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n"

// endOfFile in the end of what is sent stands for the end of the client's side of the connection.
const endOfFile = "\x00EOF\x00"

// transcript is what a client got.
type transcript struct {
	raw     string
	answers []string // status and the request that the answer is for, or the status alone
	open    bool     // the proxy had neither answered all nor closed the connection in time
	reset   bool     // the connection ended by a reset: what has no other end was cut
}

// dial connects to a proxy, for at most the time of the test.
func dial(t *testing.T, address string) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", address) //nolint:noctx // answers at once.
	if err != nil {
		t.Fatal(err)
	}
	return c.(*net.TCPConn)
}

// exchange sends bytes and reads until the proxy closes the connection. Methods are those of the requests that may be
// answered, since an answer to HEAD has no body.
func exchange(t *testing.T, address, send string, methods []string) *transcript {
	t.Helper()
	c := dial(t, address)
	defer func() { _ = c.Close() }()
	go func() {
		_, _ = c.Write([]byte(strings.TrimSuffix(send, endOfFile)))
		if strings.HasSuffix(send, endOfFile) {
			_ = c.CloseWrite()
		}
	}()
	got := &transcript{}
	var raw bytes.Buffer
	buffer := make([]byte, 16<<10)
	for {
		_ = c.SetReadDeadline(time.Now().Add(silence))
		n, err := c.Read(buffer)
		raw.Write(buffer[:n])
		if err != nil {
			got.open, got.reset = isTimeout(err), errors.Is(err, syscall.ECONNRESET)
			break
		}
	}
	got.raw = raw.String()
	got.answers = answers(got.raw, methods)
	return got
}

// answers reads the answers in what a client got.
func answers(raw string, methods []string) (list []string) {
	r := bufio.NewReader(strings.NewReader(raw))
	for i := 0; ; {
		if _, err := r.Peek(1); err != nil {
			return list
		}
		method := http.MethodGet
		if i < len(methods) {
			method = methods[i]
		}
		resp, err := http.ReadResponse(r, &http.Request{Method: method})
		if err != nil {
			return append(list, "no HTTP")
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode >= 200 {
			list = append(list, verdict(resp.StatusCode, resp.Header.Get("X-Answer"), string(text)))
			i++
		}
		if err != nil {
			return append(list, "cut")
		}
	}
}

// verdict names an answer: the request that it is for if an endpoint sent it.
func verdict(status int, answers, text string) string {
	if answers == "" {
		return fmt.Sprint(status)
	}
	name := strings.TrimPrefix(answers, "for ")
	if text != "" && text != answers {
		name += fmt.Sprintf(" with the body %q", text)
	}
	return fmt.Sprintf("%d %s", status, name)
}

// methods gives the methods of the requests that a form has a proxy forward, and of the last one.
func (f *form) methods() (list []string) {
	for _, request := range f.forwards {
		method, _, _ := strings.Cut(request, " ")
		list = append(list, method)
	}
	if len(list) == 0 && strings.HasPrefix(f.bytes, "HEAD ") {
		list = []string{http.MethodHead}
	}
	return append(list, http.MethodGet)
}

// h2client is a raw client of HTTP/2 that sends whatever fields it is given.
type h2client struct {
	conn    net.Conn
	output  *bufio.Writer // what is sent before the next answer is read goes out at once
	framer  *http2.Framer
	encoded bytes.Buffer
	encoder *hpack.Encoder
	raw     strings.Builder // the frames that it got, a line for each
	closed  bool
}

func newH2(t *testing.T, address string) *h2client {
	t.Helper()
	conn := dial(t, address)
	c := &h2client{conn: conn, output: bufio.NewWriterSize(conn, 1<<20)}
	c.framer = http2.NewFramer(c.output, conn)
	c.encoder = hpack.NewEncoder(&c.encoded)
	c.framer.AllowIllegalWrites = true
	c.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	_, _ = io.WriteString(c.output, http2.ClientPreface)
	_ = c.framer.WriteSettings()
	return c
}

// block encodes fields.
func (c *h2client) block(fields []field) []byte {
	c.encoded.Reset()
	for _, f := range fields {
		_ = c.encoder.WriteField(hpack.HeaderField{Name: f.name, Value: f.value})
	}
	return slices.Clone(c.encoded.Bytes())
}

// send sends the request of a form on a stream.
func (c *h2client) send(stream uint32, f *form) {
	parts := len(f.data)
	if len(f.trailers) > 0 {
		parts++
	}
	c.headers(stream, f.fields, parts == 0)
	for i, text := range f.data {
		_ = c.framer.WriteData(stream, i == parts-1, []byte(text))
	}
	if len(f.trailers) > 0 {
		c.headers(stream, f.trailers, true)
	}
}

// headers sends a header block, in as many frames as it needs.
func (c *h2client) headers(stream uint32, fields []field, end bool) {
	const size = 16 << 10
	block := c.block(fields)
	first := block[:min(size, len(block))]
	block = block[len(first):]
	_ = c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: first, EndStream: end, EndHeaders: len(block) == 0})
	for len(block) > 0 {
		next := block[:min(size, len(block))]
		block = block[len(next):]
		_ = c.framer.WriteContinuation(stream, len(block) == 0, next)
	}
}

// answer reads until a stream ends, and gives how.
func (c *h2client) answer(stream uint32) string {
	status, name := 0, ""
	var text strings.Builder
	for {
		_ = c.output.Flush()
		_ = c.conn.SetReadDeadline(time.Now().Add(silence))
		frame, err := c.framer.ReadFrame()
		if err != nil {
			c.closed = true
			if isTimeout(err) {
				return "open"
			}
			return "closed"
		}
		fmt.Fprintln(&c.raw, frame)
		ended := false
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				_ = c.framer.WriteSettingsAck()
			}
		case *http2.GoAwayFrame:
			c.closed = true
			if frame.ErrCode != http2.ErrCodeNo {
				return "goaway " + frame.ErrCode.String()
			}
		case *http2.RSTStreamFrame:
			if frame.StreamID == stream && status == 0 {
				return "reset " + frame.ErrCode.String()
			} else if frame.StreamID == stream && frame.ErrCode != http2.ErrCodeNo {
				return fmt.Sprint(status, " then reset ", frame.ErrCode)
			}
		case *http2.MetaHeadersFrame:
			if frame.StreamID != stream {
				continue
			}
			for _, f := range frame.Fields {
				switch f.Name {
				case ":status":
					_, _ = fmt.Sscan(f.Value, &status)
				case "x-answer":
					name = f.Value
				}
			}
			ended = frame.StreamEnded()
		case *http2.DataFrame:
			if frame.StreamID == stream {
				text.Write(frame.Data())
				ended = frame.StreamEnded()
			}
		}
		if ended && status >= 200 {
			return verdict(status, name, text.String())
		}
	}
}

// exchangeH2 sends the request of a form, and once that has ended another one on the same connection.
func exchangeH2(t *testing.T, address string, f *form) *transcript {
	t.Helper()
	c := newH2(t, address)
	defer func() { _ = c.conn.Close() }()
	c.send(1, f)
	got := &transcript{answers: []string{c.answer(1)}}
	if !c.closed {
		c.send(3, &form{fields: []field{{":method", "GET"}, {":scheme", "http"}, {":authority", defaultHost}, {":path", "/last"}}})
		got.answers = append(got.answers, c.answer(3))
	}
	got.open = slices.Contains(got.answers, "open")
	got.raw = c.raw.String()
	return got
}

// fetch sends a request of a client of its own, and gives the answer, which is "200 GET target" if it is its own.
func fetch(t *testing.T, address, target string) string {
	t.Helper()
	c, err := net.Dial("tcp", address) //nolint:noctx // answers at once.
	if err != nil {
		return err.Error()
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(silence))
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", target, defaultHost); err != nil {
		return err.Error()
	}
	raw, err := io.ReadAll(c)
	if list := answers(string(raw), nil); len(list) > 0 {
		return strings.Join(list, ", ")
	}
	return errors.Join(errors.New("no answer"), err).Error()
}
