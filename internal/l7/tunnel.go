package l7

import (
	"errors"
	"io"
	"net"
	"sync"
	"syscall"

	"github.com/weir-lb/weir/internal/core/pick"
)

// tunnel carries bytes both ways between a client (near) and an endpoint (far). When one side has said all, the other
// may go on: half-close is kept. When one side breaks, both are closed.
type tunnel struct {
	near, far io.ReadWriteCloser
	in, out   int64 // bytes from near to far, and from far to near

	mu     sync.Mutex
	broken side // the side that broke the connection first
}

type side uint8

const (
	neither side = iota
	theClient
	theEndpoint
)

// run carries until both sides have ended. early came from the client already.
func (t *tunnel) run(early []byte) {
	back := make(chan struct{})
	go func() {
		defer close(back)
		t.out = t.carry(t.near, t.far, theEndpoint)
	}()
	if len(early) > 0 {
		n, err := t.far.Write(early)
		t.in = int64(n)
		if err != nil {
			t.breakOff(theEndpoint)
		}
	}
	t.in += t.carry(t.far, t.near, theClient)
	<-back
}

// carry copies one direction. from is the side that sent them.
func (t *tunnel) carry(to io.WriteCloser, source io.Reader, from side) int64 {
	n, err := io.Copy(to, source)
	if err != nil {
		t.breakOff(culprit(err, from))
		return n
	}
	half, ok := to.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		t.breakOff(neither)
	}
	return n
}

// culprit guesses which side broke a copy: a copy's error does not tell whether it read or wrote, but a broken pipe is only
// met when writing. What was closed on our side is no peer's fault.
func culprit(err error, from side) side {
	switch {
	case errors.Is(err, net.ErrClosed), errors.Is(err, io.ErrClosedPipe):
		return neither
	case errors.Is(err, syscall.EPIPE):
		return theClient + theEndpoint - from
	default:
		return from
	}
}

func (t *tunnel) breakOff(by side) {
	t.mu.Lock()
	if t.broken == neither {
		t.broken = by
	}
	t.mu.Unlock()
	_ = t.near.Close()
	_ = t.far.Close()
}

// outcome is what the tunnel's end says about the endpoint. Call it when run has returned.
func (t *tunnel) outcome() pick.Outcome {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch t.broken {
	case theEndpoint:
		return pick.LocalError
	case theClient:
		return pick.Canceled
	default:
		return pick.Success
	}
}
