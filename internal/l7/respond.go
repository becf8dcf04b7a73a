package l7

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"

	"github.com/weir-lb/weir/internal/core/pick"
)

// respond passes an endpoint's response on.
func (x *exchange) respond(a *attempt) {
	resp := a.response
	if resp.StatusCode == http.StatusSwitchingProtocols {
		x.switchProtocols(a)
		return
	}
	defer a.discard()
	x.done.Code = resp.StatusCode
	x.done.Outcome = outcomeOfStatus(resp.StatusCode)
	call := x.grpcCall(resp)
	if call == nil {
		x.answer(x.clock(), x.done.Outcome)
	}
	announced := x.writeHead(resp)
	streamed := resp.ContentLength < 0 && resp.Body != http.NoBody
	if streamed {
		_ = x.rc.Flush() // a client may wait for the head before it sends more
	}
	fault := x.copyBody(resp)
	if call != nil {
		call.end(fault)
	} else {
		x.closeTicket(x.lastWord(a.context, fault))
	}
	if fault != nil {
		// net/http's way to cut the connection, so that the client does not take a part for the whole.
		panic(http.ErrAbortHandler)
	}
	x.writeTrailer(resp.Trailer, announced)
}

// lastWord is what the end of a response says about the endpoint, after its head.
func (x *exchange) lastWord(ctx context.Context, fault *copyFault) pick.Outcome {
	if fault == nil {
		return x.done.Outcome
	}
	x.done.Outcome = pick.LocalError
	if fault.client || x.r.Context().Err() != nil && !errors.Is(context.Cause(ctx), errRequestOver) {
		x.done.Outcome = pick.Canceled
	}
	return x.done.Outcome
}

// writeHead sends the response's head and gives the trailer fields that it announces.
func (x *exchange) writeHead(resp *http.Response) []string {
	h := x.w.Header()
	copyEndToEnd(h, resp.Header)
	addCookies(h, x.key.cookies)
	x.options.Forwarding.via(h, version(resp.ProtoMajor, resp.ProtoMinor))
	if _, ok := h["Content-Type"]; !ok {
		h["Content-Type"] = nil // or net/http would guess one
	}
	var announced []string
	for name := range resp.Trailer {
		announced = append(announced, name)
	}
	if len(announced) > 0 {
		slices.Sort(announced)
		h["Trailer"] = announced
	}
	if x.r.ProtoMajor == 1 && x.body != nil && !x.body.isWhole() {
		// The endpoint answered before it had read all: where the next request begins is not certain to be reached.
		h["Connection"] = []string{"close"}
	}
	x.w.WriteHeader(resp.StatusCode)
	return announced
}

// writeTrailer sends the trailer, those fields that were not announced as well.
func (x *exchange) writeTrailer(trailer http.Header, announced []string) {
	h := x.w.Header()
	for name, values := range trailer {
		if !slices.Contains(announced, name) {
			name = http.TrailerPrefix + name
		}
		h[name] = values
	}
}

// copyFault is why a body did not reach the other side whole.
type copyFault struct {
	err    error
	client bool // the client did not take it; else the endpoint did not give it
}

// copySize is what is read at once: io.Copy's own, enough for a socket's usual burst.
const copySize = 32 << 10

type copyBuffer [copySize]byte

// copyBody streams the response's body. Whatever was read is sent at once, unless it is the last of it: the end sends
// that, in one system call with the head where both are short.
func (x *exchange) copyBody(resp *http.Response) *copyFault {
	if resp.Body == http.NoBody {
		return nil
	}
	buffer, _ := x.buffers.Get().(*copyBuffer)
	defer x.buffers.Put(buffer)
	for {
		n, err := resp.Body.Read(buffer[:])
		if n > 0 {
			if fault := x.pass(buffer[:n]); fault != nil {
				return fault
			}
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			_ = x.rc.Flush() // the client gets what there was
			return &copyFault{err: err}
		}
		if err := x.rc.Flush(); err != nil {
			return &copyFault{err: err, client: true}
		}
	}
}

func (x *exchange) pass(p []byte) *copyFault {
	n, err := x.w.Write(p)
	x.done.Out += int64(n)
	if err != nil && !errors.Is(err, http.ErrBodyNotAllowed) {
		return &copyFault{err: err, client: true}
	}
	return nil
}

func newBuffers() *sync.Pool { return &sync.Pool{New: func() any { return new(copyBuffer) }} }

func version(major, minor int) string {
	if major == 2 {
		return "2.0"
	}
	if minor == 0 {
		return "1.0"
	}
	return "1.1"
}
