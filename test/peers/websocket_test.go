package peers_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// frame is a frame of a client, masked as RFC 6455 section 5.3 wants it.
type frame struct {
	first   byte // FIN, the reserved bits and the opcode
	payload []byte
}

// Opcodes, and the bit of a last fragment.
const (
	fin          = 0x80
	continuation = 0x0
	text         = 0x1
	binaryData   = 0x2
	closing      = 0x8
	ping         = 0x9
	pong         = 0xa
)

func (f frame) bytes() []byte {
	out := []byte{f.first}
	switch n := len(f.payload); {
	case n < 126:
		out = append(out, 0x80|byte(n))
	case n <= 0xffff:
		out = binary.BigEndian.AppendUint16(append(out, 0x80|126), uint16(n))
	default:
		out = binary.BigEndian.AppendUint64(append(out, 0x80|127), uint64(n))
	}
	mask := [4]byte{0x12, 0x34, 0x56, 0x78}
	out = append(out, mask[:]...)
	for i, b := range f.payload {
		out = append(out, b^mask[i%4])
	}
	return out
}

// conversation is what a client sends, in frames. A piece is the number of bytes that it writes at a time; 0 is all at once.
type conversation struct {
	name   string
	piece  int
	frames []frame
}

// code is the payload of a Close.
func code(n uint16, reason string) []byte {
	return append(binary.BigEndian.AppendUint16(nil, n), reason...)
}

// conversations follow the sections of the Autobahn test suite: framing, pings, reserved bits, opcodes, fragmentation, UTF-8,
// the closing handshake, sizes and automatic fragmentation.
func conversations() (list []conversation) {
	add := func(name string, frames ...frame) { list = append(list, conversation{name: name, frames: frames}) }
	pieces := func(name string, piece int, frames ...frame) { list = append(list, conversation{name, piece, frames}) }
	fill := func(n int) []byte { return bytes.Repeat([]byte{'*'}, n) }
	sizes := []int{0, 125, 126, 127, 128, 65535, 65536}
	for i, n := range sizes {
		add(fmt.Sprint("1.1.", i+1), frame{fin | text, fill(n)})
		add(fmt.Sprint("1.2.", i+1), frame{fin | binaryData, bytes.Repeat([]byte{0xfe}, n)})
	}
	pieces("1.1.8", 997, frame{fin | text, fill(65536)})
	pieces("1.2.8", 997, frame{fin | binaryData, fill(65536)})

	add("2.1", frame{fin | ping, nil})
	add("2.2", frame{fin | ping, []byte("Hello, world!")})
	add("2.3", frame{fin | ping, []byte{0, 0xff, 0xfe, 0xfd, 0xfc, 0xfb, 0, 0xff}})
	add("2.4", frame{fin | ping, fill(125)})
	add("2.5", frame{fin | ping, fill(126)})
	pieces("2.6", 1, frame{fin | ping, fill(125)})
	add("2.7", frame{fin | pong, nil})
	add("2.8", frame{fin | pong, []byte("unsolicited")})
	add("2.9", frame{fin | pong, []byte("unsolicited")}, frame{fin | ping, []byte("payload")})
	var pings []frame
	for i := range 10 {
		pings = append(pings, frame{fin | ping, fmt.Append(nil, "payload ", i)})
	}
	add("2.10", pings...)
	pieces("2.11", 1, pings...)

	for i := range byte(7) {
		add(fmt.Sprint("3.", i+1), frame{fin | text, []byte("small")}, frame{fin | (i+1)<<4 | text, fill(int(i))}, frame{fin | ping, nil})
	}
	for i, opcode := range []byte{3, 4, 5, 6, 7} {
		add(fmt.Sprint("4.1.", i+1), frame{fin | text, []byte("x")}, frame{fin | opcode, []byte("reserved")}, frame{fin | ping, nil})
	}
	for i, opcode := range []byte{11, 12, 13, 14, 15} {
		add(fmt.Sprint("4.2.", i+1), frame{fin | text, []byte("x")}, frame{fin | opcode, []byte("reserved")}, frame{fin | ping, nil})
	}

	first, last := frame{text, []byte("fragment1")}, frame{fin | continuation, []byte("fragment2")}
	middle := frame{fin | ping, []byte("between")}
	add("5.1", frame{ping, []byte("fragment1")}, last)
	add("5.2", frame{pong, []byte("fragment1")}, last)
	add("5.3", first, last)
	pieces("5.5", 1, first, last)
	add("5.6", first, middle, last)
	pieces("5.8", 1, first, middle, last)
	add("5.9", frame{fin | continuation, []byte("nothing")}, frame{fin | text, []byte("x")})
	pieces("5.11", 1, frame{fin | continuation, []byte("nothing")}, frame{fin | text, []byte("x")})
	add("5.12", frame{continuation, []byte("nothing")}, frame{fin | text, []byte("x")})
	add("5.15", first, last, frame{continuation, []byte("fragment3")}, frame{fin | text, []byte("x")})
	add("5.18", first, frame{fin | text, []byte("fragment2")})
	add("5.19", first, frame{continuation, []byte("2")}, middle, frame{continuation, []byte("3")}, frame{continuation, []byte("4")}, middle, last)

	greek := []byte("κόσμε")
	add("6.1.1", frame{fin | text, nil})
	add("6.1.2", frame{text, nil}, frame{continuation, nil}, frame{fin | continuation, nil})
	add("6.2.1", frame{fin | text, []byte("Hello-µ@ßöäüàá-UTF-8!!")})
	add("6.2.2", frame{text, []byte("Hello-µ@ßöä")}, frame{fin | continuation, []byte("üàá-UTF-8!!")})
	split := []frame{{text, greek[:1]}}
	for _, b := range greek[1 : len(greek)-1] {
		split = append(split, frame{continuation, []byte{b}})
	}
	add("6.2.4", append(split, frame{fin | continuation, greek[len(greek)-1:]})...)
	pieces("6.4.3", 1, frame{fin | text, append([]byte("κόσμε"), 0xf4, 0x90, 0x80, 0x80)})
	for i, bad := range []string{
		"\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xed\xa0\x80edited", "\x80", "\xbf", "\xc0\xaf", "\xe0\x80\xaf", "\xf0\x80\x80\xaf",
		"\xf8\x88\x80\x80\x80", "\xfc\x84\x80\x80\x80\x80", "\xfe", "\xff", "\xf4\x90\x80\x80", "\xed\xa0\x80", "\xed\xbf\xbf", "\xce", "\xf0\x9f\x98",
	} {
		add(fmt.Sprint("6.3.", i+1), frame{fin | text, []byte(bad)})
	}

	add("7.1.1", frame{fin | text, []byte("Hello World!")}, frame{fin | closing, code(1000, "")})
	add("7.1.2", frame{fin | closing, code(1000, "")}, frame{fin | closing, code(1000, "")})
	add("7.1.3", frame{fin | closing, code(1000, "")}, frame{fin | ping, nil})
	add("7.1.4", frame{fin | closing, code(1000, "")}, frame{fin | text, []byte("after")})
	add("7.1.5", first, frame{fin | closing, code(1000, "")}, last)
	add("7.1.6", frame{fin | text, fill(256 << 10)}, frame{fin | text, []byte("Hello World!")}, frame{fin | closing, code(1000, "")}, frame{fin | ping, nil})
	add("7.3.1", frame{fin | closing, nil})
	add("7.3.2", frame{fin | closing, []byte{3}})
	add("7.3.4", frame{fin | closing, code(1000, "Hello World!")})
	add("7.3.5", frame{fin | closing, code(1000, string(fill(123)))})
	add("7.3.6", frame{fin | closing, code(1000, string(fill(124)))})
	add("7.5.1", frame{fin | closing, code(1000, "\xce\xba\xed\xa0\x80")})
	for i, n := range []uint16{1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999} {
		add(fmt.Sprint("7.7.", i+1), frame{fin | closing, code(n, "")})
	}
	for i, n := range []uint16{0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999, 5000, 65535} {
		add(fmt.Sprint("7.9.", i+1), frame{fin | closing, code(n, "")})
	}

	for i, n := range []int{64 << 10, 256 << 10, 1 << 20, 4 << 20} {
		add(fmt.Sprint("9.1.", i+1), frame{fin | text, fill(n)})
		add(fmt.Sprint("9.2.", i+1), frame{fin | binaryData, fill(n)})
	}
	for i, n := range []int{64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10} {
		var fragments []frame
		for at := 0; at < 256<<10; at += n {
			fragments = append(fragments, frame{continuation, fill(n)})
		}
		fragments[0].first = text
		fragments[len(fragments)-1].first |= fin
		add(fmt.Sprint("9.3.", i+1), fragments...)
		pieces(fmt.Sprint("9.5.", i+1), n, frame{fin | text, fill(256 << 10)})
	}
	add("10.1.1", frame{fin | text, fill(65536)})
	return list
}

// echo serves WebSocket to the letter and sends back each message, as the Autobahn suite expects of what it tests.
func echo(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer func() { _ = c.CloseNow() }()
	c.SetReadLimit(-1)
	for {
		kind, message, err := c.Read(r.Context())
		if err != nil || c.Write(r.Context(), kind, message) != nil {
			return
		}
	}
}

// talk has a conversation, ended by a Close if it has none of its own, and gives what the endpoint sent, frame by frame until
// the end of the connection, and how the connection ended.
func talk(t *testing.T, address string, k conversation) (heard string) {
	t.Helper()
	c := dial(t, address)
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(time.Minute)) // only a hang meets it
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	r := bufio.NewReader(c)
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusSwitchingProtocols || resp.Header.Get("Sec-WebSocket-Accept") != "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" {
		return fmt.Sprint(resp.StatusCode, resp.Header)
	}
	go write(c, k)
	var b strings.Builder
	for {
		head := make([]byte, 2)
		if _, err := io.ReadFull(r, head); err != nil {
			return b.String() + ending(err)
		}
		size := uint64(head[1] & 0x7f)
		if more := map[uint64]int{126: 2, 127: 8}[size]; more > 0 {
			wide := make([]byte, 8)
			if _, err := io.ReadFull(r, wide[8-more:]); err != nil {
				return b.String() + "cut"
			}
			size = binary.BigEndian.Uint64(wide)
		}
		payload := make([]byte, size)
		if _, err := io.ReadFull(r, payload); err != nil {
			return b.String() + "cut"
		}
		fmt.Fprintf(&b, "%#x %d %.40q\n", head[0], size, payload)
	}
}

// ending names the end of a connection. A reset is one, too: it comes of bytes that were under way.
func ending(err error) string {
	if isTimeout(err) {
		return "open"
	}
	return "closed"
}

// write sends a conversation, and a Close after it.
func write(c net.Conn, k conversation) {
	var all []byte
	for _, f := range append(k.frames, frame{fin | closing, code(1000, "")}) {
		all = append(all, f.bytes()...)
	}
	piece := k.piece
	if piece == 0 {
		piece = len(all)
	}
	for len(all) > 0 {
		n := min(piece, len(all))
		if _, err := c.Write(all[:n]); err != nil {
			return
		}
		all = all[n:]
	}
}

func TestWebSocketPassesAsIfThereWereNoProxy(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(echo))
	defer server.Close()
	endpoint := server.Listener.Addr().String()
	p := startWeir(t, "127.78.4.1", []route{{name: "socket", endpoint: endpoint}})
	for _, k := range conversations() {
		t.Run(k.name, func(t *testing.T) {
			want := talk(t, endpoint, k)
			if got := talk(t, p.address["socket"], k); got != want {
				t.Errorf("through weir the client hears\n%s\nwithout it\n%s", got, want)
			}
			if !strings.HasSuffix(want, "closed") {
				t.Errorf("the endpoint itself ends with %s", want)
			}
		})
	}
}
