package policy

import (
	"reflect"
	"strings"
	"time"
)

// onlyHashPolicies refuses all else of a policy about a route: an algorithm belongs to a service, which many routes lead to.
func (v *validator) onlyHashPolicies(c *Conf) {
	for _, field := range []struct {
		path string
		said bool
	}{
		{pathLoadBalancer, c.LoadBalancer != nil},
		{pathEndpointHashKey, c.EndpointHashKey != nil},
		{"locality", !reflect.ValueOf(c.Locality).IsZero()},
		{"outlierDetection", c.OutlierDetection != nil},
		{pathSlowStart, c.SlowStart != nil},
		{pathPanic, c.PanicThreshold != nil},
	} {
		if field.said {
			v.refuse(field.path, "does not belong to a policy about a route: only hashPolicies do")
		}
	}
	if c.HashPolicies == nil {
		v.warn(pathHashPolicies, "is not there: a policy about a route says nothing without it")
	}
}

func (v *validator) loadBalancer(c *Conf) {
	b := c.LoadBalancer
	if b == nil {
		return
	}
	switch b.Type {
	case RoundRobin, LeastRequest, Random, RingHash, Maglev:
	case "":
		v.refuse(pathType, "must not be empty")
	default:
		v.refuse(pathType, "%.80q is not known: want RoundRobin, LeastRequest, RingHash, Maglev or Random", b.Type)
	}
	for _, union := range []struct {
		path string
		of   Algorithm
		said bool
	}{
		{"loadBalancer.leastRequest", LeastRequest, b.LeastRequest != nil},
		{"loadBalancer.ringHash", RingHash, b.RingHash != nil},
		{"loadBalancer.maglev", Maglev, b.Maglev != nil},
	} {
		if union.said && b.Type != union.of {
			v.refuse(union.path, "belongs to type %s: the type is %.80q", union.of, b.Type)
		}
	}
	v.ringHash(block(b.RingHash))
	v.maglev(block(b.Maglev))
	if b.Type.IsHashing() {
		return
	}
	if len(c.HashPolicies) > 0 {
		v.warn(pathHashPolicies, "unused: %.80s does not hash requests", b.Type)
	}
	if c.EndpointHashKey != nil {
		v.warn(pathEndpointHashKey, "unused: %.80s does not hash requests", b.Type)
	}
}

func (v *validator) ringHash(r *RingHashConf) {
	if f := value(r.HashFunction, XXHash); f != XXHash && f != MurmurHash2 {
		v.refuse("loadBalancer.ringHash.hashFunction", "%.80q is not known: want XXHash or MurmurHash2", f)
	}
	least, most := value(r.MinRingSize, 0), value(r.MaxRingSize, MaxRingSize)
	if r.MaxRingSize != nil && least > most && most > 0 && least <= MaxRingSize {
		v.refuse(pathMinRingSize, "is %d, above the maxRingSize of %d", least, most)
	}
}

func (v *validator) maglev(m *MaglevConf) {
	switch n := m.TableSize; {
	case n == nil:
	case *n > MaxTableSize:
		v.refuse(pathTableSize, "is %d: want a prime number of at most %d", *n, MaxTableSize)
	case !IsPrime(*n):
		// The largest size is a prime, so that there is a next one.
		next, _ := NextPrime(max(*n, 2))
		v.refuse(pathTableSize, "is %d, which is not a prime number: the next one is %d", *n, next)
	}
}

func (v *validator) hashPolicies(c *Conf) {
	final := -1
	for i := range v.entries(pathHashPolicies, len(c.HashPolicies), MaxHashPolicies) {
		h, path := &c.HashPolicies[i], pathAt(pathHashPolicies, i)
		v.hashPolicy(path, h)
		if final >= 0 {
			v.warn(path, "unreachable: entry %d is terminal and always makes a hash", final)
			continue
		}
		isCertain := h.Type == HashSourceIP || h.Type == HashCookie && block(h.Cookie).TTL != nil
		if value(h.Terminal, false) && isCertain {
			final = i
		}
	}
}

func (v *validator) hashPolicy(path string, h *HashPolicy) {
	switch h.Type {
	case HashHeader, HashCookie, HashQueryParameter, HashFilterState, HashSourceIP:
	case "":
		v.refuse(path+".type", "must not be empty")
	default:
		v.refuse(path+".type", "%.80q is not known: want Header, Cookie, SourceIP, QueryParameter or FilterState", h.Type)
	}
	for _, b := range []struct {
		of      HashPolicyType
		name    string
		isThere bool
		check   func(path string, h *HashPolicy)
	}{
		{HashHeader, "header", h.Header != nil, v.header},
		{HashCookie, "cookie", h.Cookie != nil, v.cookie},
		{HashQueryParameter, "queryParameter", h.QueryParameter != nil, v.queryParameter},
		{HashFilterState, "filterState", h.FilterState != nil, v.filterState},
	} {
		switch at := path + "." + b.name; {
		case b.isThere && b.of != h.Type:
			v.refuse(at, "goes with type %s only", b.of)
		case b.isThere:
			b.check(at, h)
		case b.of == h.Type:
			v.refuse(at, "is needed with type %s", b.of)
		}
	}
}

// header checks a header's name. Pseudo-headers, as :authority, are hashed too.
func (v *validator) header(path string, h *HashPolicy) {
	if v.name(path+".name", h.Header.Name, MaxNameLength) && !isToken(strings.TrimPrefix(h.Header.Name, ":")) {
		v.refuse(path+".name", "%.80q is no header's name", h.Header.Name)
	}
}

func (v *validator) queryParameter(path string, h *HashPolicy) {
	v.name(path+".name", h.QueryParameter.Name, MaxNameLength)
}

func (v *validator) filterState(path string, h *HashPolicy) {
	v.name(path+".key", h.FilterState.Key, MaxNameLength)
}

func (v *validator) cookie(path string, h *HashPolicy) {
	c := h.Cookie
	if v.name(path+".name", c.Name, MaxNameLength) && !isToken(c.Name) {
		v.refuse(path+".name", "%.80q is no cookie's name", c.Name)
	}
	switch {
	case c.TTL == nil:
	case *c.TTL < 0:
		v.refuse(path+".ttl", "is %s: want at least 0", c.TTL)
	case time.Duration(*c.TTL) > MaxDuration:
		v.refuse(path+".ttl", "is %s or more: want at most 1000000h", c.TTL)
	case time.Duration(*c.TTL)%time.Second != 0:
		v.warn(path+".ttl", "is %s: only whole seconds count", c.TTL)
	}
	if c.Path == nil {
		return
	}
	switch at := *c.Path; {
	case len(at) > MaxPathLength:
		v.refuse(path+".path", "has %d bytes: want at most %d", len(at), MaxPathLength)
	case !strings.HasPrefix(at, "/"):
		v.refuse(path+".path", "%.80q does not begin with a slash", at)
	case strings.ContainsFunc(at, isOutsidePath):
		// It would end the attribute and begin another of the header that weir writes.
		v.refuse(path+".path", "%.80q holds a character that a cookie's path cannot", at)
	case c.TTL == nil:
		v.warn(path+".path", "unused: no cookie is generated without a ttl")
	}
}

// isOutsidePath tells whether a cookie's path cannot hold r (RFC 6265, path-value).
func isOutsidePath(r rune) bool { return r < ' ' || r == ';' || r >= 0x7f }

func (v *validator) endpointHashKey(c *Conf) {
	k := c.EndpointHashKey
	if k == nil {
		return
	}
	switch k.Type {
	case HashKeyAddress, HashKeyPodName:
		if k.Key != nil {
			v.refuse("endpointHashKey.key", "belongs to types Label and Annotation: the type is %s", k.Type)
		}
	case HashKeyLabel, HashKeyAnnotation:
		v.key("endpointHashKey.key", value(k.Key, ""))
	case "":
		v.refuse("endpointHashKey.type", "must not be empty")
	default:
		v.refuse("endpointHashKey.type", "%.80q is not known: want Address, PodName, Label or Annotation", k.Type)
	}
}

func (v *validator) slowStart(c *Conf) {
	if b := c.LoadBalancer; c.SlowStart != nil && b != nil && !startsSlowly(b.Type) {
		v.refuse(pathSlowStart, "belongs to RoundRobin and LeastRequest: the type is %.80q", b.Type)
	}
}

func (v *validator) outlier(o *OutlierDetection) {
	if base, most := o.BaseEjectionTime, o.MaxEjectionTime; base != nil && most != nil && *base > *most {
		v.refuse(pathMaxEjection, "is %s, less than the baseEjectionTime of %s", most, base)
	}
}
