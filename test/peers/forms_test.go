package peers_test

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// form is one entry of a table of forms: what a client or an endpoint sends, and what has to come of it. A table is a text
// file of lines:
//
//	form NAME        begins a form in HTTP/1, of requests or of responses
//	h2 NAME          begins a form in HTTP/2
//	# TEXT           the section of the RFC, and what it says
//	| TEXT           a line that is sent, with CRLF at its end
//	|- TEXT          a line that is sent without an end
//	base METHOD PATH HTTP/2: the four pseudo fields
//	. NAME = VALUE   HTTP/2: a field
//	data TEXT        HTTP/2: a DATA frame
//	trailer NAME = VALUE HTTP/2: a field after the data
//	-> REQUEST       what the endpoint has to receive, in the canonical form of message
//	want OUTCOME     what the client gets at last: a status, or refused (HTTP/2: 400 or a reset of the stream), or cut
//	or OUTCOME       what the client may get in place of that, if the endpoint receives nothing
//	closes           the proxy closes the connection after the last answer, and does not read the request that follows
//	eof              the client ends its side of the connection instead of sending another request
//
// In tables of responses the lines that are sent are the endpoint's, want is the status and the body in quotes, or "cut" for a body that does not
// end, and there are other lines:
//
//	request METHOD   the client's request has this method, not GET
//	version 1.0      the client speaks HTTP/1.0
//	early TEXT       the endpoint sends this after its answer to another client's request
//	late TEXT        the endpoint sends this once the client has its answer
//	hangup           the endpoint closes the connection after what it sent
//
// In what is sent \r, \n, \t and \xNN are bytes, and {{TEXT*N}} is TEXT N times. Without want, everything is forwarded.
type form struct {
	name, about string
	h2          bool
	bytes       string
	fields      []field // HTTP/2
	data        []string
	trailers    []field
	forwards    []string
	want        string
	or          string
	closes, eof bool
	lines       map[string][]string // other lines, by their first word
}

type field struct{ name, value string }

var repeated = regexp.MustCompile(`(?s)\{\{(.*?)\*(\d+)\}\}`)

// unescape gives the bytes that a table's text stands for.
func unescape(t *testing.T, text string) string {
	t.Helper()
	plain, err := strconv.Unquote(`"` + strings.ReplaceAll(text, `"`, `\"`) + `"`)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return repeated.ReplaceAllStringFunc(plain, func(macro string) string {
		parts := repeated.FindStringSubmatch(macro)
		n, err := strconv.Atoi(parts[2])
		if err != nil {
			t.Fatal(err)
		}
		return strings.Repeat(parts[1], n)
	})
}

// readForms reads a table in testdata.
func readForms(t *testing.T, name string) (forms []*form) {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		word, rest, _ := strings.Cut(line, " ")
		if word == "form" || word == "h2" {
			if names[rest] {
				t.Errorf("%s: two forms %s", name, rest)
			}
			names[rest] = true
			forms = append(forms, &form{name: rest, h2: word == "h2", lines: map[string][]string{}})
		} else if word != "" && len(forms) > 0 {
			forms[len(forms)-1].read(t, word, rest)
		}
	}
	return forms
}

func (f *form) read(t *testing.T, word, rest string) {
	t.Helper()
	switch word {
	case "#":
		f.about = strings.TrimSpace(f.about + " " + rest)
	case "|":
		f.bytes += unescape(t, rest) + "\r\n"
	case "|-":
		f.bytes += unescape(t, rest)
	case "base":
		method, path, _ := strings.Cut(rest, " ")
		f.fields = append(f.fields, field{":method", method}, field{":scheme", "http"}, field{":authority", defaultHost}, field{":path", path})
	case ".", "trailer":
		name, value, found := strings.Cut(rest, " =")
		if !found {
			t.Fatalf("%s: no field in %q", f.name, rest)
		}
		one := field{unescape(t, name), unescape(t, strings.TrimPrefix(value, " "))}
		if word == "." {
			f.fields = append(f.fields, one)
		} else {
			f.trailers = append(f.trailers, one)
		}
	case "data":
		f.data = append(f.data, unescape(t, rest))
	case "->":
		f.forwards = append(f.forwards, rest)
	case "want":
		f.want = rest
	case "or":
		f.or = rest
	case "closes":
		f.closes = true
	case "eof":
		f.eof = true
	default:
		f.lines[word] = append(f.lines[word], rest)
	}
}

// readNames reads a list of names with reasons in testdata: lines of the form "name: reason".
func readNames(t *testing.T, name string) map[string]string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if one, reason, found := strings.Cut(strings.TrimSpace(line), ": "); found && !strings.HasPrefix(line, "#") {
			names[one] = reason
		}
	}
	return names
}
