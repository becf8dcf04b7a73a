package kube

import (
	"net"
	"sync"
)

// tunnels are the connections that the API server has through routes.
type tunnels struct {
	mu   sync.Mutex
	open map[net.Conn]bool
}

// hold notes a connection until release is called.
func (t *tunnels) hold(conn net.Conn) (release func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == nil {
		t.open = make(map[net.Conn]bool)
	}
	t.open[conn] = true
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.open, conn)
	}
}

// CutRoutes ends the connections that the API server has to webhooks, so that its next call takes the routes as they are
// now. Without it a connection that stands is used for as long as both ends keep it.
func (c *Cluster) CutRoutes() {
	c.routes.tunnels.mu.Lock()
	defer c.routes.tunnels.mu.Unlock()
	for conn := range c.routes.tunnels.open {
		_ = conn.Close()
	}
}
