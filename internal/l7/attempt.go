package l7

import (
	"context"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/textproto"
	"sync"
	"time"
)

// attempt is one try of an exchange at one endpoint.
type attempt struct {
	x        *exchange
	endpoint *endpoint
	view     *view // of the body; nil: none
	response *http.Response
	ending   ending
	cancel   context.CancelCauseFunc
	context  context.Context //nolint:containedctx // lives as long as the attempt, whose response's body it governs
	dialed   dialed

	mu    sync.Mutex // against the engine's goroutines
	over  bool       // a response or an error is there
	timer *time.Timer
}

// attempt asks the current endpoint and waits for its response's head.
func (x *exchange) attempt(ctx context.Context) *attempt {
	a := &attempt{x: x, endpoint: x.endpoints.use(x.ticket.Addr())}
	a.context, a.cancel = context.WithCancelCause(ctx)
	if x.body != nil {
		a.view = x.body.open()
		x.body.onEnd(a.arm)
	} else {
		a.arm()
	}
	trace := &httptrace.ClientTrace{Got1xxResponse: a.informational}
	traced := httptrace.WithClientTrace(context.WithValue(a.context, dialedKey{}, &a.dialed), trace)
	response, err := x.transport(a.endpoint, x.r.ProtoMajor).RoundTrip(a.request(traced)) //nolint:bodyclose // respond and discard close it
	a.disarm()
	x.connected(time.Duration(a.dialed.took.Load()))
	a.response = response
	switch {
	case err != nil:
		a.ending = x.judge(a.context, err)
		a.release()
	case response.StatusCode < http.StatusContinue:
		a.ending = reset // three digits, but no status: net/http reads it and refuses to write it
		a.discard()
		a.response = nil
	}
	return a
}

// arm starts the wait for the response's head: the request is sent.
func (a *attempt) arm() {
	limit := a.x.options.Timeouts.Response
	if limit <= 0 || a.x.done.Protocol == GRPC && a.x.r.ProtoMajor == 2 { // gRPC is HTTP/2; over HTTP/1 it is only a content type
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.over && a.timer == nil {
		a.timer = time.AfterFunc(limit, func() { a.cancel(errNoResponse) })
	}
}

func (a *attempt) disarm() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	if a.timer != nil {
		a.timer.Stop()
	}
}

// informational passes on a 1xx response, such as 103 Early Hints. 100 is between each pair of neighbours.
func (a *attempt) informational(code int, header textproto.MIMEHeader) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over || code == http.StatusContinue || !a.x.r.ProtoAtLeast(1, 1) {
		return nil
	}
	h := a.x.w.Header()
	copyEndToEnd(h, http.Header(header))
	a.x.w.WriteHeader(code)
	clear(h)
	return nil
}

// status is the response's; 0 if there is none.
func (a *attempt) status() int {
	if a.response == nil {
		return 0
	}
	return a.response.StatusCode
}

// discard is done with a response: for the sake of another attempt, or since it was passed on.
func (a *attempt) discard() {
	a.release() // first: Close waits for the request's body, which a client may hold open for ever
	if a.response != nil {
		_ = a.response.Body.Close()
	}
}

// takeBack ends the engine's reading of the request's body.
func (a *attempt) takeBack() {
	if a.view != nil {
		a.view.takeBack()
	}
}

// release lets the endpoint go. It may be called twice.
func (a *attempt) release() {
	if a.endpoint != nil {
		a.cancel(nil)
		a.endpoint.done()
		a.endpoint = nil
	}
}

// request is what the endpoint hears.
func (a *attempt) request(ctx context.Context) *http.Request {
	r := a.x.r
	out := &http.Request{
		Method:        r.Method,
		Proto:         "HTTP/1.1", // net/http waits for 100 Continue only then
		ProtoMajor:    1,
		ProtoMinor:    1,
		URL:           target(r, a.endpoint.addr),
		Host:          r.Host,
		Header:        a.header(),
		ContentLength: r.ContentLength,
	}
	if a.view == nil {
		out.ContentLength = 0
		return out.WithContext(ctx)
	}
	out.Body = a.view
	// net/http sends a body after the final answer even, to keep the connection: the client would be told to continue
	// with a body that is not used. It does not if the connection is not kept.
	out.Close = out.Header.Get("Expect") != ""
	out.Trailer = a.x.trailer
	return out.WithContext(ctx)
}

func (a *attempt) header() http.Header {
	r, forwarding := a.x.r, &a.x.options.Forwarding
	const added = 6 // the fields that may come below, so that the map need not grow
	h := make(http.Header, len(r.Header)+added)
	copyEndToEnd(h, r.Header)
	delete(h, FilterStateField)
	if hasToken(r.Header["Te"], "trailers") {
		h["Te"] = []string{"trailers"} // gRPC needs it, and it holds for this proxy's next hop as well
	}
	if a.x.upgrade != "" {
		h["Connection"] = []string{"Upgrade"}
		h["Upgrade"] = []string{a.x.upgrade}
	}
	if !r.ProtoAtLeast(1, 1) {
		delete(h, "Expect")
	}
	if _, ok := h["User-Agent"]; !ok {
		h["User-Agent"] = nil // or net/http would name itself
	}
	client, err := netip.ParseAddrPort(r.RemoteAddr)
	if err == nil {
		forwarding.forward(h, client, r.Host)
	}
	forwarding.via(h, version(r.ProtoMajor, r.ProtoMinor))
	return h
}
