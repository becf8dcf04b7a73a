package kube

import (
	"fmt"
	"net/netip"
	"slices"
)

// ProgrammedAll is Programmed for all TCP ports of cluster IPs that the rules know, of one reading.
func (p *Proxy) ProgrammedAll() (map[netip.AddrPort][]netip.AddrPort, error) {
	rules, err := p.rules()
	if err != nil {
		return nil, err
	}
	all := make(map[netip.AddrPort][]netip.AddrPort, len(rules.services)+len(rules.rejected))
	for address := range rules.rejected {
		all[address] = nil
	}
	for address, start := range rules.services {
		found, err := rules.follow(start)
		if err != nil {
			return nil, fmt.Errorf("the rules of node %s for %s: %w", p.Node, address, err)
		}
		slices.SortFunc(found, netip.AddrPort.Compare)
		all[address] = slices.Compact(found)
	}
	return all, nil
}
