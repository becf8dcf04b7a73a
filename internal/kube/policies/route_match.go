package policies

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weir-lb/weir/internal/core/policy"
)

// methods are those of the Gateway API.
const methods = " GET HEAD POST PUT DELETE CONNECT OPTIONS TRACE PATCH "

func (c *routeReader) httpMatch(path string, in *gatewayv1.HTTPRouteMatch) (policy.Match, bool) {
	m := policy.Match{Path: &policy.PathMatch{Type: policy.MatchPrefix, Value: "/"}} // the CRD's default
	if in.Path != nil {
		*m.Path = policy.PathMatch{
			Type: policy.MatchType(deref(in.Path.Type, gatewayv1.PathMatchPathPrefix)), Value: deref(in.Path.Value, "/"),
		}
	}
	if !c.isPath(path+".path", m.Path) {
		return m, false
	}
	if m.Method = string(deref(in.Method, "")); m.Method != "" && !strings.Contains(methods, " "+m.Method+" ") {
		c.report(path+".method", "%q is none of%s: the match is left out", short(m.Method), strings.TrimRight(methods, " "))
		return m, false
	}
	var ok bool
	headers := make([]policy.ValueMatch, 0, len(in.Headers))
	for _, h := range in.Headers {
		headers = append(headers, policy.ValueMatch{
			Type: policy.MatchType(deref(h.Type, gatewayv1.HeaderMatchExact)), Name: string(h.Name), Value: h.Value,
		})
	}
	if m.Headers, ok = c.conditions(path+".headers", headers, headerKey); !ok {
		return m, false
	}
	query := make([]policy.ValueMatch, 0, len(in.QueryParams))
	for _, q := range in.QueryParams {
		query = append(query, policy.ValueMatch{
			Type: policy.MatchType(deref(q.Type, gatewayv1.QueryParamMatchExact)), Name: string(q.Name), Value: q.Value,
		})
	}
	m.Query, ok = c.conditions(path+".queryParams", query, queryKey)
	return m, ok
}

func (c *routeReader) grpcMatch(path string, in *gatewayv1.GRPCRouteMatch) (policy.Match, bool) {
	var m policy.Match
	if in.Method != nil {
		at, ok := c.grpcPath(path+".method", in.Method)
		if !ok {
			return m, false
		}
		m.Path = at
	}
	headers := make([]policy.ValueMatch, 0, len(in.Headers))
	for _, h := range in.Headers {
		headers = append(headers, policy.ValueMatch{
			Type: policy.MatchType(deref(h.Type, gatewayv1.GRPCHeaderMatchExact)), Name: string(h.Name), Value: h.Value,
		})
	}
	var ok bool
	m.Headers, ok = c.conditions(path+".headers", headers, headerKey)
	return m, ok
}

// grpcPath makes the path /SERVICE/METHOD of a match, of which either part may be missing.
func (c *routeReader) grpcPath(path string, in *gatewayv1.GRPCMethodMatch) (*policy.PathMatch, bool) {
	service, method := deref(in.Service, ""), deref(in.Method, "")
	if service == "" && method == "" {
		c.report(path, "it names neither a service nor a method: the match is left out")
		return nil, false
	}
	var m *policy.PathMatch
	switch kind := deref(in.Type, gatewayv1.GRPCMethodMatchExact); {
	case kind == gatewayv1.GRPCMethodMatchRegularExpression:
		if !c.isExpression(path+".service", service) || !c.isExpression(path+".method", method) {
			return nil, false
		}
		m = &policy.PathMatch{Type: policy.MatchRegex, Value: "/" + oneElement(service) + "/" + oneElement(method)}
	case kind != gatewayv1.GRPCMethodMatchExact:
		c.report(path+".type", "%q is neither Exact nor RegularExpression: the match is left out", short(string(kind)))
		return nil, false
	case strings.Contains(service+method, "/"):
		c.report(path, "a service or method has no %q: the match is left out", "/")
		return nil, false
	case service == "":
		m = &policy.PathMatch{Type: policy.MatchRegex, Value: "/[^/]+/" + regexp.QuoteMeta(method)}
	case method == "":
		m = &policy.PathMatch{Type: policy.MatchPrefix, Value: "/" + service}
	default:
		m = &policy.PathMatch{Type: policy.MatchExact, Value: "/" + service + "/" + method}
	}
	return m, c.isPath(path, m)
}

// oneElement gives what matches an element of a path; any for no expression.
func oneElement(expression string) string {
	if expression == "" {
		return "[^/]+"
	}
	return "(?:" + expression + ")"
}

// isPath reports a path that cannot be compared with.
func (c *routeReader) isPath(field string, m *policy.PathMatch) bool {
	switch m.Type {
	case policy.MatchRegex:
		return c.isExpression(field+".value", m.Value)
	case policy.MatchExact, policy.MatchPrefix:
	default:
		c.report(field+".type", "%q is none of Exact, PathPrefix, RegularExpression: the match is left out", short(string(m.Type)))
		return false
	}
	if len(m.Value) > maxPathLength {
		c.report(field+".value", "it is longer than %d bytes: the match is left out", maxPathLength)
		return false
	}
	if why := badPath(m.Value); why != "" {
		c.report(field+".value", "%q %s: the match is left out", short(m.Value), why)
		return false
	}
	return true
}

// badPath says why no request has such a path, as the Gateway API's CRD does.
func badPath(path string) string {
	if !strings.HasPrefix(path, "/") {
		return "does not begin with a slash"
	}
	for _, part := range []string{"//", "/./", "/../", "#", "?"} {
		if strings.Contains(path, part) {
			return fmt.Sprintf("has %q in it", part)
		}
	}
	if strings.Contains(strings.ToLower(path), "%2f") {
		return "has an escaped slash in it"
	}
	if strings.HasSuffix(path, "/.") || strings.HasSuffix(path, "/..") {
		return "ends in a dot element"
	}
	for i := range len(path) {
		if path[i] <= ' ' || path[i] >= 0x7f {
			return "has a sign in it that paths escape"
		}
	}
	return ""
}

// isExpression reports what is no regular expression of RE2, alone or as a part of another, and what is one that takes too
// much memory, by itself or with those before it: each data plane compiles them all.
func (c *routeReader) isExpression(field, text string) bool {
	if len(text) > maxExpression {
		c.report(field, "an expression is longer than %d bytes: the match is left out", maxExpression)
		return false
	}
	_, err := syntax.Parse(text, syntax.Perl)
	grouped, errGrouped := syntax.Parse("(?:"+text+")", syntax.Perl)
	if err != nil || errGrouped != nil {
		c.report(field, "%q is no regular expression: the match is left out", short(text))
		return false
	}
	program, err := syntax.Compile(grouped.Simplify())
	if err != nil || len(program.Inst) > maxProgram-c.steps {
		c.report(field, "%q is too large an expression, by itself or with those before it: the match is left out", short(text))
		return false
	}
	c.steps += len(program.Inst)
	return true
}

// headerKey makes names of headers that mean the same the same; false for what is none (RFC 9110, section 5.6.2).
func headerKey(name string) (string, bool) {
	for i := range len(name) {
		b := name[i]
		isLetter := b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9'
		if !isLetter && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(b)) {
			return "", false
		}
	}
	return strings.ToLower(name), name != ""
}

// queryKey is headerKey for query parameters, which may have any name.
func queryKey(name string) (string, bool) { return name, name != "" }

// conditions checks conditions on values. Of several on one name only the first counts, as the Gateway API has it.
func (c *routeReader) conditions(
	path string, in []policy.ValueMatch, key func(string) (string, bool),
) (out []policy.ValueMatch, ok bool) {
	if len(in) > maxConditions {
		c.report(path, "there are %d, at most %d are allowed: the match is left out", len(in), maxConditions)
		return nil, false
	}
	known := make(map[string]bool, len(in))
	for i, v := range in {
		at := fmt.Sprintf("%s[%d]", path, i)
		name, isName := key(v.Name)
		switch {
		case !isName || len(name) > maxNameLength:
			c.report(at+".name", "%q is no name: the match is left out", short(v.Name))
			return nil, false
		case known[name]:
			c.report(at+".name", "%q is compared already: left out", v.Name)
			continue
		case len(v.Value) > maxValueLength:
			c.report(at+".value", "it is longer than %d bytes: the match is left out", maxValueLength)
			return nil, false
		case v.Type != policy.MatchExact && v.Type != policy.MatchRegex:
			c.report(at+".type", "%q is neither Exact nor RegularExpression: the match is left out", short(string(v.Type)))
			return nil, false
		case v.Type == policy.MatchRegex && !c.isExpression(at+".value", v.Value):
			return nil, false
		}
		known[name] = true
		out = append(out, v)
	}
	return out, true
}
