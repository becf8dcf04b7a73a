package policy

import (
	"math"
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
		{"locality", c.Locality.saysSomething()},
		{pathOutlier, c.OutlierDetection != nil},
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
	v.leastRequest(block(b.LeastRequest))
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

func (v *validator) leastRequest(l *LeastRequestConf) {
	if n := l.ChoiceCount; n != nil && (*n < 2 || *n > MaxChoiceCount) {
		v.refuse("loadBalancer.leastRequest.choiceCount", "is %d: want 2 to %d", *n, MaxChoiceCount)
	}
	if b := l.ActiveRequestBias; b != nil && !(*b >= 0 && !math.IsInf(*b, 0)) {
		v.refuse("loadBalancer.leastRequest.activeRequestBias", "is %v: want a finite number of at least 0", *b)
	}
}

func (v *validator) ringHash(r *RingHashConf) {
	switch r.HashFunction {
	case "", XXHash, MurmurHash2:
	default:
		v.refuse("loadBalancer.ringHash.hashFunction", "%.80q is not known: want XXHash or MurmurHash2", r.HashFunction)
	}
	low := v.ringSize(pathMinRingSize, r.MinRingSize)
	high := v.ringSize(pathMaxRingSize, r.MaxRingSize)
	if low && high && *r.MinRingSize > *r.MaxRingSize {
		v.refuse(pathMinRingSize, "is %d, above the maxRingSize of %d", *r.MinRingSize, *r.MaxRingSize)
	}
}

// ringSize tells whether a size is there and sound.
func (v *validator) ringSize(path string, n *uint64) bool {
	if n != nil && (*n < 1 || *n > MaxRingSize) {
		v.refuse(path, "is %d: want 1 to %d", *n, MaxRingSize)
		return false
	}
	return n != nil
}

func (v *validator) maglev(m *MaglevConf) {
	switch n := m.TableSize; {
	case n == nil:
	case *n > MaxTableSize:
		v.refuse(pathTableSize, "is %d: want a prime number of at most %d", *n, MaxTableSize)
	case !IsPrime(*n):
		// The largest size is a prime, so that there is a next one.
		next, _ := NextPrime(*n)
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
		if h.Terminal && (h.Type == HashSourceIP || h.Type == HashCookie && h.TTL != nil) {
			final = i
		}
	}
}

func (v *validator) hashPolicy(path string, h *HashPolicy) {
	if h.Type != HashCookie && (h.TTL != nil || h.Path != "") {
		v.refuse(path+".cookie", "belongs to type Cookie: the type is %.80q", h.Type)
	}
	switch h.Type {
	case HashHeader:
		// Pseudo-headers, as :authority, are hashed too.
		if v.name(path+".header.name", h.Name, MaxNameLength) && !isToken(strings.TrimPrefix(h.Name, ":")) {
			v.refuse(path+".header.name", "%.80q is no header's name", h.Name)
		}
	case HashCookie:
		v.cookie(path+".cookie", h)
	case HashQueryParameter:
		v.name(path+".queryParameter.name", h.Name, MaxNameLength)
	case HashFilterState:
		v.name(path+".filterState.key", h.Name, MaxNameLength)
	case HashSourceIP:
		if h.Name != "" {
			v.refuse(path, "of type SourceIP has no name, yet there is %.80q", h.Name)
		}
	case "":
		v.refuse(path+".type", "must not be empty")
	default:
		v.refuse(path+".type", "%.80q is not known: want Header, Cookie, SourceIP, QueryParameter or FilterState", h.Type)
	}
}

func (v *validator) cookie(path string, h *HashPolicy) {
	if v.name(path+".name", h.Name, MaxNameLength) && !isToken(h.Name) {
		v.refuse(path+".name", "%.80q is no cookie's name", h.Name)
	}
	switch {
	case h.TTL == nil:
	case *h.TTL < 0:
		v.refuse(path+".ttl", "is %s: want at least 0", durationText(*h.TTL))
	case *h.TTL%time.Second != 0:
		v.warn(path+".ttl", "is %s: only whole seconds count", durationText(*h.TTL))
	}
	switch {
	case h.Path == "":
	case len(h.Path) > MaxPathLength:
		v.refuse(path+".path", "has %d bytes: want at most %d", len(h.Path), MaxPathLength)
	case h.Path[0] != '/':
		v.refuse(path+".path", "%.80q does not begin with a slash", h.Path)
	case strings.ContainsFunc(h.Path, isOutsidePath):
		// It would end the attribute and begin another of the header that weir writes.
		v.refuse(path+".path", "%.80q holds a character that a cookie's path cannot", h.Path)
	case h.TTL == nil:
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
		if k.Key != "" {
			v.refuse("endpointHashKey.key", "belongs to types Label and Annotation: the type is %s", k.Type)
		}
	case HashKeyLabel, HashKeyAnnotation:
		v.key("endpointHashKey.key", k.Key)
	case "":
		v.refuse("endpointHashKey.type", "must not be empty")
	default:
		v.refuse("endpointHashKey.type", "%.80q is not known: want Address, PodName, Label or Annotation", k.Type)
	}
}

func (v *validator) slowStart(c *Conf) {
	s := c.SlowStart
	if s == nil {
		return
	}
	if s.Window <= 0 {
		v.refuse("slowStart.window", "is %s: want more than 0", durationText(s.Window))
	}
	v.percent("slowStart.minWeightPercent", s.MinWeightPercent)
	v.above("slowStart.aggression", s.Aggression)
	if b := c.LoadBalancer; b != nil && !b.Type.startsSlowly() {
		v.refuse(pathSlowStart, "belongs to RoundRobin and LeastRequest: the type is %.80q", b.Type)
	}
}
