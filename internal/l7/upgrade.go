package l7

import (
	"io"
	"net/http"
	"strings"

	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/reason"
)

// switchProtocols passes a 101 on and carries bytes both ways from then on.
func (x *exchange) switchProtocols(a *attempt) {
	resp := a.response
	far, ok := resp.Body.(io.ReadWriteCloser)
	agreed := upgradeOf(resp.Header)
	if !ok || x.upgrade == "" || !strings.EqualFold(agreed, x.upgrade) {
		_ = resp.Body.Close()
		x.closeTicket(pick.ServerError)
		x.refuse(reason.EndpointReset) // an answer that was not asked for is none
		return
	}
	defer func() { _ = far.Close() }()
	x.answer(x.clock(), pick.Success)
	near, early, err := x.hijack(resp.Header, agreed)
	if err != nil {
		x.closeTicket(pick.Canceled)
		panic(http.ErrAbortHandler) // the client is gone; net/http cleans up
	}
	x.done.Protocol, x.done.Code, x.done.Outcome = WebSocket, resp.StatusCode, pick.Success
	t := tunnel{near: near, far: far}
	t.run(early)
	_ = near.Close()
	x.done.In, x.done.Out = t.in, t.out
	x.done.Outcome = t.outcome()
	x.closeTicket(x.done.Outcome)
}

// hijack takes the client's connection over from net/http and tells the client. early is what it sent already.
func (x *exchange) hijack(header http.Header, protocol string) (near *requestGuard, early []byte, err error) {
	_, buffered, err := x.rc.Hijack()
	if err != nil {
		return nil, nil, err
	}
	near = x.guard
	near.release()
	h := make(http.Header, len(header))
	copyEndToEnd(h, header)
	addCookies(h, x.key.cookies)
	x.options.Forwarding.via(h, "1.1")
	h.Set("Connection", "Upgrade")
	h.Set("Upgrade", protocol)
	early, _ = buffered.Peek(buffered.Reader.Buffered())
	_, _ = buffered.WriteString("HTTP/1.1 101 Switching Protocols\r\n")
	_ = h.Write(buffered)
	_, _ = buffered.WriteString("\r\n")
	if err := buffered.Flush(); err != nil { // tells of every error before
		_ = near.Close()
		return nil, nil, err
	}
	return near, early, nil
}
