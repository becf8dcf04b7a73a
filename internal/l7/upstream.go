package l7

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/weir-lb/weir/internal/core/pick"
)

// Upstream is the pool that the requests of some clients go to, and how they are hashed. It is immutable, but for what it points at.
type Upstream struct {
	Pool     *pick.Pool
	Observer Observer  // nil: none
	Hash     HashRules // zero: requests have no key
}

// observer gives the upstream's observer.
func (l *Upstream) observer() Observer {
	if l.Observer == nil {
		return noObserver{}
	}
	return l.Observer
}

// Upstreams map clients to their upstreams. They are immutable once a Server follows them.
type Upstreams struct {
	Default  *Upstream
	ByClient map[netip.Addr]*Upstream // of the clients that have another; IPv4 as such, and without IPv6 zones
}

// of finds the upstream of a client.
func (l *Upstreams) of(client netip.Addr) *Upstream {
	if len(l.ByClient) > 0 {
		if upstream := l.ByClient[client]; upstream != nil {
			return upstream
		}
	}
	return l.Default
}

// check refuses upstreams without a pool.
func (l *Upstreams) check() error {
	if l == nil || l.Default == nil || l.Default.Pool == nil {
		return errors.New("no pool of endpoints given")
	}
	for client, upstream := range l.ByClient {
		if upstream == nil || upstream.Pool == nil {
			return errors.New("no pool of endpoints given for client " + client.String())
		}
	}
	return nil
}

// Follow makes u the upstreams of every request that begins from now on, on connections that are open already too. Requests
// and TCP connections under way keep theirs. It panics if an upstream is missing or has no pool.
func (s *Server) Follow(u *Upstreams) {
	if err := u.check(); err != nil {
		panic("l7: follow: " + err.Error())
	}
	s.shared.upstreams.Store(u)
}

// client is what is known of a client's connection from its start. It is immutable.
type client struct {
	number   uint64         // differs from those of all other connections
	remote   netip.AddrPort // IPv4 as such, without IPv6 zones; not valid for what is no TCP
	local    netip.AddrPort // likewise: the address that the client asked
	isFilter bool           // what it says of filter state is believed
	address  string         // the IP address of remote as text
	account  *account       // shared by all connections of its address
}

// account is what one client address has at this moment.
type account struct {
	connections int // guarded by clients.mu
	pending     atomic.Int64
}

// clients numbers connections, and counts what each address has.
type clients struct {
	filters []netip.Prefix
	last    atomic.Uint64

	mu       sync.Mutex
	accounts map[netip.Addr]*account
}

// enter counts a connection of a client; false if it has limit others already, and then it is not counted.
func (c *clients) enter(n *client, limit int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.accounts[n.remote.Addr()]
	if a == nil {
		a = new(account)
		if c.accounts == nil {
			c.accounts = make(map[netip.Addr]*account)
		}
		c.accounts[n.remote.Addr()] = a
	}
	n.account = a
	if over(a.connections+1, limit) {
		return false
	}
	a.connections++
	return true
}

// leave takes a connection off the count.
func (c *clients) leave(n *client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n.account.connections--; n.account.connections == 0 {
		delete(c.accounts, n.remote.Addr())
	}
}

// know takes note of a connection.
func (c *clients) know(conn net.Conn) *client {
	n := &client{number: c.last.Add(1), remote: addrPortOf(conn.RemoteAddr()), local: addrPortOf(conn.LocalAddr())}
	n.address = n.remote.Addr().String()
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
