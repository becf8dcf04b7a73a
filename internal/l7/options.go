package l7

import (
	"log/slog"
	"net/netip"
	"time"
)

// Options configure a Server. Only Upstreams is required; every other zero value is the documented default.
type Options struct {
	Protocol   Protocol
	Upstreams  *Upstreams           // until Follow brings others
	Clock      func() time.Duration // monotonic, of the same origin as the pools'; nil: since Listen
	Limits     Limits
	Timeouts   Timeouts
	Retry      Retry
	Forwarding Forwarding
	Logger     *slog.Logger // nil: silence
	// TrustedFilters are the clients, such as a gateway or a sidecar, whose FilterStateField is believed. None by default.
	TrustedFilters []netip.Prefix
}

// Limits bound what clients may make the proxy hold. 0 is the default, a negative number no limit.
type Limits struct {
	Connections int // open client connections; more are answered 503 and closed
	Pending     int // requests without a response head; more are answered 503
	Head        int // bytes of a request's head; more are answered 431
	Target      int // bytes of a request line; more are answered 414
	Fields      int // header fields of a request; more are answered 431
	Streams     int // concurrent HTTP/2 streams of one connection; a client waits for more
}

// Timeouts bound how long the proxy waits. 0 is the default, a negative duration no limit.
type Timeouts struct {
	Detect       time.Duration // for the first bytes of a client, where the protocol is detected
	Head         time.Duration // for a request's whole head; then 408
	Body         time.Duration // for the next bytes of an HTTP/1 request's body (408), or to be rid of bytes for a client
	Idle         time.Duration // for the next request on a kept client connection
	Connect      time.Duration // for a connection to an endpoint
	Response     time.Duration // for the response's head, once the request is sent; then 504. Not for gRPC
	Request      time.Duration // for the whole request until the response's end; 504 if its head was not sent yet
	EndpointIdle time.Duration // for the next request on a kept connection to an endpoint
}

// Forwarding says what endpoints are told about the client.
type Forwarding struct {
	Untrusted bool   // clients' own X-Forwarded-* and Forwarded are replaced, not added to
	Forwarded bool   // Forwarded (RFC 7239) is sent always; else only where the client sent it
	Via       string // pseudonym for a Via field in both directions; empty: none
}

const (
	// defaultConnections is a third of the 65,536 ports that one client address has towards one service: more than any
	// node was seen to need, and at about 20 KiB each less than half a GiB.
	defaultConnections = 20_000
	// defaultPending is four times Envoy's 1,024 per cluster: one proxy serves a whole node here.
	defaultPending = 4_096
	// defaultHead is what Envoy takes (60 KiB), rounded up; large cookies and tokens fit.
	defaultHead = 64 << 10
	// defaultTarget is twice what nginx and Apache take (8 KiB): their services must keep working.
	defaultTarget = 16 << 10
	// defaultFields is a little above Envoy's and HAProxy's 100; parsing is linear, so the bound is generous.
	defaultFields = 128
	// defaultStreams is net/http's own.
	defaultStreams = 250

	// defaultDetect lets one lost packet be sent again (Linux waits at least 200 ms) and stays below what a person
	// notices when a server speaks first, as with MySQL or SMTP.
	defaultDetect = 250 * time.Millisecond
	// defaultHeadTime is ample for 64 KiB over a bad link and short for a client that drips bytes to hold connections.
	defaultHeadTime = 10 * time.Second
	// defaultBody is nginx's client_body_timeout and send_timeout.
	defaultBody = time.Minute
	// defaultIdle is longer than clients keep connections (Go 90 s, browsers 115 s to 300 s), so that mostly clients
	// close, as they know that no request is on its way.
	defaultIdle = 5 * time.Minute
	// defaultConnect: a SYN that got lost is sent again after 1 s; another endpoint answers sooner than that.
	defaultConnect = time.Second
	// defaultResponse is nginx's proxy_read_timeout; long polls stay below a minute for its sake.
	defaultResponse = time.Minute
	// defaultEndpointIdle is below what most servers keep (nginx 75 s, Apache and many others 60 s or more); those that
	// keep less are covered by the retry of requests that were never read.
	defaultEndpointIdle = 30 * time.Second
)

func (l Limits) withDefaults() Limits {
	l.Connections = orDefault(l.Connections, defaultConnections)
	l.Pending = orDefault(l.Pending, defaultPending)
	l.Head = orDefault(l.Head, defaultHead)
	l.Target = orDefault(l.Target, defaultTarget)
	l.Fields = orDefault(l.Fields, defaultFields)
	l.Streams = orDefault(l.Streams, defaultStreams)
	return l
}

// withDefaults leaves Request at none: a service worked without the proxy and may rightly stream for hours.
func (t Timeouts) withDefaults() Timeouts {
	t.Detect = orDefault(t.Detect, defaultDetect)
	t.Head = orDefault(t.Head, defaultHeadTime)
	t.Body = orDefault(t.Body, defaultBody)
	t.Idle = orDefault(t.Idle, defaultIdle)
	t.Connect = orDefault(t.Connect, defaultConnect)
	t.Response = orDefault(t.Response, defaultResponse)
	t.EndpointIdle = orDefault(t.EndpointIdle, defaultEndpointIdle)
	return t
}

// orDefault replaces 0 by the default and leaves every other number, negative ones meaning none.
func orDefault[T int | time.Duration](value, standard T) T {
	if value == 0 {
		return standard
	}
	return value
}

func (o Options) withDefaults() Options {
	o.Limits = o.Limits.withDefaults()
	o.Timeouts = o.Timeouts.withDefaults()
	o.Retry = o.Retry.withDefaults()
	if o.Clock == nil {
		start := time.Now()
		o.Clock = func() time.Duration { return time.Since(start) }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// over tells whether n is above a limit, where there is one.
func over(n, limit int) bool { return limit > 0 && n > limit }
