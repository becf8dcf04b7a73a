// Package topology holds weir's nouns: zones, nodes, services and endpoints, gathered in a Snapshot of one instant.
//
// It promises values only: nothing here knows a clock, a socket or Kubernetes. A Snapshot is sorted and immutable, so
// that equal clusters are equal values whatever order they were read in. The package decides nothing.
package topology

import (
	"fmt"
	"net/netip"
	"strings"
)

// Zone is the name of a failure and billing domain (the label topology.kubernetes.io/zone). The empty Zone means that
// the zone is not known; it never equals a client's zone.
type Zone string

// Family is an address family. A service is planned once for each.
type Family uint8

// The address families, named as EndpointSlice addressType names them.
const (
	IPv4 Family = iota
	IPv6
)

// Families lists every Family, in the order in which plans are printed.
func Families() []Family { return []Family{IPv4, IPv6} }

// FamilyOf gives the family of addr; an IPv4-mapped IPv6 address counts as IPv4.
func FamilyOf(addr netip.Addr) Family {
	if addr.Unmap().Is4() {
		return IPv4
	}
	return IPv6
}

// String gives the EndpointSlice spelling, "IPv4" or "IPv6".
func (f Family) String() string {
	if f == IPv6 {
		return "IPv6"
	}
	return "IPv4"
}

// Mode is how a service's traffic is to be distributed over zones.
type Mode string

// The distribution modes. ModeUnset is replaced by a default before planning.
const (
	ModeUnset          Mode = ""
	ModeAuto           Mode = "Auto"           // KEP-2433: endpoints allotted to zones by CPU share
	ModePreferSameZone Mode = "PreferSameZone" // KEP-4444: each endpoint hinted to its own zone
	ModePreferClose    Mode = "PreferClose"    // the deprecated name of PreferSameZone
	ModePreferSameNode Mode = "PreferSameNode" // KEP-4444: its node, then its zone
	ModeBalanced       Mode = "Balanced"       // weir's own: as much in zone as the overload limit allows
	ModeDisabled       Mode = "Disabled"       // no hints
)

// Modes lists the modes that a user may ask for.
func Modes() []Mode {
	return []Mode{ModeAuto, ModeBalanced, ModeDisabled, ModePreferClose, ModePreferSameNode, ModePreferSameZone}
}

// ParseMode reads a mode's name, in upper or lower case: the annotation of KEP-2433 is written Auto and auto.
func ParseMode(s string) (Mode, error) {
	for _, m := range Modes() {
		if strings.EqualFold(s, string(m)) {
			return m, nil
		}
	}
	return ModeUnset, fmt.Errorf("unknown distribution mode %q: want one of %v", s, Modes())
}
