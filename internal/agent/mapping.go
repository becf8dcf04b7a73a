package agent

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/weir-lb/weir/internal/core/route"
	"github.com/weir-lb/weir/internal/core/topology"
)

// Mapping serves a service on an address that is not its cluster IP.
type Mapping = route.Mapping

// ParseMapping reads [NAMESPACE/]SERVICE[:PORT]=ADDRESS[:PORT], as in shop/web=127.0.10.1 or web:80=[::1]:8080. A
// service without a namespace is in "default". It is the inverse of Mapping.String.
func ParseMapping(s string) (Mapping, error) {
	m, err := parseMapping(s)
	if err != nil {
		return Mapping{}, fmt.Errorf("mapping %q: %w (want [NAMESPACE/]SERVICE[:PORT]=ADDRESS[:PORT])", s, err)
	}
	return m, nil
}

func parseMapping(s string) (Mapping, error) {
	from, to, found := strings.Cut(s, "=")
	if !found {
		return Mapping{}, errors.New("no = in it")
	}
	var m Mapping
	name, port, hasPort := strings.Cut(from, ":")
	if hasPort {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return Mapping{}, fmt.Errorf("bad service port %q", port)
		}
		m.Port = uint16(n)
	}
	var err error
	if m.Service, err = ParseService(name); err != nil {
		return Mapping{}, err
	}
	m.To, err = parseAddress(to)
	return m, err
}

// parseAddress reads ADDRESS or ADDRESS:PORT; an IPv6 address with a port stands in brackets.
func parseAddress(s string) (netip.AddrPort, error) {
	if addr, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return netip.AddrPortFrom(addr.Unmap(), 0), nil
	}
	to, err := netip.ParseAddrPort(s)
	if err != nil || to.Port() == 0 {
		return netip.AddrPort{}, fmt.Errorf("bad address %q", s)
	}
	return netip.AddrPortFrom(to.Addr().Unmap(), to.Port()), nil
}

// ParseService reads [NAMESPACE/]NAME; the namespace is "default" when none is written.
func ParseService(s string) (topology.ServiceName, error) {
	namespace, name, found := strings.Cut(s, "/")
	if !found {
		namespace, name = "default", s
	}
	if namespace == "" || name == "" || strings.Contains(name, "/") {
		return topology.ServiceName{}, fmt.Errorf("bad service name %q", s)
	}
	return topology.ServiceName{Namespace: namespace, Name: name}, nil
}

// duplicates refuses mappings that would listen on one address for one port twice. Mappings of different services to
// one address are fine as long as their ports differ, which only the services tell.
func duplicates(mappings []Mapping) []error {
	var errs []error
	seen := make(map[Mapping]bool)
	for _, m := range mappings {
		if seen[m] {
			errs = append(errs, fmt.Errorf("mapping %s is there twice", m))
		}
		seen[m] = true
	}
	return errs
}
