package l7

import (
	"errors"
	"net"
	"net/netip"
	"sync/atomic"

	"github.com/weir-lb/weir/internal/core/pick"
)

// Lane is where the requests of some clients go, and how they are hashed. It is immutable, but for what it points at.
type Lane struct {
	Pool     *pick.Pool
	Observer Observer  // nil: nobody
	Hash     HashRules // zero: requests have no key
}

// observer is who is told.
func (l *Lane) observer() Observer {
	if l.Observer == nil {
		return noObserver{}
	}
	return l.Observer
}

// Lanes say which lane a client has. They are immutable once a Server follows them.
type Lanes struct {
	Default  *Lane
	ByClient map[netip.Addr]*Lane // of the clients that have another; IPv4 as such, and without IPv6 zones
}

// of finds the lane of a client.
func (l *Lanes) of(client netip.Addr) *Lane {
	if len(l.ByClient) > 0 {
		if lane := l.ByClient[client]; lane != nil {
			return lane
		}
	}
	return l.Default
}

// check refuses lanes that lead nowhere.
func (l *Lanes) check() error {
	if l == nil || l.Default == nil || l.Default.Pool == nil {
		return errors.New("no pool of endpoints given")
	}
	for client, lane := range l.ByClient {
		if lane == nil || lane.Pool == nil {
			return errors.New("no pool of endpoints given for client " + client.String())
		}
	}
	return nil
}

// Follow makes l the lanes of every request that begins from now on, on connections that are open already too. Requests
// and TCP connections under way keep theirs. It panics if a lane is missing or has no pool.
func (s *Server) Follow(l *Lanes) {
	if err := l.check(); err != nil {
		panic("l7: follow: " + err.Error())
	}
	s.shared.lanes.Store(l)
}

// client is what is known of a client's connection from its start. It is immutable.
type client struct {
	number   uint64         // differs from those of all other connections
	remote   netip.AddrPort // IPv4 as such, without IPv6 zones; not valid for what is no TCP
	local    netip.AddrPort // likewise: the address that the client asked
	isFilter bool           // what it says of filter state is believed
}

// clients numbers connections.
type clients struct {
	filters []netip.Prefix
	last    atomic.Uint64
}

// know takes note of a connection.
func (c *clients) know(conn net.Conn) *client {
	n := &client{number: c.last.Add(1), remote: addrPortOf(conn.RemoteAddr()), local: addrPortOf(conn.LocalAddr())}
	for _, p := range c.filters {
		n.isFilter = n.isFilter || p.Contains(n.remote.Addr())
	}
	return n
}

func addrPortOf(a net.Addr) netip.AddrPort {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	both := tcp.AddrPort()
	return netip.AddrPortFrom(both.Addr().Unmap().WithZone(""), both.Port())
}
