package l7

import (
	"bytes"
	"math"

	"github.com/weir-lb/weir/internal/core/reason"
)

// refusedMethod marks the request that stands, behind the guard, for one which was refused. No client may use it.
const refusedMethod = "WEIR-REFUSED"

// message is what a request's head says about the request's length.
type message struct {
	chunked bool
	length  int64 // 0 if nothing is said
	hosts   int   // Host fields
	lengths int   // Content-Length fields
	codings int   // Transfer-Encoding fields
	coding  []byte
	old     bool // HTTP/1.0
	upgrade bool // there is an Upgrade field
}

// parseHead judges a whole head, from the request line to the empty line.
func parseHead(head []byte, fields int) (message, reason.Code) {
	line, rest, _ := bytes.Cut(head, []byte("\r\n"))
	m := message{}
	if refused := m.requestLine(line); refused != "" {
		return m, refused
	}
	for count := 1; ; count++ {
		line, rest, _ = bytes.Cut(rest, []byte("\r\n"))
		if len(line) == 0 {
			return m, m.verdict()
		}
		if over(count, fields) {
			return m, reason.HeadTooLarge
		}
		name, value, ok := cutField(line)
		if !ok || !m.field(name, value) {
			return m, reason.MalformedRequest
		}
	}
}

// requestLine wants exactly: method, space, target, space, version.
func (m *message) requestLine(line []byte) reason.Code {
	method, rest, _ := bytes.Cut(line, []byte(" "))
	target, version, ok := bytes.Cut(rest, []byte(" "))
	if !ok || !isToken(method) || !isTarget(target) || string(method) == refusedMethod {
		return reason.MalformedRequest
	}
	switch string(version) {
	case "HTTP/1.1":
	case "HTTP/1.0":
		m.old = true
	default:
		if len(version) == len("HTTP/1.1") && bytes.HasPrefix(version, []byte("HTTP/")) {
			return reason.UnsupportedVersion
		}
		return reason.MalformedRequest
	}
	if string(method) == "CONNECT" {
		return reason.UnsupportedMethod
	}
	return ""
}

// field takes note of the fields that frame a message.
func (m *message) field(name, value []byte) bool {
	switch len(name) {
	case len("Host"):
		if bytes.EqualFold(name, []byte("Host")) {
			m.hosts++
		}
	case len("Upgrade"):
		m.upgrade = m.upgrade || bytes.EqualFold(name, []byte("Upgrade"))
	case len("Content-Length"):
		if bytes.EqualFold(name, []byte("Content-Length")) {
			var ok bool
			m.lengths++
			m.length, ok = parseLength(value)
			return ok
		}
	case len("Transfer-Encoding"):
		if bytes.EqualFold(name, []byte("Transfer-Encoding")) {
			m.codings++
			m.coding = value
		}
	}
	return true
}

// verdict refuses what would be ambiguous: RFC 9112 sections 3.2, 6.1 and 6.3.
func (m *message) verdict() reason.Code {
	if m.hosts > 1 || m.hosts == 0 && !m.old || m.lengths > 1 || m.codings > 1 {
		return reason.MalformedRequest
	}
	if m.codings == 0 {
		return ""
	}
	if m.old || m.lengths > 0 {
		return reason.MalformedRequest
	}
	if bytes.EqualFold(m.coding, []byte("chunked")) {
		m.chunked = true
		return ""
	}
	before, ok := bytes.CutSuffix(bytes.ToLower(m.coding), []byte(", chunked"))
	if !ok || bytes.Contains(before, []byte("chunked")) {
		return reason.MalformedRequest // the end of such a body cannot be known
	}
	return reason.UnsupportedCoding
}

// cutField splits a field line and checks both parts. A line that begins with white space (obs-fold), a space before the
// colon and control characters are all refused.
func cutField(line []byte) (name, value []byte, ok bool) {
	name, value, ok = bytes.Cut(line, []byte(":"))
	if !ok || !isToken(name) {
		return nil, nil, false
	}
	for _, c := range value {
		if c < ' ' && c != '\t' || c == 0x7f {
			return nil, nil, false
		}
	}
	return name, bytes.Trim(value, " \t"), true
}

// isTarget accepts visible characters but '#', which no request target has, and bytes above ASCII, which RFC 3986
// forbids and curl sends.
func isTarget[T string | []byte](b T) bool {
	for i := range len(b) {
		if c := b[i]; c <= ' ' || c == 0x7f || c == '#' {
			return false
		}
	}
	return len(b) > 0
}

// isToken tells whether b is a token of RFC 9110 section 5.6.2.
func isToken(b []byte) bool {
	for _, c := range b {
		if !isTokenByte(c) {
			return false
		}
	}
	return len(b) > 0
}

func isTokenByte(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	default:
		return c != 0 && bytes.IndexByte([]byte("!#$%&'*+-.^_`|~"), c) >= 0
	}
}

// parseLength reads a Content-Length: digits only, no sign, no list, below 2^63.
func parseLength(b []byte) (int64, bool) {
	var n int64
	for _, c := range b {
		if c < '0' || c > '9' || n > (math.MaxInt64-int64(c-'0'))/10 {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, len(b) > 0
}

// parseChunkSize reads a chunk's size line: hexadecimal digits, then nothing or an extension after a semicolon. White
// space before the semicolon, which RFC 9112 calls bad, is refused: net/http does not read it either.
func parseChunkSize(line []byte) (int64, bool) {
	digits, extension, extended := bytes.Cut(line, []byte(";"))
	if !extended {
		return parseHex(digits)
	}
	for _, c := range extension {
		if c < ' ' && c != '\t' || c == 0x7f {
			return 0, false
		}
	}
	return parseHex(digits)
}

func parseHex(b []byte) (int64, bool) {
	const mostDigits = 15 // 2^60: no body is larger, and nothing overflows
	var n int64
	for _, c := range b {
		switch {
		case '0' <= c && c <= '9':
			n = n<<4 | int64(c-'0')
		case 'a' <= c && c <= 'f':
			n = n<<4 | int64(c-'a'+10)
		case 'A' <= c && c <= 'F':
			n = n<<4 | int64(c-'A'+10)
		default:
			return 0, false
		}
	}
	return n, len(b) > 0 && len(b) <= mostDigits
}
