package mesh

import (
	"fmt"
	"math"

	"github.com/weir-lb/weir/internal/core/policy"
)

// labelHash is the tag that the specification proposes for what identifies an endpoint on a ring or table.
const labelHash = "kuma.io/hash"

// loadBalancer reads how endpoints are chosen.
func (e *entry) loadBalancer(v value) {
	m := v.fields("type", "leastRequest", "ringHash", "maglev")
	if m == nil {
		return
	}
	const at = "loadBalancer"
	e.spell(at, v)
	lb := &policy.LoadBalancer{Type: policy.Algorithm(m.at("type").required())}
	e.spell(at+".type", m.at("type"))
	e.rule.Conf.LoadBalancer = lb
	lb.LeastRequest = e.leastRequest(at+".leastRequest", m.at("leastRequest"))
	lb.RingHash = e.ringHash(at+".ringHash", m.at("ringHash"))
	lb.Maglev = e.maglev(at+".maglev", m.at("maglev"))
	if lb.Type.IsHashing() {
		e.rule.Conf.EndpointHashKey = &policy.EndpointHashKey{Type: policy.HashKeyLabel, Key: labelHash}
	}
}

func (e *entry) leastRequest(at string, v value) *policy.LeastRequestConf {
	m := v.fields("choiceCount", "activeRequestBias")
	if m == nil {
		return nil
	}
	e.spell(at, v)
	conf := &policy.LeastRequestConf{ActiveRequestBias: m.at("activeRequestBias").decimal()}
	if n := m.at("choiceCount").whole(math.MaxInt32); n != nil {
		count := int(*n) //nolint:gosec // it is at most MaxInt32.
		conf.ChoiceCount = &count
	}
	return conf
}

func (e *entry) ringHash(at string, v value) *policy.RingHashConf {
	m := v.fields("hashFunction", "minRingSize", "maxRingSize", "hashPolicies")
	if m == nil {
		return nil
	}
	e.spell(at, v)
	conf := &policy.RingHashConf{
		MinRingSize: m.at("minRingSize").whole(math.MaxUint64),
		MaxRingSize: m.at("maxRingSize").whole(math.MaxUint64),
	}
	switch name := m.at("hashFunction").text(); name {
	case "XX_HASH":
		conf.HashFunction = policy.XXHash
	case "MURMUR_HASH_2":
		conf.HashFunction = policy.MurmurHash2
	default:
		conf.HashFunction = policy.HashFunction(name)
	}
	e.hashPolicies(m.at("hashPolicies"))
	return conf
}

func (e *entry) maglev(at string, v value) *policy.MaglevConf {
	m := v.fields("tableSize", "hashPolicies")
	if m == nil {
		return nil
	}
	e.spell(at, v)
	size := m.at("tableSize")
	conf := &policy.MaglevConf{TableSize: size.whole(math.MaxUint64)}
	e.spell(at+".tableSize", size)
	if n := conf.TableSize; n != nil && *n > 0 && e.options.Strictness == Compatible {
		if prime, ok := policy.NextPrime(*n); ok && prime != *n {
			e.warn(size.path, fmt.Sprintf("%d is not prime: the next prime, %d, is taken", *n, prime))
			conf.TableSize = &prime
		}
	}
	e.hashPolicies(m.at("hashPolicies"))
	return conf
}
