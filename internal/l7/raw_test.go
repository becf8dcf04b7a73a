package l7_test

import (
	"bytes"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// peer is one side of a raw HTTP/2 connection. It speaks through golang.org/x/net's Framer, which shares no code with the proxy but HPACK.
type peer struct {
	*http2.Framer
	tb    testing.TB
	conn  net.Conn
	block bytes.Buffer
	coder *hpack.Encoder
}

func newPeer(tb testing.TB, conn net.Conn) *peer {
	tb.Helper()
	p := &peer{Framer: http2.NewFramer(conn, conn), tb: tb, conn: conn}
	p.AllowIllegalWrites = true
	p.SetReuseFrames()
	p.ReadMetaHeaders = hpack.NewDecoder(4_096, nil)
	p.coder = hpack.NewEncoder(&p.block)
	return p
}

// rawClient connects as a client that has said its preface.
func rawClient(tb testing.TB, addr netip.AddrPort) *peer {
	tb.Helper()
	conn := dial(tb, addr)
	say(conn, http2.ClientPreface)
	p := newPeer(tb, conn)
	_ = p.WriteSettings()
	return p
}

// rawServer runs an endpoint that treats each HTTP/2 connection with f, after the preface and both sides' first SETTINGS.
func rawServer(tb testing.TB, f func(*peer), settings ...http2.Setting) netip.AddrPort {
	tb.Helper()
	return serveTCP(tb, func(conn *net.TCPConn) {
		if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil {
			return
		}
		p := newPeer(tb, conn)
		_ = p.WriteSettings(settings...)
		f(p)
	})
}

// head sends HEADERS of fields, each "name: value"; a pseudo-field begins with a colon.
func (p *peer) head(stream uint32, end bool, fields ...string) {
	p.block.Reset()
	for _, field := range fields {
		i := strings.Index(field[1:], ":") + 1
		_ = p.coder.WriteField(hpack.HeaderField{Name: field[:i], Value: strings.TrimPrefix(field[i+1:], " ")})
	}
	_ = p.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: p.block.Bytes(), EndStream: end, EndHeaders: true})
}

// get sends a usual request without a body, and more fields.
func (p *peer) get(stream uint32, more ...string) {
	p.head(stream, true, append([]string{":method: GET", ":scheme: http", ":authority: h", ":path: /"}, more...)...)
}

// post sends the head of a request whose body follows.
func (p *peer) post(stream uint32, more ...string) {
	p.head(stream, false, append([]string{":method: POST", ":scheme: http", ":authority: h", ":path: /"}, more...)...)
}

// hear reads frames until one is of interest: of a stream, or one that ends the connection. Nil is the connection's end.
func (p *peer) hear() http2.Frame {
	for {
		f, err := p.ReadFrame()
		if err != nil {
			return nil
		}
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				_ = p.WriteSettingsAck()
			}
		case *http2.PingFrame:
			if !f.IsAck() {
				_ = p.WritePing(true, f.Data)
			}
		case *http2.WindowUpdateFrame:
		default:
			return f
		}
	}
}

// reply is what came on one stream.
type reply struct {
	status, reason string
	body           string
	reset          string // the code, or how the connection ended
	trailer        string // grpc-status
	ended          bool   // by END_STREAM
}

// reply reads a stream's answer to its end, its reset, or the connection's end.
func (p *peer) reply(stream uint32) reply {
	p.tb.Helper()
	var r reply
	for {
		f := p.hear()
		if f == nil {
			r.reset = "closed"
			return r
		}
		if away, ok := f.(*http2.GoAwayFrame); ok && away.ErrCode != http2.ErrCodeNo {
			r.reset = "GOAWAY " + away.ErrCode.String()
			return r
		}
		if f.Header().StreamID != stream {
			continue
		}
		switch f := f.(type) {
		case *http2.MetaHeadersFrame:
			for _, field := range f.Fields {
				switch field.Name {
				case ":status":
					r.status = field.Value
				case "weir-reason":
					r.reason = field.Value
				case "grpc-status":
					r.trailer = field.Value
				}
			}
			r.ended = f.StreamEnded()
		case *http2.DataFrame:
			r.body += string(f.Data())
			r.ended = f.StreamEnded()
		case *http2.RSTStreamFrame:
			r.reset = f.ErrCode.String()
			return r
		}
		if r.ended {
			return r
		}
	}
}

// isOpen tells whether the connection still answers.
func (p *peer) isOpen() bool {
	_ = p.conn.SetReadDeadline(time.Now().Add(long))
	_ = p.WritePing(false, [8]byte{7})
	for {
		f, err := p.ReadFrame()
		if err != nil {
			return false
		}
		if ping, ok := f.(*http2.PingFrame); ok && ping.IsAck() && ping.Data == [8]byte{7} {
			return true
		}
	}
}

// answerAll answers each request of a connection with 200 and a text.
func answerAll(text string) func(*peer) {
	return func(p *peer) {
		for f := p.hear(); f != nil; f = p.hear() {
			if h, ok := f.(*http2.MetaHeadersFrame); ok {
				p.head(h.StreamID, false, ":status: 200")
				_ = p.WriteData(h.StreamID, true, []byte(text))
			}
		}
	}
}

// bigHead is head for blocks of any size, in frames of 16 KiB.
func (p *peer) bigHead(stream uint32, fields ...string) {
	p.block.Reset()
	for _, field := range fields {
		i := strings.Index(field[1:], ":") + 1
		_ = p.coder.WriteField(hpack.HeaderField{Name: field[:i], Value: strings.TrimPrefix(field[i+1:], " ")})
	}
	const most = 16_384
	rest := p.block.Bytes()
	n := min(len(rest), most)
	_ = p.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: rest[:n], EndStream: true, EndHeaders: n == len(rest)})
	for rest = rest[n:]; len(rest) > 0; rest = rest[n:] {
		n = min(len(rest), most)
		_ = p.WriteContinuation(stream, n == len(rest), rest[:n])
	}
}
