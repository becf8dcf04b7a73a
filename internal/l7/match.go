package l7

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/weir-lb/weir/internal/core/policy"
)

// routeRule is one route's rule: which requests it is about, and how they are hashed.
type routeRule struct {
	hosts   []string // lower case; a wildcard begins with "*."; empty: any
	method  string   // empty: any
	path    textMatch
	prefix  string // by path elements, without the last slash; only where isPrefix
	headers []valueMatch
	query   []valueMatch
	steps   []step

	isPrefix bool
}

// textMatch compares text. The zero value matches everything.
type textMatch struct {
	exact string
	regex *regexp.Regexp
	any   bool // neither counts
}

// valueMatch compares a field or a query parameter.
type valueMatch struct {
	name   string    // of a query parameter
	header fieldName // of a header
	field  field     // of a header
	textMatch
}

func compileRoute(p *policy.RouteHash) (routeRule, error) {
	rule := routeRule{method: p.Match.Method, path: textMatch{any: true}}
	var err error
	if rule.steps, err = compileSteps(p.HashPolicies); err != nil {
		return rule, err
	}
	for _, host := range p.Hosts {
		rule.hosts = append(rule.hosts, strings.ToLower(strings.TrimSuffix(host, ".")))
	}
	if p.Match.Path != nil {
		if err := rule.compilePath(p.Match.Path); err != nil {
			return rule, err
		}
	}
	for _, want := range p.Match.Headers {
		next, err := compileValue(want)
		if err != nil {
			return rule, fmt.Errorf("header %s: %w", want.Name, err)
		}
		next.header, next.field = fieldOf(want.Name)
		rule.headers = append(rule.headers, next)
	}
	for _, want := range p.Match.Query {
		next, err := compileValue(want)
		if err != nil {
			return rule, fmt.Errorf("query parameter %s: %w", want.Name, err)
		}
		rule.query = append(rule.query, next)
	}
	return rule, nil
}

func (m *routeRule) compilePath(p *policy.PathMatch) error {
	if p.Type == policy.MatchPrefix {
		m.isPrefix, m.prefix = true, strings.TrimSuffix(p.Value, "/")
		return nil
	}
	path, err := compileText(p.Type, p.Value)
	if err != nil {
		return fmt.Errorf("path: %w", err)
	}
	m.path = path
	return nil
}

func compileValue(p policy.ValueMatch) (valueMatch, error) {
	text, err := compileText(p.Type, p.Value)
	return valueMatch{name: p.Name, textMatch: text}, err
}

// compileText understands a condition. A regular expression has to match the whole text, as with Envoy; it is one of RE2,
// which takes time in proportion to the text.
func compileText(t policy.MatchType, value string) (textMatch, error) {
	switch t {
	case policy.MatchExact:
		return textMatch{exact: value}, nil
	case policy.MatchRegex:
		if _, err := regexp.Compile(value); err != nil { // by itself: the parentheses below must not complete it
			return textMatch{}, err
		}
		regex, err := regexp.Compile(`\A(?:` + value + `)\z`)
		return textMatch{regex: regex}, err
	default:
		return textMatch{}, fmt.Errorf("match type %q is not for this", t)
	}
}

func (m *textMatch) matches(text string) bool {
	switch {
	case m.any:
		return true
	case m.regex != nil:
		return m.regex.MatchString(text)
	default:
		return m.exact == text
	}
}

// matches tells whether the rule is about a request.
func (m *routeRule) matches(r *request) bool {
	if m.method != "" && m.method != r.method || !m.matchesHost(r.authority) || !m.matchesPath(r.path()) {
		return false
	}
	for i := range m.headers {
		if !m.headers[i].matchesHeader(r) {
			return false
		}
	}
	for i := range m.query {
		if !m.query[i].matchesQuery(r.query()) {
			return false
		}
	}
	return true
}

// matchesHost compares without the port and in any letter case. A wildcard stands for one label or more.
func (m *routeRule) matchesHost(host string) bool {
	host = hostname(host)
	for _, want := range m.hosts {
		suffix, isWild := strings.CutPrefix(want, "*")
		switch {
		case !isWild:
			if strings.EqualFold(host, want) {
				return true
			}
		case suffix == "", len(host) > len(suffix) && strings.EqualFold(host[len(host)-len(suffix):], suffix):
			return true
		}
	}
	return len(m.hosts) == 0
}

// hostname takes the port, and the dot of a name that is meant to be complete, off a Host.
func hostname(host string) string {
	if colon := strings.LastIndexByte(host, ':'); colon > strings.LastIndexByte(host, ']') {
		host = host[:colon]
	}
	return strings.TrimSuffix(host, ".")
}

func (m *routeRule) matchesPath(path string) bool {
	if !m.isPrefix {
		return m.path.matches(path)
	}
	rest, ok := strings.CutPrefix(path, m.prefix)
	return ok && (rest == "" || rest[0] == '/')
}

// matchesHeader compares a field; several of one name count as one list.
func (m *valueMatch) matchesHeader(r *request) bool {
	var few [fewValues]string
	values := m.field.values(m.header, r, few[:0])
	switch len(values) {
	case 0:
		return false
	case 1:
		return m.matches(values[0])
	default:
		return m.matches(strings.Join(values, ","))
	}
}

// matchesQuery compares the first parameter of the name, with what is escaped in it decoded.
func (m *valueMatch) matchesQuery(query string) bool {
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		name, value, _ := strings.Cut(pair, "=")
		if unescape(name) == m.name {
			return m.matches(unescape(value))
		}
	}
	return false
}

// unescape decodes a part of a query; what cannot be decoded stays.
func unescape(part string) string {
	if !strings.ContainsAny(part, "%+") {
		return part
	}
	if decoded, err := url.QueryUnescape(part); err == nil {
		return decoded
	}
	return part
}

// queryValue finds the first parameter of a name, letter case counting, both as they were sent: nothing is decoded, as
// with Envoy. A parameter without "=" has an empty value.
func queryValue(query, name string) (string, bool) {
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		if key, value, _ := strings.Cut(pair, "="); key == name {
			return value, true
		}
	}
	return "", false
}
