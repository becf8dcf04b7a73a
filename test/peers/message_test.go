package peers_test

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// message is a request as an endpoint reads it that follows RFC 9112 to the letter.
type message struct {
	method, target string
	host           string
	fields         []string // name: value, in order, without the host, framing and what proxies add
	body           string
	trailers       []string
}

var (
	errIncomplete = errors.New("incomplete")

	requestLine = regexp.MustCompile("^([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([\x21-\x7e]+) HTTP/1\\.[01]$")
	fieldLine   = regexp.MustCompile("^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\\x00-\\x08\\x0a-\\x1f\\x7f]*?)[ \t]*$")
	chunkLine   = regexp.MustCompile("^([0-9A-Fa-f]{1,15})(?:[ \t]*;[^\\x00-\\x08\\x0a-\\x1f\\x7f]*)?$")
	lengthValue = regexp.MustCompile("^[0-9]{1,18}$")

	// added are the fields that proxies add or change as they should; what is left has to be the client's own.
	added = regexp.MustCompile("^(x-forwarded-.*|via:.*|forwarded:.*|x-request-id|x-envoy-.*|trailer:.*|expect: 100-continue|connection: (keep-alive|close)$)")
)

// parseRequest reads one request from the start of what an endpoint received, and gives what follows it.
func parseRequest(in []byte) (m *message, rest []byte, err error) {
	line, rest, err := cutLine(in)
	if err != nil {
		return nil, nil, err
	}
	start := requestLine.FindStringSubmatch(line)
	if start == nil {
		return nil, nil, fmt.Errorf("the request line %q", line)
	}
	m = &message{method: start[1], target: start[2]}
	var hosts, lengths, codings []string
	for {
		if line, rest, err = cutLine(rest); err != nil {
			return nil, nil, err
		}
		if line == "" {
			break
		}
		field := fieldLine.FindStringSubmatch(line)
		if field == nil {
			return nil, nil, fmt.Errorf("the field %q", line)
		}
		switch name := strings.ToLower(field[1]); name {
		case "host":
			hosts = append(hosts, field[2])
		case "content-length":
			lengths = append(lengths, field[2])
		case "transfer-encoding":
			codings = append(codings, strings.ToLower(field[2]))
		default:
			if text := name + ": " + field[2]; !added.MatchString(text) {
				m.fields = append(m.fields, text)
			}
		}
	}
	if len(hosts) > 1 || len(hosts) == 0 && strings.HasSuffix(start[0], ".1") {
		return nil, nil, fmt.Errorf("%d Host fields", len(hosts))
	}
	m.host = strings.Join(hosts, "")
	slices.Sort(m.fields)
	rest, err = m.parseBody(rest, lengths, codings)
	return m, rest, err
}

func (m *message) parseBody(in []byte, lengths, codings []string) (rest []byte, err error) {
	switch {
	case len(codings) == 1 && len(lengths) == 0 && codings[0] == "chunked":
		return m.parseChunks(in)
	case len(codings) > 0 || len(lengths) > 1 || len(lengths) == 1 && !lengthValue.MatchString(lengths[0]):
		return nil, fmt.Errorf("Content-Length %q and Transfer-Encoding %q", lengths, codings)
	case len(lengths) == 0:
		return in, nil
	}
	n, err := strconv.Atoi(lengths[0])
	if err != nil {
		return nil, err
	}
	if len(in) < n {
		return nil, errIncomplete
	}
	m.body = string(in[:n])
	return in[n:], nil
}

func (m *message) parseChunks(in []byte) ([]byte, error) {
	for {
		line, rest, err := cutLine(in)
		if err != nil {
			return nil, err
		}
		size := chunkLine.FindStringSubmatch(line)
		if size == nil {
			return nil, fmt.Errorf("the chunk %q", line)
		}
		n, err := strconv.ParseInt(size[1], 16, 64)
		if err != nil {
			return nil, err
		}
		in = rest
		if n == 0 {
			return m.parseTrailers(in)
		}
		if int64(len(in)) < n+2 {
			return nil, errIncomplete
		}
		if string(in[n:n+2]) != "\r\n" {
			return nil, fmt.Errorf("the end of a chunk, %q", in[n:n+2])
		}
		m.body += string(in[:n])
		in = in[n+2:]
	}
}

func (m *message) parseTrailers(in []byte) ([]byte, error) {
	for {
		line, rest, err := cutLine(in)
		if err != nil || line == "" {
			return rest, err
		}
		field := fieldLine.FindStringSubmatch(line)
		if field == nil {
			return nil, fmt.Errorf("the trailer %q", line)
		}
		m.trailers = append(m.trailers, strings.ToLower(field[1])+": "+field[2])
		in = rest
	}
}

// cutLine gives the first line, which has to end with CRLF and have no CR or LF within.
func cutLine(in []byte) (line string, rest []byte, err error) {
	at := bytes.IndexByte(in, '\n')
	if at < 0 {
		return "", nil, errIncomplete
	}
	if at == 0 || in[at-1] != '\r' {
		return "", nil, fmt.Errorf("a bare LF after %q", in[:at])
	}
	if bytes.IndexByte(in[:at-1], '\r') >= 0 {
		return "", nil, fmt.Errorf("a bare CR in %q", in[:at])
	}
	return string(in[:at-1]), in[at+1:], nil
}

// defaultHost is the host of requests whose canonical form names none.
const defaultHost = "a.test"

// String is the canonical form of a request, as tables of forms have it: method, target, host unless it is the default, fields,
// body and trailers, each only if it is there.
func (m *message) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", m.method, m.target)
	if m.host != defaultHost {
		fmt.Fprintf(&b, " host=%q", m.host)
	}
	for _, f := range m.fields {
		fmt.Fprintf(&b, " [%s]", f)
	}
	if m.body != "" {
		body := m.body
		if len(body) > 200 {
			body = fmt.Sprintf("%d bytes", len(body))
		}
		fmt.Fprintf(&b, " %q", body)
	}
	for _, f := range m.trailers {
		fmt.Fprintf(&b, " trailer=[%s]", f)
	}
	return b.String()
}
