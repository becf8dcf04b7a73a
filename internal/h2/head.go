package h2

import (
	"strings"

	"github.com/weir-lb/weir/internal/syntax"
)

// Head is what a request's or a response's head says.
type Head struct {
	Method, Scheme, Authority, Path string // of a request; Path begins with "/" or is "*"

	Status int     // of a response
	Length int64   // Content-Length; -1 if there is none
	Fields []Field // without pseudo-fields, and without Host
}

// ParseRequest judges a request's head. The fields are those of one block; their slice is changed.
//
// Errors: MalformedError. Stricter than RFC 9113: every request has an authority, Host may not differ from it, the scheme is http or
// https, fields have no control characters, and Content-Length is one number.
func ParseRequest(fields []Field) (Head, error) {
	h := Head{Length: -1}
	n, err := h.requestPseudo(fields)
	if err != nil {
		return h, err
	}
	h.Fields = fields[n:]
	if err := h.regular(); err != nil {
		return h, err
	}
	if err := h.host(); err != nil {
		return h, err
	}
	switch {
	case h.Method == "CONNECT" && h.Scheme == "" && h.Path == "": // refused by who asks
		return h, nil
	case h.Method == "CONNECT":
		return h, MalformedError("CONNECT with :scheme or :path")
	case h.Method == "" || !syntax.IsToken(h.Method):
		return h, MalformedError("no valid :method")
	case h.Scheme != "http" && h.Scheme != "https":
		return h, MalformedError("no valid :scheme")
	case !syntax.IsTarget(h.Path) || h.Path[0] != '/' && (h.Path != "*" || h.Method != "OPTIONS"):
		return h, MalformedError("no valid :path")
	case !syntax.IsAuthority(h.Authority):
		return h, MalformedError("no valid :authority")
	default:
		return h, nil
	}
}

// requestPseudo reads the pseudo-fields, which come first, and tells how many there are.
func (h *Head) requestPseudo(fields []Field) (int, error) {
	for i := range fields {
		f := &fields[i]
		if !f.IsPseudo() {
			return i, nil
		}
		var to *string
		switch f.Name {
		case ":method":
			to = &h.Method
		case ":scheme":
			to = &h.Scheme
		case ":authority":
			to = &h.Authority
		case ":path":
			to = &h.Path
		default:
			return 0, MalformedError("an unknown pseudo-field")
		}
		if *to != "" || f.Value == "" {
			return 0, MalformedError("a pseudo-field that is repeated or empty")
		}
		*to = f.Value
	}
	return len(fields), nil
}

// ParseResponse judges a response's head, an interim one as well.
//
// Errors: MalformedError.
func ParseResponse(fields []Field) (Head, error) {
	h := Head{Length: -1}
	if len(fields) == 0 || fields[0].Name != ":status" {
		return h, MalformedError("no :status")
	}
	status := fields[0].Value
	if len(status) != 3 {
		return h, MalformedError("no valid :status")
	}
	for _, c := range []byte(status) {
		if c < '0' || c > '9' {
			return h, MalformedError("no valid :status")
		}
		h.Status = h.Status*10 + int(c-'0')
	}
	if h.Status < 100 || h.Status == 101 { // HTTP/2 has no 101 (section 8.6)
		return h, MalformedError("no valid :status")
	}
	h.Fields = fields[1:]
	return h, h.regular()
}

// CheckTrailer judges a trailer section: fields that frame a message, or say whom it is for, come too late.
//
// Errors: MalformedError.
func CheckTrailer(fields []Field) error {
	h := Head{Length: -1, Fields: fields}
	if err := h.regular(); err != nil {
		return err
	}
	if h.Length >= 0 {
		return MalformedError("Content-Length in a trailer section")
	}
	for i := range fields {
		if name := fields[i].Name; name == "host" || name == "trailer" || name == "te" {
			return MalformedError("a field in a trailer section that belongs to the head")
		}
	}
	return nil
}

// regular judges the fields that are no pseudo-fields, and finds the length.
func (h *Head) regular() error {
	for i := range h.Fields {
		f := &h.Fields[i]
		if !syntax.IsLowerToken(f.Name) {
			return MalformedError("a field name in upper case, empty, not a token, or a pseudo-field out of place")
		}
		if !syntax.IsFieldValue(f.Value) {
			return MalformedError("a field value with control characters, or white space at its ends")
		}
		switch f.Name {
		case "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade":
			return MalformedError("a field of an HTTP/1 connection")
		case "te":
			if f.Value != "trailers" {
				return MalformedError("TE other than trailers")
			}
		case "content-length":
			n, ok := syntax.ParseLength(f.Value)
			if !ok || h.Length >= 0 {
				return MalformedError("Content-Length that is repeated or no number")
			}
			h.Length = n
		default:
		}
	}
	return nil
}

// host takes Host out of the fields: the authority says the same, or Host stands for it.
func (h *Head) host() error {
	at := -1
	for i := range h.Fields {
		if h.Fields[i].Name != "host" {
			continue
		}
		if at >= 0 {
			return MalformedError("two Hosts")
		}
		at = i
	}
	if at < 0 {
		return nil
	}
	value := h.Fields[at].Value
	if h.Authority == "" {
		h.Authority = value
	}
	if !strings.EqualFold(value, h.Authority) {
		return MalformedError("Host differs from :authority")
	}
	copy(h.Fields[1:at+1], h.Fields[:at])
	h.Fields = h.Fields[1:]
	return nil
}
