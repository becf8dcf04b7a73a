package route

import (
	"cmp"
	"net/netip"
	"strings"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// Table is what a client may use of a cluster. It is immutable. An entry that did not change from one table of a Compiler
// to the next is the same pointer.
type Table struct {
	Client   policy.Client
	Entries  []*Entry  // sorted by key
	Problems []Problem // what cannot be had, or not as asked; in the order of the services, each once
}

// Key identifies an entry: a service port's endpoints of one family, as clients of one zone and class see them.
type Key struct {
	Service topology.ServiceName
	Port    uint16
	// Protocol is TCP, or UDP in the kernel.
	Protocol topology.Protocol
	Family   topology.Family
	Zone     topology.Zone // the client's
	Class    string        // empty: all clients that no policy tells apart
}

// Base is the key of the entry whose addresses serve the class, too.
func (k Key) Base() Key {
	k.Class = ""
	return k
}

// Compare orders keys by service, port, protocol, family, zone and class, so that a base comes before its classes.
func (k Key) Compare(o Key) int {
	return cmp.Or(
		k.Service.Compare(o.Service),
		cmp.Compare(k.Port, o.Port),
		cmp.Compare(k.Protocol, o.Protocol),
		cmp.Compare(k.Family, o.Family),
		cmp.Compare(k.Zone, o.Zone),
		cmp.Compare(k.Class, o.Class),
	)
}

// Entry is what one class of clients may use of one service port.
type Entry struct {
	Key       Key
	Port      topology.Port
	DataPlane topology.DataPlane
	Mode      topology.Mode    // the service's, with its default filled in
	Drains    []topology.Drain // zones that the service's owner takes out of use
	Addresses []netip.AddrPort // that the port is served on; none for a class: those of its base serve it
	Clients   []netip.Addr     // of the class, sorted; nil for the base
	Settings  Settings
	Selection
}

// PortName names the entry's service port for people.
func (e *Entry) PortName() string { return portName(e.Key.Service, e.Port) }

// Mapping serves a service on an address that is not its cluster IP.
type Mapping struct {
	Service topology.ServiceName
	Port    uint16         // the service's port; 0: each of them
	To      netip.AddrPort // port 0: the service port's number
}

// String gives NAMESPACE/SERVICE[:PORT]=ADDRESS[:PORT].
func (m Mapping) String() string {
	from := m.Service.String()
	if m.Port != 0 {
		from += ":" + number(m.Port)
	}
	if m.To.Port() == 0 {
		return from + "=" + m.To.Addr().String()
	}
	return from + "=" + m.To.String()
}

// Problem is something that was asked for and cannot be had, or not as asked.
type Problem struct {
	Service string        `json:"service,omitempty"` // namespace/name; empty: of no service, or of many
	Reason  reason.Reason `json:"reason"`
}

// Identity tells problems apart, whatever their numbers.
func (p *Problem) Identity() string {
	return p.Service + " " + string(p.Reason.Code) + " " + strings.Join(p.Reason.Objects, " ")
}
