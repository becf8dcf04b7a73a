package bpf

import (
	"encoding/binary"
	"net/netip"
)

// Protocols of a VIP, by their numbers in IP headers.
const (
	TCP = 6
	UDP = 17
)

type (
	// VIP is an address, port and protocol, as programs compare them.
	VIP = objectsVip
	// Table is a service port in the maps.
	Table = objectsTable
	// Endpoint is an endpoint in the maps, with its counters.
	Endpoint = objectsEndpoint
)

// EndpointUp is the flag of an endpoint that may be drawn.
const EndpointUp = 1

// SlotsInBlock is the granularity in which a table's slots begin.
const SlotsInBlock = 64

// NewVIP gives the form of an address that programs read.
func NewVIP(a netip.AddrPort, protocol uint8) VIP {
	v := VIP{Port: toNetwork(a.Port()), Protocol: protocol}
	bytes := a.Addr().As16()
	for i := range v.Addr {
		v.Addr[i] = binary.NativeEndian.Uint32(bytes[4*i:])
	}
	return v
}

// AddrPort gives the address and port of a VIP.
func AddrPort(v VIP) netip.AddrPort {
	var bytes [16]byte
	for i, word := range v.Addr {
		binary.NativeEndian.PutUint32(bytes[4*i:], word)
	}
	return netip.AddrPortFrom(netip.AddrFrom16(bytes).Unmap(), toNetwork(v.Port))
}

// toNetwork changes a port between the machine's byte order and the network's.
func toNetwork(port uint16) uint16 {
	var b [2]byte
	binary.BigEndian.PutUint16(b[:], port)
	return binary.NativeEndian.Uint16(b[:])
}

// Capacity is how much the maps have room for.
type Capacity struct {
	Services  uint32 // service ports: an address with a port and protocol
	Endpoints uint32
	Slots     uint32
}

// Options say where programs run and what outlives the process.
type Options struct {
	// Cgroup is the folder of the cgroup whose processes' sockets are placed; empty: the root of the cgroup2 file system.
	Cgroup string
	// Pins is a folder in a bpf file system; empty: programs and maps go with the process.
	Pins     string
	Capacity Capacity
}
