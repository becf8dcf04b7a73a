package mesh

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/topology"
)

// hashPolicies reads the list at one of the places where there may be one: in ringHash, in maglev, or beside
// loadBalancer.
func (e *entry) hashPolicies(v value) {
	items, ok := v.list()
	if !ok {
		return
	}
	if first, ok := e.spelled["hashPolicies"]; ok {
		nested := v.path
		if !strings.Contains(nested, "loadBalancer") {
			nested = first
		}
		e.refuse(nested, "hashPolicies are in two places: leave those beside loadBalancer")
		return
	}
	e.spell("hashPolicies", v)
	e.rule.Conf.HashPolicies = []policy.HashPolicy{}
	for _, item := range items {
		if p, counts := e.hashPolicy(item); counts {
			e.rule.Conf.HashPolicies = append(e.rule.Conf.HashPolicies, p)
		}
	}
}

// The names of a hash policy's types that the model does not have, and of the blocks.
const (
	typeQuery      = "Query"
	typeConnection = "Connection"

	blockHeader         = "header"
	blockCookie         = "cookie"
	blockQuery          = "query"
	blockQueryParameter = "queryParameter"
	blockConnection     = "connection"
	blockFilterState    = "filterState"
)

// hashPolicyTypes has for each type the block that says more about it.
func hashPolicyTypes() map[string]string {
	return map[string]string{
		string(policy.HashHeader):         blockHeader,
		string(policy.HashCookie):         blockCookie,
		string(policy.HashSourceIP):       blockConnection, // may be missing
		typeConnection:                    blockConnection,
		typeQuery:                         blockQuery,
		string(policy.HashQueryParameter): blockQueryParameter,
		string(policy.HashFilterState):    blockFilterState,
	}
}

// hashPolicy reads one policy; counts is false if it is refused or asks for nothing.
func (e *entry) hashPolicy(item value) (p policy.HashPolicy, counts bool) {
	blocks := []string{blockHeader, blockCookie, blockConnection, blockQuery, blockQueryParameter, blockFilterState}
	if !item.isThere() {
		e.refuse(item.path, "want a mapping, got nothing")
		return p, false
	}
	at := fmt.Sprintf("hashPolicies[%d]", len(e.rule.Conf.HashPolicies))
	m := e.read(at, item, &p, blockConnection, blockQuery)
	if m == nil {
		return p, false
	}
	kind := string(p.Type)
	own, known := hashPolicyTypes()[kind]
	if !known {
		if kind != "" {
			e.refuse(m.at("type").path, unknownHashPolicy(kind))
		}
		return p, false
	}
	for _, block := range blocks {
		if v := m.at(block); v.isThere() && block != own {
			e.refuse(v.path, "does not go with type "+kind+": remove one of them")
		}
	}
	block := m.at(own)
	if !block.isThere() && kind != string(policy.HashSourceIP) {
		e.refuse(block.path, "missing: type "+kind+" needs it")
		return p, false
	}
	switch kind {
	case string(policy.HashSourceIP), typeConnection:
		p.Type = policy.HashSourceIP
		return p, e.connection(block)
	case typeQuery:
		p.Type, p.QueryParameter = policy.HashQueryParameter, new(policy.QueryParameterKey)
		e.read(at+"."+blockQueryParameter, block, p.QueryParameter)
	}
	return p, true
}

func unknownHashPolicy(kind string) string {
	types := []string{
		string(policy.HashHeader), string(policy.HashCookie), typeConnection, string(policy.HashSourceIP),
		typeQuery, string(policy.HashQueryParameter), string(policy.HashFilterState),
	}
	slices.Sort(types)
	return fmt.Sprintf("unknown type %s: did you mean %s? All that may be here: %s",
		quote(kind), topology.Near(kind, types)[0], strings.Join(types, ", "))
}

// connection reads which attribute of a connection is hashed: there is only its source address.
func (e *entry) connection(block value) (counts bool) {
	m := block.fields("sourceIP")
	if m == nil {
		return !block.isThere()
	}
	v := m.at("sourceIP")
	is := v.flag()
	if is == nil || *is {
		return true
	}
	e.warn(v.path, "a policy that hashes nothing is left out")
	return false
}
