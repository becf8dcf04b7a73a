package l7

import (
	"context"
	"net"
	"time"

	"github.com/weir-lb/weir/internal/core/pick"
)

// wire is the engine for raw TCP: one endpoint for each connection, bytes both ways.
type wire struct {
	shared *shared
	dialer net.Dialer
}

// serve carries one connection to its end and closes it. early was read from it already. ctx bounds the search for an
// endpoint only.
func (w *wire) serve(ctx context.Context, a *arrival, early []byte) {
	near := a.conn
	c := w.shared.begin(a.client.remote.Addr())
	done := Result{Protocol: TCP, Status: NoStatus}
	c.hash(a.client, nil)
	defer func() {
		_ = near.Close()
		c.result(&done)
		c.upstream.observer().Request(done)
	}()
	far := w.connect(ctx, &c, &done)
	if far == nil {
		reject(near)
		return
	}
	defer func() { _ = far.Close() }()
	t := tunnel{near: near, far: far}
	stop := context.AfterFunc(ctx, func() { t.breakOff(neither) })
	defer stop()
	t.run(early)
	done.In, done.Out, done.Outcome = t.in, t.out, t.outcome()
	c.closeTicket(done.Outcome)
}

// connect tries endpoints until one accepts; nil if none does.
func (w *wire) connect(ctx context.Context, c *retrier, done *Result) net.Conn {
	if code := c.next(); code != "" {
		done.Reason, done.Outcome = code, pick.Failure
		return nil
	}
	for {
		start := c.clock()
		conn, err := w.dialer.DialContext(ctx, "tcp", c.ticket.Addr().String())
		if err == nil {
			now := c.clock()
			c.connected(max(now-start, time.Nanosecond))
			c.answer(now, pick.Success)
			return conn
		}
		e := endingOf(err)
		if ctx.Err() != nil {
			e = clientGone
		}
		if c.mayRetry(e, 0) && c.again(e, 0) {
			continue
		}
		done.Reason, done.Outcome = e.reason(), e.outcome(0)
		c.closeTicket(done.Outcome)
		return nil
	}
}

// reject makes the close that follows a reset: a client must not take a refusal for an orderly end without data.
func reject(conn net.Conn) {
	if tcp, ok := conn.(interface{ SetLinger(seconds int) error }); ok {
		_ = tcp.SetLinger(0)
	}
}
