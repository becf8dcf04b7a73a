package mesh

import (
	"fmt"

	"github.com/weir-lb/weir/internal/core/policy"
)

// labelHash is the tag that the specification proposes for what identifies an endpoint on a ring or table.
const labelHash = "kuma.io/hash"

// loadBalancer reads how endpoints are chosen.
func (e *entry) loadBalancer(v value) {
	lb := new(policy.LoadBalancer)
	if e.read("loadBalancer", v, lb) == nil {
		return
	}
	e.rule.Conf.LoadBalancer = lb
	if lb.Type.IsHashing() {
		e.rule.Conf.EndpointHashKey = &policy.EndpointHashKey{Type: policy.HashKeyLabel, Key: new(labelHash)}
	}
	if r := lb.RingHash; r != nil && r.HashFunction != nil {
		switch string(*r.HashFunction) {
		case "XX_HASH":
			r.HashFunction = new(policy.XXHash)
		case "MURMUR_HASH_2":
			r.HashFunction = new(policy.MurmurHash2)
		}
	}
	if m := lb.Maglev; m != nil && m.TableSize != nil && *m.TableSize > 0 && e.options.Strictness == Compatible {
		if prime, ok := policy.NextPrime(*m.TableSize); ok && prime != *m.TableSize {
			e.warn(e.spelled["loadBalancer.maglev.tableSize"],
				fmt.Sprintf("%d is not prime: the next prime, %d, is taken", *m.TableSize, prime))
			m.TableSize = &prime
		}
	}
}
