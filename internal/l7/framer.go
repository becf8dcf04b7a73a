package l7

import (
	"bytes"
	"math"

	"github.com/weir-lb/weir/internal/core/reason"
)

// framer follows the framing of a client's HTTP/1 messages and finds what is malformed or ambiguous: whatever two
// parsers could read in two ways is refused, never repaired. It keeps no bytes. One goroutine at a time.
//
// Source: RFC 9112. Stricter than it where it leaves a choice: bare LF, obs-fold, Content-Length beside
// Transfer-Encoding and repeated equal Content-Length are refused.
type framer struct {
	limits    Limits
	state     frameState
	remaining int64 // of the body, or the chunk
	scanned   int   // bytes of the head, line or trailers that were looked at in vain
	trailer   int   // bytes of the trailer section so far
	later     bool  // a head was seen: HTTP/2 may not begin any more
	upgrade   bool  // the last head asked for another protocol
}

type frameState uint8

const (
	inHead      frameState = iota
	inBody                 // with a length
	inChunkSize            // a line
	inChunkData            // remaining bytes
	inChunkEnd             // CRLF
	inTrailer              // lines, until an empty one
	opaque                 // no business of the framer's: HTTP/2, or upgraded
)

// maxChunkLine bounds a chunk's size line with its extensions, which are not in use: as net/http has it.
const maxChunkLine = 4 << 10

// next looks at b, what was received and not passed on, and tells how many bytes of it to drop and how many to pass on
// after those. It stops at a message's end. Both 0 means that it needs more bytes. Once it gave a reason it must not be
// asked again.
func (f *framer) next(b []byte) (drop, pass int, refused reason.Code) {
	if f.state == inHead {
		return f.head(b)
	}
	for {
		n, refused := f.step(b[pass:])
		pass += n
		if n == 0 || refused != "" || f.state == inHead {
			if pass > 0 {
				// What precedes the fault is passed on first; the next call meets the fault again.
				refused = ""
			}
			return 0, pass, refused
		}
	}
}

// step passes one piece of a body.
func (f *framer) step(b []byte) (int, reason.Code) {
	switch f.state {
	case opaque:
		return len(b), ""
	case inBody, inChunkData:
		n := int(min(int64(len(b)), f.remaining))
		f.passed(n)
		return n, ""
	case inChunkEnd:
		return f.chunkEnd(b)
	case inChunkSize:
		return f.chunkSize(b)
	default:
		return f.trailers(b)
	}
}

func (f *framer) chunkEnd(b []byte) (int, reason.Code) {
	const crlf = "\r\n"
	if !bytes.HasPrefix([]byte(crlf), b[:min(len(b), len(crlf))]) {
		return 0, reason.MalformedRequest
	}
	if len(b) < len(crlf) {
		return 0, ""
	}
	f.state = inChunkSize
	return len(crlf), ""
}

func (f *framer) chunkSize(b []byte) (int, reason.Code) {
	line, n, refused := f.line(b, maxChunkLine)
	if n == 0 || refused != "" {
		return 0, refused
	}
	size, ok := parseChunkSize(line)
	if !ok {
		return 0, reason.MalformedRequest
	}
	f.remaining = size
	f.state = inChunkData
	if size == 0 {
		f.state, f.trailer = inTrailer, 0
	}
	return n, ""
}

func (f *framer) trailers(b []byte) (int, reason.Code) {
	line, n, refused := f.line(b, f.limits.Head)
	if n == 0 || refused != "" {
		return 0, refused
	}
	f.trailer += n
	if len(line) == 0 {
		f.state = inHead
		return n, ""
	}
	if over(f.trailer, f.limits.Head) {
		return 0, reason.HeadTooLarge
	}
	if _, _, ok := cutField(line); !ok {
		return 0, reason.MalformedRequest
	}
	return n, ""
}

// line finds a line that ends in CRLF: without its end, and how long it is with it; 0 if it is not complete yet.
func (f *framer) line(b []byte, limit int) (line []byte, n int, refused reason.Code) {
	i := bytes.IndexByte(b[f.scanned:], '\n')
	if i < 0 {
		f.scanned = len(b)
		if over(len(b), limit) {
			return nil, 0, reason.MalformedRequest
		}
		return nil, 0, ""
	}
	end := f.scanned + i
	f.scanned = 0
	if end == 0 || b[end-1] != '\r' {
		return nil, 0, reason.MalformedRequest
	}
	return b[:end-1], end + 1, ""
}

// head waits for a whole head and judges it.
func (f *framer) head(b []byte) (drop, pass int, refused reason.Code) {
	for bytes.HasPrefix(b[drop:], []byte("\r\n")) { // RFC 9112 section 2.2: empty lines before a request are ignored
		drop += 2
	}
	if drop > 0 {
		f.scanned = 0
		return drop, 0, ""
	}
	for {
		i := bytes.IndexByte(b[f.scanned:], '\n')
		if i < 0 {
			f.scanned = len(b)
			return 0, 0, f.tooLong(b)
		}
		end := f.scanned + i + 1
		f.scanned = end
		if end < 2 || b[end-2] != '\r' {
			return 0, 0, reason.MalformedRequest // a bare LF
		}
		if end >= 4 && b[end-3] == '\n' {
			break
		}
	}
	end := f.scanned
	f.scanned = 0
	if refused := f.tooLong(b[:end]); refused != "" {
		return 0, 0, refused
	}
	if !f.later && string(b[:end]) == prefaceHead {
		return f.preface(b)
	}
	return f.judge(b[:end])
}

// An HTTP/2 connection begins with what looks like a request, so that older servers refuse it (RFC 9113 section 3.4).
const (
	prefaceHead = "PRI * HTTP/2.0\r\n\r\n"
	prefaceTail = "SM\r\n\r\n"
)

// preface waits for the rest of an HTTP/2 connection preface, as for a head: net/http would give it 10 s of its own.
func (f *framer) preface(b []byte) (drop, pass int, refused reason.Code) {
	const whole = prefaceHead + prefaceTail
	n := min(len(b), len(whole))
	switch {
	case string(b[:n]) != whole[:n]:
		return 0, 0, reason.MalformedRequest
	case n < len(whole):
		return 0, 0, ""
	}
	f.state = opaque
	return 0, n, ""
}

func (f *framer) tooLong(head []byte) reason.Code {
	line := bytes.IndexByte(head, '\n')
	if line < 0 {
		line = len(head)
	}
	switch {
	case over(line, f.limits.Target):
		return reason.TargetTooLong
	case over(len(head), f.limits.Head):
		return reason.HeadTooLarge
	default:
		return ""
	}
}

func (f *framer) judge(head []byte) (drop, pass int, refused reason.Code) {
	f.later = true
	m, refused := parseHead(head, f.limits.Fields)
	if refused != "" {
		return 0, 0, refused
	}
	f.upgrade = m.upgrade
	switch {
	case m.chunked:
		f.state = inChunkSize
	case m.length > 0:
		f.state, f.remaining = inBody, m.length
	}
	return 0, len(head), ""
}

// direct tells how many of the bytes that come next need no look at them.
func (f *framer) direct() int64 {
	switch f.state {
	case opaque:
		return math.MaxInt64
	case inBody, inChunkData:
		return f.remaining
	default:
		return 0
	}
}

// passed accounts for bytes that were passed on without a look, at most direct.
func (f *framer) passed(n int) {
	if f.state == opaque {
		return
	}
	f.remaining -= int64(n)
	if f.remaining > 0 {
		return
	}
	if f.state == inBody {
		f.state = inHead
		return
	}
	f.state = inChunkEnd
}

// over tells whether n is above a limit, where there is one.
func over(n, limit int) bool { return limit > 0 && n > limit }
