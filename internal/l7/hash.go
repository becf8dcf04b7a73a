package l7

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/weir-lb/weir/internal/core/hash"
	"github.com/weir-lb/weir/internal/core/policy"
)

// HashRules say what the requests of a upstream are hashed by: those of a route by its own policies, all others by those of
// the service. The zero value says nothing: requests have no key. It is immutable and safe for concurrent use.
type HashRules struct {
	steps  []step
	routes []routeRule // the first that matches counts
}

// step is one hash policy. Only what its type needs is set.
type step struct {
	from     policy.HashPolicyType
	name     string      // of the cookie, query parameter or filter state key
	header   fieldName   // of the header
	field    field       // of the header
	state    stateKey    // of the filter state
	cookie   *cookieRule // nil: none is generated
	terminal bool
}

// CompileHash makes rules of a service's hash policies and those of its routes, which are compared in their order.
//
// Errors: a policy of an unknown type or without the name that its type needs, a cookie that cannot be written, and a
// match that cannot be understood; the policies' validation finds all of them before.
func CompileHash(policies []policy.HashPolicy, routes []policy.RouteHash) (HashRules, error) {
	steps, err := compileSteps(policies)
	if err != nil {
		return HashRules{}, err
	}
	rules := HashRules{steps: steps}
	for i := range routes {
		rule, err := compileRoute(&routes[i])
		if err != nil {
			return HashRules{}, fmt.Errorf("route %s: %w", routes[i].Route, err)
		}
		rules.routes = append(rules.routes, rule)
	}
	return rules, nil
}

func compileSteps(policies []policy.HashPolicy) ([]step, error) {
	var steps []step
	for i := range policies {
		next, err := compileStep(&policies[i])
		if err != nil {
			return nil, fmt.Errorf("hash policy %d: %w", i, err)
		}
		steps = append(steps, next)
	}
	return steps, nil
}

func compileStep(p *policy.HashPolicy) (step, error) {
	s := step{from: p.Type, name: p.Name(), terminal: p.Terminal != nil && *p.Terminal}
	if s.name == "" && p.Type != policy.HashSourceIP {
		return s, fmt.Errorf("%s without a name", p.Type)
	}
	switch p.Type {
	case policy.HashHeader:
		s.header, s.field = fieldOf(s.name)
	case policy.HashCookie:
		cookie, err := compileCookie(p.Cookie)
		if err != nil {
			return s, err
		}
		s.cookie = cookie
	case policy.HashFilterState:
		s.state = stateKeyOf(s.name)
	case policy.HashSourceIP, policy.HashQueryParameter:
	default:
		return s, fmt.Errorf("type %q: want Header, Cookie, SourceIP, QueryParameter or FilterState", p.Type)
	}
	return s, nil
}

// HashesConnections tells whether a hash policy finds on a TCP connection what it asks for: SourceIP does, and filter state
// of the connection. All others have no effect there.
func HashesConnections(p policy.HashPolicy) bool {
	return p.Type == policy.HashSourceIP || p.Type == policy.HashFilterState && slices.ContainsFunc(FilterStateKeys(),
		func(k FilterStateKey) bool { return k.Connection && k.Name == p.Name() })
}

// NeedsFilter tells whether a hash policy asks for filter state that only a trusted filter can give.
func NeedsFilter(p policy.HashPolicy) bool {
	return p.Type == policy.HashFilterState && stateKeyOf(p.Name()) == told
}

// IsEmpty tells whether no request gets a key.
func (h *HashRules) IsEmpty() bool { return len(h.steps) == 0 && len(h.routes) == 0 }

// key is what a request should stick to, and the cookies that make the client keep it.
type key struct {
	hash    uint64
	ok      bool     // there is a hash
	cookies []string // Set-Cookie values; nil for most requests
}

// add takes one more hash in. The rotation makes the order count, and equal hashes not cancel each other.
func (k *key) add(next uint64) {
	if k.ok {
		next ^= bits.RotateLeft64(k.hash, 1)
	}
	k.hash, k.ok = next, true
}

// key makes the key of a request, or of a TCP connection if r is nil: then routes, and what only requests have, do not
// count. It makes no garbage but for generated cookies, for a field or a cookie header with more than fewValues values,
// and for what a regular expression or an escaped query parameter of a route's match needs.
//
// Source: the order and the combination of hash policies are Envoy's.
func (h *HashRules) key(c *client, r *request) key {
	steps := h.steps
	if r != nil {
		for i := range h.routes {
			if h.routes[i].matches(r) {
				steps = h.routes[i].steps
				break
			}
		}
	}
	var done key
	for i := range steps {
		s := &steps[i]
		if next, ok := s.hash(c, r, &done); ok {
			done.add(next)
		}
		if s.terminal && done.ok {
			break
		}
	}
	return done
}

// hash makes the hash of one policy; false if the request does not have what it asks for. A generated cookie is noted in
// done.
func (s *step) hash(c *client, r *request, done *key) (uint64, bool) {
	switch {
	case s.from == policy.HashSourceIP:
		return c.hashAddr()
	case s.from == policy.HashFilterState:
		return s.hashState(c, r)
	case r == nil:
		return 0, false
	case s.from == policy.HashHeader:
		return s.hashHeader(r)
	case s.from == policy.HashCookie:
		return s.hashCookie(c, r, done)
	default:
		value, ok := queryValue(r.query(), s.name)
		return hashText(value), ok
	}
}

// hashText and hashBytes are what everything is hashed by.
func hashText(s string) uint64  { return hash.XXH64String(0, s) }
func hashBytes(b []byte) uint64 { return hash.XXH64(0, b) }

// hashAddr hashes the client's address as text: without port, IPv4 as such.
func (c *client) hashAddr() (uint64, bool) {
	if !c.remote.IsValid() {
		return 0, false
	}
	var text [textBytes]byte
	return hashBytes(c.remote.Addr().AppendTo(text[:0])), true
}

// textBytes hold two addresses with ports.
const textBytes = 96

// field tells apart header fields that a request's view has elsewhere.
type field uint8

const (
	ordinaryField field = iota
	hostField           // Host, and Envoy's :authority
	targetField         // Envoy's :path: path and query as they were sent
	methodField         // Envoy's :method
)

// fieldOf understands the name of a header field.
func fieldOf(name string) (fieldName, field) {
	spelled := nameOf(name)
	switch spelled.canonical {
	case "Host", ":authority":
		return spelled, hostField
	case ":path":
		return spelled, targetField
	case ":method":
		return spelled, methodField
	default:
		return spelled, ordinaryField
	}
}

// values gives a field's values in their order of arrival; few is where those are put that have no slice of their own.
func (f field) values(name fieldName, r *request, few []string) []string {
	switch f {
	case hostField:
		return append(few, r.authority)
	case targetField:
		return append(few, r.target)
	case methodField:
		return append(few, r.method)
	default:
		return r.fields.values(name, few)
	}
}

// fewValues is how many values of a field are sorted without garbage.
const fewValues = 8

// hashHeader hashes a field's values, sorted, each with the hash of those before as its seed: an intermediary that reorders repeated
// fields on the way changes nothing. A list within one field is one value, and so are the bytes of a gRPC "-bin" field as
// they are on the wire.
func (s *step) hashHeader(r *request) (uint64, bool) {
	var few [fewValues]string
	values := s.field.values(s.header, r, few[:0])
	if len(values) == 0 {
		return 0, false
	}
	if len(values) > 1 {
		values = append(few[:0], values...) // the request's own slice keeps its order for the endpoint
		slices.Sort(values)
	}
	var chained uint64
	for _, value := range values {
		chained = hash.XXH64String(chained, value)
	}
	return chained, true
}
