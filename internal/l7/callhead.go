package l7

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/weir-lb/weir/internal/h1"
	"github.com/weir-lb/weir/internal/h2"
)

// open begins a stream for a call, if the link takes one more, and sends the request's head. The caller holds the call's lock.
func (l *link) open(x *call, b *batch) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended || l.leaving != staying || uint32(len(l.calls)) >= l.peer.Streams || l.next > h2.MaxStream-2 || l.pendingLocked() >= backlog { //nolint:gosec // few
		return false
	}
	if !l.settled && len(l.calls) >= streamsAssumed {
		return false
	}
	id := l.next
	l.next += 2
	l.calls[id] = x
	l.eager.Store(true)
	x.opened(l, id, l.peer.Window)
	x.headAt = l.appended
	l.requestLocked(x)
	var flags h2.Flags
	if x.far.last && x.far.queue.len() == 0 && len(x.far.trailer) == 0 {
		flags, x.far.ended = h2.EndStream, true
	}
	l.blockLocked(id, flags, b)
	return true
}

// requestLocked encodes what the endpoint hears.
func (l *link) requestLocked(x *call) {
	var e fieldSink = l.encoder
	if x.asked.version != http2Version {
		e = copier{l.encoder}
	}
	e.Add(":method", x.asked.method)
	e.Add(":scheme", "http")
	e.Add(":authority", x.asked.authority)
	e.Add(":path", x.asked.target)
	x.requestFields(e)
}

// fieldSink is what writes fields for one version of HTTP.
type fieldSink interface {
	Add(name, value string)
	AddField(f h2.Field)
}

// copier encodes fields whose strings are views of a buffer: the compression remembers them.
type copier struct{ *h2.Encoder }

// Add adds a copy.
func (c copier) Add(name, value string) { c.AddField(h2.Field{Name: name, Value: value}) }

// AddField adds a copy.
func (c copier) AddField(f h2.Field) {
	f.Name, f.Value = strings.Clone(f.Name), strings.Clone(f.Value)
	c.Encoder.AddField(f)
}

// requestFields gives the fields that the endpoint hears.
func (x *call) requestFields(e fieldSink) {
	forwarding := &x.streams.options.Forwarding
	var add forwarded
	for i := range x.asked.fields.list {
		f := &x.asked.fields.list[i]
		if isDropped(f.Name) || !add.passes(f, forwarding) {
			continue
		}
		if f.Name == "trailer" && h1.HasToken(f.Value, filterStateLower) {
			if rest := withoutToken(f.Value, filterStateLower); rest != "" {
				e.Add(f.Name, rest)
			}
			continue
		}
		e.AddField(*f)
	}
	add.finish(e, x)
}

// withoutToken takes a token out of a comma-separated list.
func withoutToken(list, token string) string {
	var rest string
	for part := range strings.SplitSeq(list, ",") {
		if part = strings.Trim(part, " \t"); part != "" && !strings.EqualFold(part, token) {
			rest = joinText(rest, part)
		}
	}
	return rest
}

// isDropped tells whether a field of HTTP/2 concerns one connection, or weir, only. Those of HTTP/1's connections are malformed.
func isDropped(name string) bool {
	switch name {
	case "proxy-authenticate", "proxy-authorization", "http2-settings", filterStateLower:
		return true
	default:
		return false
	}
}

// forwarded are the fields of a request that say what was before this proxy.
type forwarded struct {
	addresses, elements, via string // of the lists, as they came
	proto, host              bool
}

// passes tells whether a field goes on as it is; it takes note of those that are added to.
func (f *forwarded) passes(field *h2.Field, o *Forwarding) bool {
	switch field.Name {
	case "x-forwarded-for":
		f.addresses = join(f.addresses, field.Value, o)
		return false
	case "forwarded":
		f.elements = join(f.elements, field.Value, o)
		return false
	case "x-forwarded-proto":
		f.proto = !o.Untrusted
		return f.proto
	case "x-forwarded-host":
		f.host = !o.Untrusted
		return f.host
	case "x-forwarded-port":
		return !o.Untrusted
	case "via":
		if o.Via == "" {
			return true
		}
		f.via = joinText(f.via, field.Value)
		return false
	default:
		return true
	}
}

// join adds a value to a list of a client's, if it is believed.
func join(list, value string, o *Forwarding) string {
	if o.Untrusted {
		return ""
	}
	return joinText(list, value)
}

func joinText(list, value string) string {
	if list == "" {
		return value
	}
	return list + ", " + value
}

// finish adds what the client would have told without a proxy between.
func (f *forwarded) finish(e fieldSink, x *call) {
	o := &x.streams.options.Forwarding
	if x.client.remote.IsValid() {
		e.Add("x-forwarded-for", joinText(f.addresses, x.client.address))
		if !f.proto {
			e.Add("x-forwarded-proto", "http")
		}
		if !f.host && x.asked.authority != "" {
			e.Add("x-forwarded-host", x.asked.authority)
		}
		if o.Forwarded || f.elements != "" {
			e.Add("forwarded", joinText(f.elements, forwardedElement(x.client.remote.Addr(), x.asked.authority)))
		}
	}
	if o.Via != "" {
		e.Add("via", joinText(f.via, strings.TrimPrefix(x.asked.version, "HTTP/")+" "+o.Via))
	}
}

// head encodes a response's head.
func (l *link) head(x *call, b *batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	var e fieldSink = l.encoder
	if x.endpointsVersion() != http2Version {
		e = copier{l.encoder}
	}
	e.Add(":status", statusOf(x.heard.Status))
	x.responseFields(e)
	var flags h2.Flags
	if x.near.ended {
		flags = h2.EndStream
	}
	l.blockLocked(x.near.id, flags, b)
}

// statusOf gives a status as text, without garbage where it is a usual one.
func statusOf(status int) string {
	switch status {
	case http.StatusOK:
		return "200"
	case http.StatusNoContent:
		return "204"
	case http.StatusFound:
		return "302"
	case http.StatusNotModified:
		return "304"
	case http.StatusNotFound:
		return "404"
	default:
		return strconv.Itoa(status)
	}
}

// responseFields gives the fields of a response that the client hears.
func (x *call) responseFields(e fieldSink) {
	h := &x.heard
	name := x.streams.options.Forwarding.Via
	var via string
	for i := range h.Fields {
		f := &h.Fields[i]
		switch {
		case isDropped(f.Name) || f.Name == "te":
		case f.Name == "via" && name != "" && h.Status >= http.StatusOK:
			via = joinText(via, f.Value)
		default:
			e.AddField(*f)
		}
	}
	if h.Status < http.StatusOK && h.Status != http.StatusSwitchingProtocols {
		return
	}
	for _, set := range x.key.cookies {
		e.AddField(h2.Field{Name: "set-cookie", Value: set, Sensitive: true})
	}
	if name != "" && x.done.Reason == "" {
		e.Add("via", joinText(via, strings.TrimPrefix(x.endpointsVersion(), "HTTP/")+" "+name))
	}
}
