package peers_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weir-lb/weir/internal/patience"
)

var (
	table  = flag.Bool("table", false, "run HAProxy and Envoy, too, and rewrite the tables in docs")
	record = flag.String("record", "", "file to write what each endpoint and client received to, byte for byte")
)

// kinds are the endpoints that each form of a request is sent to.
var kinds = []string{"strict", "sloppy"}

// pair is a proxy in front of a strict and a sloppy endpoint.
type pair struct {
	*proxy
	backends map[string]*backend
	turn     int // makes the requests of other clients different
	log      strings.Builder
}

func newPair(t *testing.T, ip string, start starter) *pair {
	t.Helper()
	p := &pair{backends: map[string]*backend{}}
	var routes []route
	for _, kind := range kinds {
		p.backends[kind] = startBackend(t, ip, &backend{strict: kind == "strict"})
		routes = append(routes, route{name: kind, endpoint: p.backends[kind].address})
	}
	p.proxy = start(t, ip, routes)
	return p
}

// result is what came of a form.
type result struct {
	*transcript
	received []string // complete requests, in the canonical form
	broken   []string // what an endpoint that follows RFC 9112 cannot read, or waits for the rest of in vain
	next     []string // what the clients after that got who did not get their own answer
	at       []string // what the endpoint received, byte for byte, by connection
}

// run sends a form through the proxy: after a request of another client, so that a connection to the endpoint is kept, and
// before two requests of others.
func (p *pair) run(t *testing.T, f *form, kind string) *result {
	t.Helper()
	address, b := p.address[kind], p.backends[kind]
	b.reset(t)
	p.turn++
	patience.Until(t, "a connection is kept", func() bool {
		target := fmt.Sprintf("/first-%d", p.turn)
		return fetch(t, address, target) == "200 GET "+target
	})
	r := &result{}
	if f.h2 {
		r.transcript = exchangeH2(t, address, f)
	} else if f.eof {
		r.transcript = exchange(t, address, f.bytes+endOfFile, f.methods())
	} else {
		r.transcript = exchange(t, address, f.bytes+last, f.methods())
	}
	for i := range 2 {
		target := fmt.Sprintf("/next-%d-%d", p.turn, i)
		if got := fetch(t, address, target); got != "200 GET "+target {
			r.next = append(r.next, got)
		}
	}
	r.read(b.received())
	fmt.Fprintf(&p.log, "%s, %s, %s endpoint\n  client: %q\n  next: %q\n", f.name, p.name, kind, r.raw, r.next)
	for _, raw := range r.at {
		fmt.Fprintf(&p.log, "  endpoint: %q\n", raw)
	}
	return r
}

// read reads what the connections of an endpoint received, and leaves out the requests of other clients.
func (r *result) read(connections []string) {
	r.at = connections
	for _, raw := range connections {
		for rest := []byte(raw); len(rest) > 0; {
			m, after, err := parseRequest(rest)
			if err != nil {
				if errors.Is(err, errIncomplete) {
					err = fmt.Errorf("incomplete: %.60q", rest)
				}
				r.broken = append(r.broken, err.Error())
				break
			}
			if !strings.HasPrefix(m.target, "/first-") && !strings.HasPrefix(m.target, "/next-") {
				r.received = append(r.received, m.String())
			}
			rest = after
		}
	}
}

const lastReceived = "GET /last"

// wanted gives the answers that a form wants.
func (f *form) wanted() (list []string) {
	for _, request := range f.forwards {
		words := strings.Fields(request)
		list = append(list, fmt.Sprintf("200 %s %s", words[0], words[1]))
	}
	if f.want != "" {
		return append(list, f.want)
	}
	if !f.eof && !f.closes {
		list = append(list, "200 GET /last")
	}
	return list
}

// faults compares what came of a form with the table. An endpoint may have received the start of a request that was refused, if it
// got no end.
func (r *result) faults(f *form) (list []string) {
	if f.or != "" {
		other := *f
		other.forwards, other.want, other.or = nil, f.or, ""
		if len(r.faults(&other)) == 0 {
			return nil
		}
	}
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	want, got := f.wanted(), r.answers
	received := slices.DeleteFunc(slices.Clone(r.received), func(s string) bool { return s == lastReceived })
	switch {
	case f.want == "refused" && len(got) > 0 && refusal(got[0]):
	case f.want == "cut" && !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "200") }):
	case f.want != "" && f.h2 && len(got) > 0 && got[0] == f.want:
	case !slices.Equal(got, want):
		add("the client got %q, want %q", got, want)
	}
	if r.open {
		add("the connection is left open")
	}
	if !slices.Equal(received, f.forwards) {
		add("the endpoint received %q, want %q", received, f.forwards)
	}
	if f.want == "" && len(r.broken) > 0 || slices.ContainsFunc(r.broken, func(s string) bool { return !strings.HasPrefix(s, "incomplete") }) {
		add("the endpoint cannot read: %q", r.broken)
	}
	if len(r.next) > 0 {
		add("the next clients got %q", r.next)
	}
	return list
}

// refusal reports whether an answer refuses a request of HTTP/2: RFC 9113 section 8.1.1 wants a stream error, before which an answer may be sent.
func refusal(answer string) bool {
	return answer == "400" || answer == "reset PROTOCOL_ERROR" || answer == "goaway PROTOCOL_ERROR"
}

// cell says in a few words what a proxy made of a form.
func (r *result) cell(f *form) string {
	var parts []string
	received := slices.DeleteFunc(slices.Clone(r.received), func(s string) bool { return s == lastReceived })
	for _, s := range received {
		if slices.Contains(f.forwards, s) {
			s = "forwarded"
		} else {
			s = "`" + clip(s) + "`"
		}
		parts = append(parts, s)
	}
	for _, a := range r.answers {
		if !strings.HasPrefix(a, "200 ") {
			parts = append(parts, a)
		}
	}
	if len(parts) == 0 && !slices.ContainsFunc(r.broken, func(s string) bool { return !strings.HasPrefix(s, "incomplete") }) {
		parts = append(parts, "closed")
	}
	if r.open {
		parts = append(parts, "waits")
	}
	for _, s := range r.broken {
		if !strings.HasPrefix(s, "incomplete") {
			parts = append(parts, "**malformed**")
		} else if len(r.next) > 0 {
			parts = append(parts, "**incomplete**")
		}
	}
	if len(r.next) > 0 {
		parts = append(parts, "**next client: "+clip(strings.Join(r.next, ", "))+"**")
	}
	return strings.Join(parts, ", ")
}

// ownAddress is an address of a run, which a page has no use for.
var ownAddress = regexp.MustCompile(`127\.78\.[0-9.]+:[0-9]+`)

// clip shortens text for a cell.
func clip(s string) string {
	s = ownAddress.ReplaceAllString(s, "the endpoint")
	s = strings.ReplaceAll(s, "|", "¦")
	if len(s) > 90 {
		s = s[:90] + "…"
	}
	return s
}

// row is the cell of a proxy, with what differs with a sloppy endpoint.
func row(f *form, results []*result) string {
	strict, sloppy := results[0].cell(f), results[1].cell(f)
	if strict == sloppy {
		return strict
	}
	return strict + "; sloppy endpoint: " + sloppy
}

// tables are the tables of forms of requests.
var tables = []string{"requests.txt", "requests-h2.txt"}

func TestRequestsHaveOneReading(t *testing.T) {
	allowed := readNames(t, "expected-failures.txt")
	p := newPair(t, "127.78.1.1", startWeir)
	others := comparison(t, 1)
	var page strings.Builder
	page.WriteString(pageHead)
	count := 0
	for _, name := range tables {
		fmt.Fprintf(&page, "\n## %s\n\n| form | expected | weir | HAProxy | Envoy |\n|---|---|---|---|---|\n", title(name))
		for _, f := range readForms(t, name) {
			count++
			t.Run(f.name, func(t *testing.T) {
				results := []*result{p.run(t, f, kinds[0]), p.run(t, f, kinds[1])}
				checkAgainst(t, allowed, f.name, append(results[0].faults(f), results[1].faults(f)...))
				fmt.Fprintf(&page, "| %s<br>%s | %s | %s |", f.name, clip(f.about), expectation(f), row(f, results))
				for _, other := range others {
					fmt.Fprintf(&page, " %s |", row(f, []*result{other.run(t, f, kinds[0]), other.run(t, f, kinds[1])}))
				}
				page.WriteString("\n")
			})
		}
	}
	if count < 150 {
		t.Errorf("%d forms, want at least 150", count)
	}
	finish(t, "../../docs/smuggling.md", page.String(), append(others, p))
}

func title(table string) string {
	switch table {
	case "requests-h2.txt":
		return "Requests in HTTP/2 to an endpoint with HTTP/1.1"
	case "responses.txt":
		return "Responses"
	default:
		return "Requests in HTTP/1"
	}
}

func expectation(f *form) string {
	switch {
	case f.or != "":
		plain := *f
		plain.or = ""
		return expectation(&plain) + ", or " + f.or
	case f.want == "":
		return "forwarded"
	case len(f.forwards) > 0:
		return "forwarded, " + f.want
	default:
		return f.want
	}
}

const pageHead = `# Request smuggling: weir beside HAProxy and Envoy

Made by ` + "`make smuggling`" + ` from the tables in test/peers/testdata, which have the bytes of each form. Each form is sent through
each proxy to two endpoints: one reads RFC 9112 to the letter, one answers every line that looks like a request's. *forwarded*: the
endpoint received exactly the requests that the table expects, once. A status: the client got it and the endpoint received no complete
request. In bold is what can be exploited: bytes that an endpoint cannot read, or a next client that does not get its own
answer. HAProxy and Envoy run with default settings; a form that they forward in another manner is shown as received.
`

// comparison starts the proxies to compare with, if the tables are made.
func comparison(t *testing.T, number int) (list []*pair) {
	t.Helper()
	if *table {
		list = append(list, newPair(t, fmt.Sprintf("127.78.%d.2", number), startHAProxy), newPair(t, fmt.Sprintf("127.78.%d.3", number), startEnvoy))
	}
	return list
}

// checkAgainst fails the test for faults unless the form is expected to fail, and for a form that no longer does.
func checkAgainst(t *testing.T, allowed map[string]string, name string, faults []string) {
	t.Helper()
	reason, expected := allowed[name]
	switch {
	case expected && len(faults) == 0 && !strings.HasPrefix(reason, "sometimes "):
		t.Errorf("the form no longer fails: take it off the list of expected failures")
	case expected:
		t.Logf("fails as expected: %s: %s", reason, strings.Join(faults, "; "))
	default:
		for _, f := range faults {
			t.Error(f)
		}
	}
}

// finish writes the page if it is to be made, and the records.
func finish(t *testing.T, path, page string, pairs []*pair) {
	t.Helper()
	if *table {
		if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if *record != "" {
		var all strings.Builder
		for _, p := range pairs {
			all.WriteString(p.log.String())
		}
		if err := os.WriteFile(*record, []byte(all.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
