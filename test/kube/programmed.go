package kube

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
)

// ruleset is what is in a node's nftables tables, as far as kube-proxy's decision for a connection goes.
type ruleset struct {
	chains   map[chain][]any             // the expressions of all rules of a chain, as nft prints them
	services map[netip.AddrPort]chain    // of a cluster IP and TCP port that has endpoints
	rejected map[netip.AddrPort]struct{} // cluster IPs and TCP ports without endpoints
}

type chain struct{ family, name string }

// Programmed gives just the endpoints that kube-proxy has programmed on this node for a TCP port of a cluster IP: sorted;
// nil when it rejects connections. It reads the kernel's rules each time.
//
// Errors: the rules do not know the address (yet), or could not be read.
func (p *Proxy) Programmed(address netip.AddrPort) ([]netip.AddrPort, error) {
	rules, err := p.rules()
	if err != nil {
		return nil, err
	}
	if _, rejected := rules.rejected[address]; !rejected && rules.services[address] == (chain{}) {
		return nil, fmt.Errorf("the rules of node %s do not know %s", p.Node, address)
	}
	return p.endpoints(rules, address)
}

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
	for address := range rules.services {
		if all[address], err = p.endpoints(rules, address); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// endpoints gives what rules have for an address: sorted, each once.
func (p *Proxy) endpoints(rules *ruleset, address netip.AddrPort) ([]netip.AddrPort, error) {
	found, err := rules.follow(rules.services[address])
	if err != nil {
		return nil, fmt.Errorf("the rules of node %s for %s: %w", p.Node, address, err)
	}
	slices.SortFunc(found, netip.AddrPort.Compare)
	return slices.Compact(found), nil
}

func (p *Proxy) rules() (*ruleset, error) {
	var text []byte
	err := p.namespace.Do(func() (err error) {
		text, err = exec.CommandContext(p.cluster.tb.Context(), "nft", "--json", "list", "ruleset").Output()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the rules of node %s: %w", p.Node, err)
	}
	rules, err := parseRules(text)
	if err != nil {
		return nil, fmt.Errorf("read the rules of node %s: %w", p.Node, err)
	}
	return rules, nil
}

// parseRules reads what nft prints. Source: libnftables-json(5), and the names that kube-proxy 1.36 gives its maps.
func parseRules(text []byte) (*ruleset, error) {
	var listing struct {
		Nftables []struct {
			Rule *struct {
				Family, Chain string
				Expr          []any
			}
			Map *struct {
				Family, Name string
				Elem         [][]any
			}
		}
	}
	if err := json.Unmarshal(text, &listing); err != nil {
		return nil, err
	}
	rules := &ruleset{
		chains: make(map[chain][]any), services: make(map[netip.AddrPort]chain), rejected: make(map[netip.AddrPort]struct{}),
	}
	for _, object := range listing.Nftables {
		switch r, m := object.Rule, object.Map; {
		case r != nil:
			c := chain{r.Family, r.Chain}
			rules.chains[c] = append(rules.chains[c], r.Expr...)
		case m != nil && (m.Name == "service-ips" || m.Name == "no-endpoint-services"):
			for _, element := range m.Elem {
				if err := rules.addService(m.Family, m.Name, element); err != nil {
					return nil, fmt.Errorf("map %s: %w", m.Name, err)
				}
			}
		}
	}
	return rules, nil
}

// addService reads an element of a map from cluster IP, protocol and port to a verdict.
func (r *ruleset) addService(family, mapName string, element []any) error {
	if len(element) != 2 {
		return fmt.Errorf("%v is not a key and a verdict", element)
	}
	key := element[0]
	if commented := field(field(key, "elem"), "val"); commented != nil {
		key = commented
	}
	concat, ok := field(key, "concat").([]any)
	if !ok || len(concat) != 3 {
		return fmt.Errorf("key %v is not an address, a protocol and a port", key)
	}
	if concat[1] != "tcp" {
		return nil
	}
	address, err := addrPort(concat[0], concat[2])
	if err != nil {
		return err
	}
	if mapName == "no-endpoint-services" {
		r.rejected[address] = struct{}{}
		return nil
	}
	target, ok := field(field(element[1], "goto"), "target").(string)
	if !ok {
		return fmt.Errorf("the verdict for %s leads nowhere: %v", address, element[1])
	}
	r.services[address] = chain{family, target}
	return nil
}

// follow gives where the rules of a chain, and of those that they lead to, send connections.
func (r *ruleset) follow(c chain) ([]netip.AddrPort, error) {
	var found []netip.AddrPort
	err := walk(r.chains[c], func(key string, value any) error {
		var more []netip.AddrPort
		var err error
		switch key {
		case "goto", "jump":
			target, ok := field(value, "target").(string)
			if !ok {
				return fmt.Errorf("a verdict without a target: %v", value)
			}
			more, err = r.follow(chain{c.family, target})
		case "dnat":
			more, err = destinations(value)
		}
		found = append(found, more...)
		return err
	})
	return found, err
}

// destinations reads the operand of dnat: one address and port, or a map from a random number to several.
func destinations(dnat any) ([]netip.AddrPort, error) {
	if address, ok := field(dnat, "addr").(string); ok {
		one, err := addrPort(address, field(dnat, "port"))
		return []netip.AddrPort{one}, err
	}
	var found []netip.AddrPort
	err := walk(field(dnat, "addr"), func(key string, value any) error {
		if key != "concat" {
			return nil
		}
		pair, ok := value.([]any)
		if !ok || len(pair) != 2 {
			return fmt.Errorf("%v is not an address and a port", value)
		}
		one, err := addrPort(pair[0], pair[1])
		found = append(found, one)
		return err
	})
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("dnat %v leads nowhere", dnat)
	}
	return found, err
}

// walk visits every key of every object in a JSON value, outer ones first.
func walk(value any, visit func(key string, value any) error) error {
	switch v := value.(type) {
	case []any:
		for _, part := range v {
			if err := walk(part, visit); err != nil {
				return err
			}
		}
	case map[string]any:
		for key, part := range v {
			if err := visit(key, part); err != nil {
				return err
			}
			if err := walk(part, visit); err != nil {
				return err
			}
		}
	}
	return nil
}

// field is a member of a JSON object; nil when the value has none of this name.
func field(value any, name string) any {
	object, _ := value.(map[string]any)
	return object[name]
}

func addrPort(address, port any) (netip.AddrPort, error) {
	text, isText := address.(string)
	number, isNumber := port.(float64)
	if !isText || !isNumber {
		return netip.AddrPort{}, fmt.Errorf("%v, %v is not an address and a port", address, port)
	}
	a, err := netip.ParseAddr(text)
	if err != nil {
		return netip.AddrPort{}, err
	}
	return netip.AddrPortFrom(a, uint16(number)), nil
}
