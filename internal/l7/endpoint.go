package l7

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// endpoint is one endpoint's kept connections. It lives until keep forgets it; requests that use it then may finish.
type endpoint struct {
	addr  string
	http1 *http.Transport
	http2 *http.Transport
	users atomic.Int64
	gone  atomic.Bool // no request may begin; the last user closes what is kept
}

// endpoints hands out endpoints by address. It is safe for concurrent use.
type endpoints struct {
	timeouts Timeouts
	dialer   net.Dialer

	known sync.Map // netip.AddrPort → *endpoint
}

const (
	// keptPerEndpoint lets a pool of kept connections grow to the load; what the load does not use any more is closed
	// after EndpointIdle.
	keptPerEndpoint = 4_096
	// maxResponseHead bounds what an endpoint may make the proxy hold: four times what a client may.
	maxResponseHead = 4 * defaultHead
	// continueWait is how long a body is held back for an endpoint's 100 Continue: old servers never send it, and RFC
	// 9110 section 10.1.1 tells clients not to wait for ever.
	continueWait = time.Second
	// pingAfter is how long an HTTP/2 connection may be silent before it is asked whether it lives: one that lost its
	// peer without a word would take every new request with it.
	pingAfter = 10 * time.Second
	// pingWait is how long the answer may take.
	pingWait = 5 * time.Second
)

func newEndpoints(t Timeouts) *endpoints {
	return &endpoints{timeouts: t, dialer: net.Dialer{Timeout: max(t.Connect, 0)}}
}

// use finds the endpoint and holds it; done lets it go.
func (e *endpoints) use(addr netip.AddrPort) *endpoint {
	for {
		found, ok := e.known.Load(addr)
		if !ok {
			found, _ = e.known.LoadOrStore(addr, e.make(addr))
		}
		ep, _ := found.(*endpoint)
		ep.users.Add(1)
		if !ep.gone.Load() {
			return ep
		}
		// It was removed in between and is back: a new one replaces it.
		ep.done()
		e.known.CompareAndDelete(addr, ep)
	}
}

func (e *endpoint) done() {
	if e.users.Add(-1) == 0 && e.gone.Load() {
		e.closeIdle()
	}
}

func (e *endpoint) closeIdle() {
	e.http1.CloseIdleConnections()
	e.http2.CloseIdleConnections()
}

// keep forgets every endpoint that is not wanted and closes its idle connections, now or when its last request ends.
func (e *endpoints) keep(wanted func(netip.AddrPort) bool) {
	e.known.Range(func(key, value any) bool {
		addr, _ := key.(netip.AddrPort)
		ep, _ := value.(*endpoint)
		if wanted(addr) {
			return true
		}
		ep.gone.Store(true)
		e.known.CompareAndDelete(addr, ep)
		if ep.users.Load() == 0 {
			ep.closeIdle()
		}
		return true
	})
}

func (e *endpoints) make(addr netip.AddrPort) *endpoint {
	ep := &endpoint{addr: addr.String()}
	ep.http1 = e.transport(ep)
	ep.http1.Protocols.SetHTTP1(true)
	ep.http2 = e.transport(ep)
	ep.http2.Protocols.SetUnencryptedHTTP2(true)
	return ep
}

func (e *endpoints) transport(ep *endpoint) *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return e.dial(ctx, ep.addr)
		},
		Protocols:              new(http.Protocols), // the caller's to choose
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingWait},
		DisableCompression:     true,
		MaxIdleConnsPerHost:    keptPerEndpoint,
		IdleConnTimeout:        max(e.timeouts.EndpointIdle, 0),
		ExpectContinueTimeout:  continueWait,
		MaxResponseHeaderBytes: maxResponseHead,
		WriteBufferSize:        copySize,
		ReadBufferSize:         guardRead,
	}
}

// dialError is why there is no connection: nothing was sent.
type dialError struct{ err error }

// Error passes on the cause's text, which names the address.
func (e *dialError) Error() string { return e.err.Error() }

// Unwrap gives the cause.
func (e *dialError) Unwrap() error { return e.err }

// dialed holds the time that a new connection took.
type dialed struct{ took atomic.Int64 }

type dialedKey struct{}

func (e *endpoints) dial(ctx context.Context, addr string) (net.Conn, error) {
	start := time.Now()
	conn, err := e.dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, &dialError{err}
	}
	if d, ok := ctx.Value(dialedKey{}).(*dialed); ok {
		d.took.Store(int64(time.Since(start)))
	}
	return conn, nil
}

// endingOf tells what an engine's error means. The client's part in it is judged before.
func endingOf(err error) ending {
	if _, ok := errors.AsType[*dialError](err); !ok {
		return reset
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return connectTimedOut
	}
	return connectFailed
}
