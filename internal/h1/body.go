package h1

import (
	"bytes"
	"strings"

	"github.com/weir-lb/weir/internal/core/reason"
)

// Framing is how the end of a body is known.
type Framing uint8

// The framings.
const (
	Empty    Framing = iota // there is none
	Sized                   // by a Content-Length
	Chunked                 // by its last chunk
	Unframed                // by the connection's end
)

// Body follows the framing of one body. It keeps no bytes. One goroutine at a time.
type Body struct {
	// Trailer is what came behind the last chunk, without fields that frame a message or concern the connection. It owns its strings.
	Trailer []Field

	state     state
	remaining int64 // of a body with a length, or a chunk
	scanned   int   // bytes of a line that were looked at in vain
	trailer   int   // bytes of the trailer section so far
	limit     int   // of those; 0 or less: none
}

type state uint8

const (
	done  state = iota
	sized       // remaining bytes
	size        // a chunk's size line
	chunk       // remaining bytes
	chunkEnd
	trailer // lines, until an empty one
	unframed
)

// trailerMost bounds the fields of a trailer section: as a head's, by default.
const trailerMost = 128

// maxChunkLine bounds a chunk's size line with its extensions, which are not in use: as net/http has it.
const maxChunkLine = 4 << 10

// NewBody begins a body. Length is that of a Sized one; limit is how large a trailer section may be, 0 or less is no limit.
func NewBody(f Framing, length int64, limit int) Body {
	b := Body{limit: limit, remaining: length}
	switch f {
	case Sized:
		if length > 0 {
			b.state = sized
		}
	case Chunked:
		b.state = size
	case Unframed:
		b.state = unframed
	case Empty:
	}
	return b
}

// IsDone tells whether the body is over.
func (d *Body) IsDone() bool { return d.state == done }

// IsUnframed tells whether the connection's end ends the body.
func (d *Body) IsUnframed() bool { return d.state == unframed }

// Next looks at b, what was received behind all that was used before: it uses up a part, of which data is body. It stops at the body's end.
// Nothing used means that it needs more bytes. Once it gave a reason it must not be asked again.
func (d *Body) Next(b []byte) (data []byte, used int, refused reason.Code) {
	switch d.state {
	case sized, chunk:
		n := int(min(int64(len(b)), d.remaining))
		if d.remaining -= int64(n); d.remaining == 0 {
			if d.state++; d.state == size { // behind sized
				d.state = done
			}
		}
		return b[:n], n, ""
	case unframed:
		return b, len(b), ""
	case size:
		n, refused := d.size(b)
		return nil, n, refused
	case chunkEnd:
		n, refused := d.chunkEnd(b)
		return nil, n, refused
	case trailer:
		n, refused := d.trailerLine(b)
		return nil, n, refused
	default:
		return nil, 0, ""
	}
}

func (d *Body) chunkEnd(b []byte) (int, reason.Code) {
	if !strings.HasPrefix(crlf, view(b[:min(len(b), len(crlf))])) {
		return 0, reason.MalformedRequest
	}
	if len(b) < len(crlf) {
		return 0, ""
	}
	d.state = size
	return len(crlf), ""
}

func (d *Body) size(b []byte) (int, reason.Code) {
	line, n, refused := d.line(b, maxChunkLine)
	if n == 0 || refused != "" {
		return 0, refused
	}
	length, ok := parseChunkSize(line)
	if !ok {
		return 0, reason.MalformedRequest
	}
	d.remaining, d.state = length, chunk
	if length == 0 {
		d.state = trailer
	}
	return n, ""
}

func (d *Body) trailerLine(b []byte) (int, reason.Code) {
	line, n, refused := d.line(b, d.limit)
	if n == 0 || refused != "" {
		return 0, refused
	}
	if len(line) == 0 {
		d.state = done
		return n, ""
	}
	if d.trailer += n; d.limit > 0 && d.trailer > d.limit || len(d.Trailer) >= trailerMost {
		return 0, reason.HeadTooLarge
	}
	name, value, ok := cutField(line)
	if !ok {
		return 0, reason.MalformedRequest
	}
	if !isHop(view(name)) && !isOfHead(view(name)) {
		d.Trailer = append(d.Trailer, Field{Name: string(name), Value: string(value)})
	}
	return n, ""
}

// isOfHead tells whether a field that frames a message, or says whom it is for, comes too late in a trailer section.
func isOfHead(name string) bool {
	switch name {
	case "content-length", "host", "trailer":
		return true
	default:
		return false
	}
}

// line finds a line that ends in CRLF: without its end, and how long it is with it; 0 if it is not complete yet.
func (d *Body) line(b []byte, limit int) (line []byte, n int, refused reason.Code) {
	i := bytes.IndexByte(b[d.scanned:], '\n')
	if i < 0 {
		d.scanned = len(b)
		if limit > 0 && len(b) > limit {
			return nil, 0, reason.MalformedRequest
		}
		return nil, 0, ""
	}
	end := d.scanned + i
	d.scanned = 0
	if end == 0 || b[end-1] != '\r' {
		return nil, 0, reason.MalformedRequest
	}
	return b[:end-1], end + 1, ""
}

// parseChunkSize reads a chunk's size line: hexadecimal digits, then nothing or an extension after a semicolon. White
// space before the semicolon, which RFC 9112 calls bad, is refused: others do not read it either.
func parseChunkSize(line []byte) (int64, bool) {
	digits, extension, _ := bytes.Cut(line, []byte(";"))
	if !isText(extension) {
		return 0, false
	}
	const mostDigits = 15 // 2^60: no body is larger, and nothing overflows
	var n int64
	for _, c := range digits {
		i := strings.IndexByte("0123456789abcdef0123456789ABCDEF", c)
		if i < 0 {
			return 0, false
		}
		n = n<<4 | int64(i&0xf)
	}
	return n, len(digits) > 0 && len(digits) <= mostDigits
}
