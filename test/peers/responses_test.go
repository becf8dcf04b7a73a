package peers_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/patience"
)

// badTarget is the target of the request that an endpoint answers as a form has it.
const badTarget = "/bad"

// misbehaving is a proxy in front of an endpoint that answers as a form says.
type misbehaving struct {
	*pair
	b *backend

	mu   sync.Mutex
	form *form
	conn net.Conn // that the answer of the form went over
}

func newMisbehaving(t *testing.T, ip string, start starter) *misbehaving {
	t.Helper()
	m := &misbehaving{}
	m.b = startBackend(t, ip, &backend{strict: true, scripted: m.script})
	m.pair = &pair{backends: map[string]*backend{"bad": m.b}}
	m.proxy = start(t, ip, []route{{name: "bad", endpoint: m.b.address}})
	return m
}

// script answers the form's request, and adds what a form has an endpoint send early to the answer of another one.
func (m *misbehaving) script(c net.Conn, r *message) (handled bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	early, first := m.form.text("early"), strings.HasPrefix(r.target, "/first-")
	switch {
	case first && early != "":
		_, _ = io.WriteString(c, answer(r.method, r.target)+early)
	case r.target == badTarget && early == "":
		m.conn = c
		_, _ = io.WriteString(c, m.form.bytes)
		if m.form.has("hangup") {
			_ = c.Close()
		}
	default:
		return false
	}
	return true
}

func (f *form) has(word string) bool { return len(f.lines[word]) > 0 }

// text gives the text of a line of the form, or nothing.
func (f *form) text(word string) string {
	if !f.has(word) {
		return ""
	}
	return f.lines[word][0]
}

// badResult is what came of a form.
type badResult struct {
	raw, got string
	next     []string
}

// run asks for the bad answer, once a connection to the endpoint is kept, and has two other clients ask after that.
func (m *misbehaving) run(t *testing.T, f *form) *badResult {
	t.Helper()
	m.b.reset(t)
	m.mu.Lock()
	m.form = f
	m.mu.Unlock()
	m.turn++
	address := m.address["bad"]
	patience.Until(t, "a connection is kept", func() bool {
		target := fmt.Sprintf("/first-%d", m.turn)
		return fetch(t, address, target) == "200 GET "+target
	})
	method, version := f.text("request"), f.text("version")
	if method == "" {
		method = http.MethodGet
	}
	if version == "" {
		version = "1.1"
	}
	head := fmt.Sprintf("%s %s HTTP/%s\r\nHost: %s\r\nConnection: close\r\n\r\n", method, badTarget, version, defaultHost)
	r := &badResult{}
	got := exchange(t, address, head, []string{method})
	r.raw, r.got = got.raw, outcome(got, method)
	if late := f.text("late"); late != "" {
		m.sendLate(late)
	}
	for i := range 2 {
		target := fmt.Sprintf("/next-%d-%d", m.turn, i)
		if got := fetch(t, address, target); got != "200 GET "+target {
			r.next = append(r.next, got)
		}
	}
	fmt.Fprintf(&m.log, "%s, %s\n  client: %q\n  next: %q\n", f.name, m.name, r.raw, r.next)
	return r
}

// sendLate sends bytes on the connection of the answer while no request waits there, and gives the proxy the time to close it.
func (m *misbehaving) sendLate(text string) {
	m.mu.Lock()
	c := m.conn
	m.mu.Unlock()
	_, _ = io.WriteString(c, text)
	for range 200 { // two seconds at most, for a proxy that does not close it
		m.b.mu.Lock()
		open := m.b.open[c]
		m.b.mu.Unlock()
		if !open {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// outcome names what a client got: the status, and the body of an answer of the endpoint, or cut where that did not end.
func outcome(got *transcript, method string) string {
	raw := got.raw
	if raw == "" {
		return "cut"
	}
	r := bufio.NewReader(strings.NewReader(raw))
	for {
		resp, err := http.ReadResponse(r, &http.Request{Method: method})
		if err != nil {
			return "no HTTP"
		}
		if resp.StatusCode < 200 && resp.StatusCode != http.StatusSwitchingProtocols {
			continue // an interim answer, which has no body
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		switch rest, _ := io.ReadAll(r); {
		case err != nil, got.reset && !boundedBody(raw) && method != http.MethodHead:
			return fmt.Sprint(resp.StatusCode, " cut")
		case len(rest) > 0:
			return fmt.Sprintf("%d %q and then %q", resp.StatusCode, text, rest)
		case resp.StatusCode >= 500 && resp.StatusCode < 600:
			return fmt.Sprint(resp.StatusCode)
		case method != http.MethodHead && !boundedBody(raw):
			return fmt.Sprintf("%d %q until the end", resp.StatusCode, text)
		default:
			return fmt.Sprintf("%d %q", resp.StatusCode, text)
		}
	}
}

// boundedBody reports whether the head of an answer says where its body ends, which the end of the connection does not.
func boundedBody(raw string) bool {
	head, _, _ := strings.Cut(strings.ToLower(raw), "\r\n\r\n")
	return strings.Contains(head, "\r\ncontent-length:") || strings.Contains(head, "\r\ntransfer-encoding:") ||
		strings.HasPrefix(head, "http/1.1 204") || strings.HasPrefix(head, "http/1.1 304") || strings.HasPrefix(head, "http/1.1 1")
}

func (r *badResult) faults(f *form) (list []string) {
	if want := append([]string{f.want}, f.lines["or"]...); !slices.Contains(want, r.got) && (f.or == "" || r.got != f.or) {
		list = append(list, fmt.Sprintf("the client got %s, want %s", r.got, f.want))
	}
	if len(r.next) > 0 {
		list = append(list, fmt.Sprintf("the next clients got %q", r.next))
	}
	return list
}

func (r *badResult) cell() string {
	if len(r.next) > 0 {
		return r.got + ", **next client: " + clip(strings.Join(r.next, ", ")) + "**"
	}
	return r.got
}

const responsesHead = `# Bad responses: weir beside HAProxy and Envoy

Made by ` + "`make smuggling`" + ` from test/peers/testdata/responses.txt, which has the bytes of each form. An endpoint sends each answer on a
kept connection: what its client got, *cut* for a body without an end, and in bold a next client that did not get its own answer.

| form | expected | weir | HAProxy | Envoy |
|---|---|---|---|---|
`

func TestResponsesReachTheirOwnClientsOnly(t *testing.T) {
	allowed := readNames(t, "expected-failures.txt")
	m := newMisbehaving(t, "127.78.2.1", startWeir)
	others := []*misbehaving{}
	if *table {
		others = append(others, newMisbehaving(t, "127.78.2.2", startHAProxy), newMisbehaving(t, "127.78.2.3", startEnvoy))
	}
	var page strings.Builder
	page.WriteString(responsesHead)
	for _, f := range readForms(t, "responses.txt") {
		for _, word := range []string{"early", "late"} {
			if f.has(word) {
				f.lines[word][0] = unescape(t, f.lines[word][0])
			}
		}
		t.Run(f.name, func(t *testing.T) {
			got := m.run(t, f)
			checkAgainst(t, allowed, f.name, got.faults(f))
			expected := f.want
			if f.or != "" {
				expected += ", or " + f.or
			}
			fmt.Fprintf(&page, "| %s<br>%s | %s | %s |", f.name, clip(f.about), expected, got.cell())
			for _, other := range others {
				fmt.Fprintf(&page, " %s |", other.run(t, f).cell())
			}
			page.WriteString("\n")
		})
	}
	pairs := []*pair{m.pair}
	for _, other := range others {
		pairs = append(pairs, other.pair)
	}
	finish(t, "../../docs/bad-responses.md", page.String(), pairs)
}
