package kube

import (
	"fmt"
	"net"
	"sync/atomic"
)

// A Link lets what is on a node reach the API server of another cluster at the same address as outside, until it is cut.
type Link struct {
	isCut atomic.Bool
	end   func() // the connections that stand
}

// Link makes a link from this node to another cluster's API server.
func (p *Proxy) Link(to *Cluster) *Link {
	p.cluster.tb.Helper()
	l := new(Link)
	address := fmt.Sprintf("127.0.0.1:%d", to.apiPort)
	l.end = serve(p.cluster.tb, p.listen(address), func(client net.Conn) {
		if l.isCut.Load() {
			return
		}
		server, err := net.Dial("tcp", address) //nolint:noctx // loopback accepts or refuses at once.
		if err != nil {
			return
		}
		splice(client, server)
	})
	return l
}

// Cut ends all connections, and each that comes.
func (l *Link) Cut() {
	l.isCut.Store(true)
	l.end()
}

// Mend undoes Cut.
func (l *Link) Mend() { l.isCut.Store(false) }
