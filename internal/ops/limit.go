package ops

import (
	"net"
	"sync"
)

// limitListener accepts no connection while too many are open; the kernel's queue holds those that wait.
type limitListener struct {
	net.Listener
	free   chan struct{} // holds one token for each connection that may still be opened
	closed chan struct{}
	once   sync.Once
}

func limit(l net.Listener, connections int) *limitListener {
	free := make(chan struct{}, connections)
	for range connections {
		free <- struct{}{}
	}
	return &limitListener{Listener: l, free: free, closed: make(chan struct{})}
}

// isBusy tells whether more than half of the connections that may be open are.
func (l *limitListener) isBusy() bool { return len(l.free) < cap(l.free)/2 }

// Accept waits for a token, then for a connection.
func (l *limitListener) Accept() (net.Conn, error) {
	select {
	case <-l.free:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		l.free <- struct{}{}
		return nil, err
	}
	return &limitConn{Conn: c, give: sync.OnceFunc(func() { l.free <- struct{}{} })}, nil
}

// Close ends Accept, even one that waits for a token.
func (l *limitListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// limitConn gives its token back when it is closed.
type limitConn struct {
	net.Conn
	give func()
}

// Close closes the connection.
func (c *limitConn) Close() error {
	defer c.give()
	return c.Conn.Close()
}
