package l7

import (
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2/hpack"

	"github.com/weir-lb/weir/internal/core/pick"
)

// ServeConn serves one connection that did not come through the listener.
func (s *Server) ServeConn(conn net.Conn) { s.admit(conn) }

// ListenNowhere makes a server without a socket; connections come through ServeConn.
func ListenNowhere(o Options) *Server {
	return newServer(&nowhere{closed: make(chan struct{})}, netip.AddrPort{}, o)
}

// nowhere is a listener that nothing comes through.
type nowhere struct {
	closed chan struct{}
	once   sync.Once
}

func (n *nowhere) Accept() (net.Conn, error) {
	<-n.closed
	return nil, net.ErrClosed
}

func (n *nowhere) Close() error {
	n.once.Do(func() { close(n.closed) })
	return nil
}

func (*nowhere) Addr() net.Addr { return &net.TCPAddr{} }

// Budget is the retry budget by itself.
type Budget struct{ *budget }

// NewBudget makes one.
func NewBudget(r Retry) Budget { return Budget{newBudget(r.withDefaults())} }

// Request puts in the share of one request.
func (b Budget) Request(now time.Duration) { b.request(now) }

// Withdraw takes out one retry.
func (b Budget) Withdraw(now time.Duration) bool { return b.withdraw(now) }

// OutcomeOfStatus is outcomeOfStatus.
func OutcomeOfStatus(status int) pick.Outcome { return outcomeOfStatus(status) }

// OutcomeOfGRPC is the outcome of a grpc-status field.
func OutcomeOfGRPC(field string) pick.Outcome { return parseGRPCStatus(field).outcome() }

// ParseGRPCTimeout is parseGRPCTimeout.
func ParseGRPCTimeout(field string) time.Duration { return parseGRPCTimeout(field) }

// DetectBytes is protocolOfBytes.
func DetectBytes(b string) (Protocol, bool) { return protocolOfBytes([]byte(b)) }

// Writes is how many calls wrote to HTTP connections so far.
func Writes(s *Server) int64 { return s.streams.writes.Load() }

// HashClient is what rules know of a client's connection.
type HashClient struct {
	Number        uint64
	Remote, Local netip.AddrPort
	IsFilter      bool
}

// HashedBy gives the key that rules make of a request, or of a TCP connection if r is nil, and the cookies that they
// generate.
func HashedBy(h *HashRules, c HashClient, r *http.Request) (sum uint64, ok bool, cookies []string) {
	if r == nil {
		from := &client{number: c.Number, remote: c.Remote, local: c.Local, isFilter: c.IsFilter}
		k := h.key(from, nil)
		return k.hash, k.ok, k.cookies
	}
	return HashedByList(h, c, ListOf(r))
}

// FieldList is a request's view.
type FieldList struct{ view request }

// ListOf makes the view of a request.
func ListOf(r *http.Request) *FieldList {
	l := &FieldList{request{method: r.Method, target: r.URL.RequestURI(), authority: r.Host, version: r.Proto}}
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		for _, value := range r.Header[name] {
			l.view.fields.list = append(l.view.fields.list, hpack.HeaderField{Name: strings.ToLower(name), Value: value})
		}
	}
	return l
}

// HashedByList is HashedBy for a list.
func HashedByList(h *HashRules, c HashClient, l *FieldList) (sum uint64, ok bool, cookies []string) {
	k := h.key(&client{number: c.Number, remote: c.Remote, local: c.Local, isFilter: c.IsFilter}, &l.view)
	return k.hash, k.ok, k.cookies
}

// AddrPortOf is addrPortOf.
func AddrPortOf(a net.Addr) netip.AddrPort { return addrPortOf(a) }
