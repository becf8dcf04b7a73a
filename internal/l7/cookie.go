package l7

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/syntax"
)

// cookieRule says how a cookie is generated for clients that have none.
type cookieRule struct {
	before, after string // what a Set-Cookie has before and after the value
}

// compileCookie gives the rule of a cookie with a TTL; nil if it has none.
//
// Source: the attributes and their order are Envoy's. Max-Age counts whole seconds; below one there is no Max-Age, which
// makes a session cookie.
func compileCookie(c *policy.CookieKey) (*cookieRule, error) {
	if !syntax.IsToken(c.Name) {
		return nil, fmt.Errorf("cookie name %q: want a token", c.Name)
	}
	var path string
	if c.Path != nil {
		path = *c.Path
	}
	if strings.ContainsFunc(path, func(c rune) bool { return c == ';' || c < ' ' || c == 0x7f }) {
		return nil, fmt.Errorf("path %q of cookie %s: want no semicolon and no control character", path, c.Name)
	}
	if c.TTL == nil {
		return nil, nil
	}
	if *c.TTL < 0 {
		return nil, fmt.Errorf("ttl %v of cookie %s: want 0 or more", *c.TTL, c.Name)
	}
	rule := cookieRule{before: c.Name + `="`, after: `"`}
	if seconds := int64(time.Duration(*c.TTL) / time.Second); seconds > 0 {
		rule.after += "; Max-Age=" + strconv.FormatInt(seconds, 10)
	}
	if path != "" {
		rule.after += "; Path=" + path
	}
	rule.after += "; HttpOnly"
	return &rule, nil
}

// hashCookie hashes the cookie that the client sent, or one that it is given if the policy has a TTL. The generated value
// depends on the connection's addresses alone, so that all requests on one connection, and all steps that name the cookie,
// agree before the client sends it back.
func (s *step) hashCookie(c *client, r *request, done *key) (uint64, bool) {
	var few [fewValues]string
	if value := cookieValue(r.fields.values(fieldName{"Cookie", "cookie"}, few[:0]), s.name); value != "" {
		return hashText(value), true
	}
	if s.cookie == nil {
		return 0, false
	}
	value := c.cookie()
	if set := s.cookie.before + string(value[:]) + s.cookie.after; !slices.Contains(done.cookies, set) {
		done.cookies = append(done.cookies, set)
	}
	return hashBytes(value[:]), true
}

// cookie is the value of cookies that are generated on this connection: 16 lower-case hexadecimal digits.
func (c *client) cookie() (value [16]byte) {
	var text [textBytes]byte
	var sum [8]byte
	both := c.local.AppendTo(c.remote.AppendTo(text[:0]))
	binary.BigEndian.PutUint64(sum[:], hashBytes(both))
	hex.Encode(value[:], sum[:])
	return value
}

// cookieValue finds the first cookie of that name in Cookie fields, without the quotes that may be around it; empty if
// there is none. What is no cookie is passed over.
func cookieValue(fields []string, name string) string {
	for _, rest := range fields {
		for rest != "" {
			var pair string
			pair, rest, _ = strings.Cut(rest, ";")
			key, value, ok := strings.Cut(pair, "=")
			if !ok || strings.Trim(key, " \t") != name {
				continue
			}
			value = strings.Trim(value, " \t")
			if n := len(value); n > 1 && value[0] == '"' && value[n-1] == '"' {
				value = value[1 : n-1]
			}
			return value
		}
	}
	return ""
}
