package h1

import (
	"bytes"
	"strings"
	"unsafe"

	"golang.org/x/net/http2/hpack"

	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/syntax"
)

// Field is a field line; its name is in lower case.
type Field = hpack.HeaderField

// Head is what a request's or a response's head says. Its strings are views of the bytes that were parsed, and valid as long as those are.
type Head struct {
	Method, Target string // of a request; Target is "*" or begins with "/"
	Authority      string // of a request: the host that is asked for; empty only in HTTP/1.0
	Status         int    // of a response

	Fields  []Field // in order of arrival, without Host and what concerns the connection only; TE is "trailers" if it has that
	Length  int64   // Content-Length; -1 if there is none
	Chunked bool    // the body is in chunks
	Old     bool    // HTTP/1.0
	Keep    bool    // the sender lets the connection be used again
	Upgrade string  // the protocol that the sender wants to change to; empty if none, or HTTP/2
}

// Scan looks for the end of a head, which is an empty line, in b, of which from bytes were looked at before. End is 0 while it is not there, and
// next what to ask from then; ok is false if a line ends in a bare LF.
func Scan(b []byte, from int) (end, next int, ok bool) {
	for {
		i := bytes.IndexByte(b[from:], '\n')
		if i < 0 {
			return 0, len(b), true
		}
		from += i + 1
		switch {
		case from < 2 || b[from-2] != '\r':
			return 0, from, false
		case from >= 4 && b[from-3] == '\n':
			return from, from, true
		}
	}
}

// parser is what a head's fields say of more than themselves.
type parser struct {
	Head
	hosts, lengths, codings int
	coding                  string
	authority               string // of an absolute target
	upgrade                 string // of the first Upgrade
	connection              [4]string
	connections             int
	trailers, http2         bool // TE has trailers; Upgrade has h2c
}

// ParseRequest judges a request's head, which ends in an empty line. Names are changed to lower case in place. Fields are put in the memory of
// list; most is how many there may be, 0 or less is no limit. The empty reason means that the head is sound.
func ParseRequest(raw []byte, list []Field, most int) (Head, reason.Code) {
	line, rest, _ := bytes.Cut(raw, []byte(crlf))
	p := parser{Head: Head{Fields: list[:0], Length: -1}}
	if refused := p.requestLine(line); refused != "" {
		return p.Head, refused
	}
	if refused := p.fields(rest, most); refused != "" {
		return p.Head, refused
	}
	if p.hosts > 1 || p.hosts == 0 && !p.Old {
		return p.Head, reason.MalformedRequest
	}
	if p.authority != "" { // RFC 9112 section 3.2.2: it replaces what Host says
		p.Authority = p.authority
	}
	if p.Old { // it knows neither (RFC 9110 sections 7.8 and 10.1.1)
		p.without("expect")
		p.Upgrade = ""
	}
	return p.Head, p.framing()
}

// ParseResponse judges a response's head, likewise. Ok is false if it is none that can be passed on.
func ParseResponse(raw []byte, list []Field, most int) (h Head, ok bool) {
	line, rest, _ := bytes.Cut(raw, []byte(crlf))
	p := parser{Head: Head{Fields: list[:0], Length: -1}}
	if !p.statusLine(line) || p.fields(rest, most) != "" {
		return p.Head, false
	}
	return p.Head, p.framing() == ""
}

const crlf = "\r\n"

// namedMost bounds the fields that Connection names.
const namedMost = 32

// view gives the bytes as a string without a copy.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// requestLine wants exactly: method, space, target, space, version.
func (p *parser) requestLine(line []byte) reason.Code {
	method, rest, _ := bytes.Cut(line, []byte(" "))
	target, version, ok := bytes.Cut(rest, []byte(" "))
	if !ok || !syntax.IsToken(method) || !syntax.IsTarget(target) {
		return reason.MalformedRequest
	}
	switch string(version) {
	case "HTTP/1.1":
	case "HTTP/1.0":
		p.Old = true
	default:
		if len(version) == len("HTTP/1.1") && bytes.HasPrefix(version, []byte("HTTP/")) {
			return reason.UnsupportedVersion
		}
		return reason.MalformedRequest
	}
	p.Method = view(method)
	if p.Method == "CONNECT" {
		return reason.UnsupportedMethod
	}
	return p.target(view(target))
}

// target takes an absolute target apart: what is asked for is its path and query, and whom its authority.
func (p *parser) target(target string) reason.Code {
	p.Target = target
	if target[0] == '/' || target == "*" && p.Method == "OPTIONS" {
		return ""
	}
	scheme, rest, ok := strings.Cut(target, "://")
	if !ok || !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https") {
		return reason.MalformedRequest
	}
	end := strings.IndexAny(rest, "/?")
	switch {
	case end < 0 && p.Method == "OPTIONS":
		p.authority, p.Target = rest, "*" // RFC 9112 section 3.2.4
	case end < 0:
		p.authority, p.Target = rest, "/"
	case rest[end] == '?':
		p.authority, p.Target = rest[:end], "/"+rest[end:]
	default:
		p.authority, p.Target = rest[:end], rest[end:]
	}
	if !syntax.IsAuthority(p.authority) {
		return reason.MalformedRequest
	}
	return ""
}

// statusLine wants: version, space, three digits, and a space before a phrase.
func (p *parser) statusLine(line []byte) bool {
	version, rest, _ := bytes.Cut(line, []byte(" "))
	code, phrase, _ := bytes.Cut(rest, []byte(" "))
	p.Old = string(version) == "HTTP/1.0"
	if !p.Old && string(version) != "HTTP/1.1" || len(code) != 3 || !isText(phrase) {
		return false
	}
	n, ok := syntax.ParseLength(code)
	p.Status = int(n)
	return ok && n >= 100
}

// isText tells whether there are no control characters but tabs.
func isText(b []byte) bool {
	for _, c := range b {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// fields reads field lines up to the empty one.
func (p *parser) fields(rest []byte, most int) reason.Code {
	var line []byte
	for count := 1; ; count++ {
		line, rest, _ = bytes.Cut(rest, []byte(crlf))
		if len(line) == 0 {
			break
		}
		if most > 0 && count > most {
			return reason.HeadTooLarge
		}
		name, value, ok := cutField(line)
		if !ok || !p.field(view(name), view(value)) {
			return reason.MalformedRequest
		}
	}
	if !p.finish() {
		return reason.MalformedRequest
	}
	return ""
}

// cutField splits a field line and checks both parts; the name is put in lower case. A line that begins with white space (obs-fold), a space
// before the colon and control characters are all refused.
func cutField(line []byte) (name, value []byte, ok bool) {
	name, value, ok = bytes.Cut(line, []byte(":"))
	if !ok || !syntax.IsToken(name) {
		return nil, nil, false
	}
	for i, c := range name {
		if 'A' <= c && c <= 'Z' {
			name[i] = c + 'a' - 'A'
		}
	}
	value = bytes.Trim(value, " \t")
	return name, value, isText(value)
}

// field takes a field in.
func (p *parser) field(name, value string) bool {
	switch name {
	case "host":
		p.hosts++
		p.Authority = value
		return syntax.IsAuthority(value) || value == "" && p.Old
	case "content-length":
		var ok bool
		p.lengths++
		p.Length, ok = syntax.ParseLength(value)
		p.Fields = append(p.Fields, Field{Name: name, Value: value})
		return ok
	case "transfer-encoding":
		p.codings++
		p.coding = value
	case "connection":
		if p.connections == len(p.connection) {
			return false // nobody needs so many
		}
		p.connection[p.connections] = value
		p.connections++
	case "upgrade":
		if p.upgrade == "" {
			p.upgrade = value
		}
		p.http2 = p.http2 || HasToken(value, "h2c")
	case "te":
		p.trailers = p.trailers || HasToken(value, "trailers")
	default:
		if !isHop(name) {
			p.Fields = append(p.Fields, Field{Name: name, Value: value})
		}
	}
	return true
}

// isHop tells whether a field concerns one connection only (RFC 9110 section 7.6.1, and those that RFC 2616 knew).
func isHop(name string) bool {
	switch name {
	case "connection", "proxy-connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "transfer-encoding", "upgrade",
		"http2-settings":
		return true
	default:
		return false
	}
}

// finish draws the conclusions from all fields; false if Connection names too many.
func (p *parser) finish() bool {
	wantsUpgrade, closes, keeps, named := false, false, false, 0
	for _, list := range p.connection[:p.connections] {
		for token := range strings.SplitSeq(list, ",") {
			switch token = strings.Trim(token, " \t"); {
			case strings.EqualFold(token, "close"):
				closes = true
			case strings.EqualFold(token, "keep-alive"):
				keeps = true
			case strings.EqualFold(token, "upgrade"):
				wantsUpgrade = true
			case strings.EqualFold(token, "te"), strings.EqualFold(token, "content-length"), token == "":
				// How a message is framed is no business of the connection's alone.
			default:
				if named++; named > namedMost {
					return false
				}
				p.without(token)
			}
		}
	}
	p.Keep = !closes && (keeps || !p.Old)
	if wantsUpgrade && !p.http2 {
		p.Upgrade = p.upgrade
	}
	if p.trailers {
		p.Fields = append(p.Fields, Field{Name: "te", Value: "trailers"})
	}
	return true
}

// without takes the fields of a name out.
func (p *parser) without(name string) {
	kept := p.Fields[:0]
	for _, f := range p.Fields {
		if !strings.EqualFold(f.Name, name) {
			kept = append(kept, f)
		}
	}
	p.Fields = kept
}

// framing refuses what would be ambiguous: RFC 9112 sections 6.1 and 6.3.
func (p *parser) framing() reason.Code {
	if p.lengths > 1 || p.codings > 1 {
		return reason.MalformedRequest
	}
	if p.codings == 0 {
		return ""
	}
	if p.Old || p.lengths > 0 {
		return reason.MalformedRequest
	}
	if strings.EqualFold(p.coding, "chunked") {
		p.Chunked = true
		return ""
	}
	before, ok := strings.CutSuffix(strings.ToLower(p.coding), ", chunked")
	if !ok || strings.Contains(before, "chunked") {
		return reason.MalformedRequest // the end of such a body cannot be known
	}
	return reason.UnsupportedCoding
}

// HasToken tells whether a comma-separated list contains a token, in any letter case.
func HasToken(list, token string) bool {
	for part := range strings.SplitSeq(list, ",") {
		if strings.EqualFold(strings.Trim(part, " \t"), token) {
			return true
		}
	}
	return false
}
