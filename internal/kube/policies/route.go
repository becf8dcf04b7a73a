package policies

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/convert"
)

// The bounds of a route: those of the Gateway API's own CRDs. Files are checked by nobody else.
const (
	maxParents     = 32
	maxHosts       = 16
	maxRules       = 16
	maxMatches     = 128 // of a whole route
	maxConditions  = 16  // on headers, and on query parameters, of one match
	maxBackends    = 16  // of one rule
	maxPathLength  = 1024
	maxNameLength  = 256
	maxValueLength = 4096
	maxExpression  = 1024
	maxProgram     = 10_000 // steps of all compiled expressions of a route, about 400 KiB; a{1000} has a thousand
)

// HTTPRoute converts a route. What is wrong with it is reported; a condition that cannot be followed takes its match along,
// and a rule that loses its last match is left out, so that no rule is ever about more requests than were meant.
func HTTPRoute(r *gatewayv1.HTTPRoute) (policy.Route, []convert.Problem) {
	c := newRouteReader(policy.TargetHTTPRoute, &r.ObjectMeta)
	c.envelope(&r.Spec.CommonRouteSpec, r.Spec.Hostnames)
	for i := range r.Spec.Rules[:c.atMost("spec.rules", len(r.Spec.Rules), maxRules)] {
		in, path := &r.Spec.Rules[i], fmt.Sprintf("spec.rules[%d]", i)
		rule := policy.RouteRule{Name: c.ruleName(path+".name", in.Name)}
		for j := range in.Matches[:c.atMost(path+".matches", len(in.Matches), maxMatches-c.matches)] {
			if m, ok := c.httpMatch(fmt.Sprintf("%s.matches[%d]", path, j), &in.Matches[j]); ok {
				rule.Matches = append(rule.Matches, m)
			}
		}
		refs := make([]gatewayv1.BackendRef, 0, len(in.BackendRefs))
		for j := range in.BackendRefs {
			refs = append(refs, in.BackendRefs[j].BackendRef)
		}
		rule.Backends = c.backends(path+".backendRefs", refs)
		if len(in.Matches) == 0 {
			rule.Matches = []policy.Match{{Path: &policy.PathMatch{Type: policy.MatchPrefix, Value: "/"}}} // the CRD's default
		}
		c.addRule(path, rule, len(in.Matches))
	}
	return c.route, c.found
}

// GRPCRoute converts a route as HTTPRoute does. Its services and methods become the paths that gRPC puts them in.
func GRPCRoute(r *gatewayv1.GRPCRoute) (policy.Route, []convert.Problem) {
	c := newRouteReader(policy.TargetGRPCRoute, &r.ObjectMeta)
	c.envelope(&r.Spec.CommonRouteSpec, r.Spec.Hostnames)
	for i := range r.Spec.Rules[:c.atMost("spec.rules", len(r.Spec.Rules), maxRules)] {
		in, path := &r.Spec.Rules[i], fmt.Sprintf("spec.rules[%d]", i)
		rule := policy.RouteRule{Name: c.ruleName(path+".name", in.Name)}
		for j := range in.Matches[:c.atMost(path+".matches", len(in.Matches), maxMatches-c.matches)] {
			if m, ok := c.grpcMatch(fmt.Sprintf("%s.matches[%d]", path, j), &in.Matches[j]); ok {
				rule.Matches = append(rule.Matches, m)
			}
		}
		refs := make([]gatewayv1.BackendRef, 0, len(in.BackendRefs))
		for j := range in.BackendRefs {
			refs = append(refs, in.BackendRefs[j].BackendRef)
		}
		rule.Backends = c.backends(path+".backendRefs", refs)
		c.addRule(path, rule, len(in.Matches))
	}
	return c.route, c.found
}

// routeReader makes one route.
type routeReader struct {
	object  convert.Ref
	route   policy.Route
	matches int             // so far, in all rules
	steps   int             // of expressions, so far
	names   map[string]bool // of rules, so far
	found   []convert.Problem
}

func newRouteReader(kind policy.TargetKind, m *metav1.ObjectMeta) *routeReader {
	return &routeReader{
		object: convert.Ref{Kind: string(kind), Namespace: namespaceOf(m), Name: m.Name},
		route: policy.Route{
			Kind: kind, Namespace: namespaceOf(m), Name: m.Name, Created: m.CreationTimestamp.Time,
		},
		names: make(map[string]bool),
	}
}

// namespaceOf gives an object's namespace; objects in files may leave out the default one.
func namespaceOf(m *metav1.ObjectMeta) string {
	if m.Namespace == "" {
		return metav1.NamespaceDefault
	}
	return m.Namespace
}

func (c *routeReader) report(field, format string, args ...any) {
	c.found = append(c.found, convert.Problem{Object: c.object, Field: field, Message: fmt.Sprintf(format, args...)})
}

// atMost bounds the length of a list.
func (c *routeReader) atMost(field string, n, limit int) int {
	limit = max(limit, 0)
	if n > limit {
		c.report(field, "there are %d, at most %d are followed", n, limit)
	}
	return min(n, limit)
}

// addRule adds a rule, unless it had matches and lost them all.
func (c *routeReader) addRule(path string, rule policy.RouteRule, asked int) {
	if asked > 0 && len(rule.Matches) == 0 {
		c.report(path, "none of its matches can be followed: left out")
		return
	}
	c.matches += len(rule.Matches)
	c.route.Rules = append(c.route.Rules, rule)
}

// envelope reads what routes of both kinds have in common.
func (c *routeReader) envelope(spec *gatewayv1.CommonRouteSpec, hosts []gatewayv1.Hostname) {
	for i := range spec.ParentRefs[:c.atMost("spec.parentRefs", len(spec.ParentRefs), maxParents)] {
		c.parent(fmt.Sprintf("spec.parentRefs[%d]", i), &spec.ParentRefs[i])
	}
	for i, h := range hosts[:c.atMost("spec.hostnames", len(hosts), maxHosts)] {
		name := strings.ToLower(string(h))
		if bare, _ := strings.CutPrefix(name, "*."); len(validation.IsDNS1123Subdomain(bare)) > 0 {
			c.report(fmt.Sprintf("spec.hostnames[%d]", i), "%q is no host name: left out", short(string(h)))
			continue
		}
		c.route.Hosts = append(c.route.Hosts, name)
	}
	if len(hosts) > 0 && len(c.route.Hosts) == 0 {
		c.report("spec.hostnames", "none can be followed: the route is about no request")
		c.route.Hosts = []string{neverHost}
	}
}

// neverHost stands for host names none of which can be followed: no request has it, because RFC 9110 knows no such host.
const neverHost = "invalid."

// The groups of services. An import's derived Service has its name.
const groupMulticluster = "multicluster.x-k8s.io"

// isServiceRef tells whether a reference is to a Service or a ServiceImport.
func isServiceRef(group gatewayv1.Group, kind gatewayv1.Kind) bool {
	return group == "" && kind == "Service" || group == groupMulticluster && kind == "ServiceImport"
}

// parent reads a parent that is a service. Others, as Gateways, say nothing about destinations.
func (c *routeReader) parent(path string, ref *gatewayv1.ParentReference) {
	if !isServiceRef(deref(ref.Group, gatewayv1.GroupName), deref(ref.Kind, "Gateway")) {
		return
	}
	if ref.SectionName != nil && ref.Port == nil {
		c.report(path+".sectionName", "weir knows a parent's port by its number only: left out, name it by port")
		return
	}
	if s, ok := c.service(path, string(ref.Name), ref.Namespace, ref.Port); ok {
		c.route.Services = append(c.route.Services, s)
	}
}

// backends reads those backends that are services and are sent anything.
func (c *routeReader) backends(path string, refs []gatewayv1.BackendRef) []policy.ServicePort {
	var services []policy.ServicePort
	for i := range refs[:c.atMost(path, len(refs), maxBackends)] {
		ref := &refs[i]
		if !isServiceRef(deref(ref.Group, ""), deref(ref.Kind, "Service")) || deref(ref.Weight, 1) == 0 {
			continue
		}
		if s, ok := c.service(fmt.Sprintf("%s[%d]", path, i), string(ref.Name), ref.Namespace, ref.Port); ok {
			services = append(services, s)
		}
	}
	return services
}

// service reads a reference to a service.
func (c *routeReader) service(
	path, name string, namespace *gatewayv1.Namespace, port *gatewayv1.PortNumber,
) (policy.ServicePort, bool) {
	s := policy.ServicePort{ServiceName: topology.ServiceName{
		Namespace: string(deref(namespace, gatewayv1.Namespace(c.route.Namespace))), Name: name,
	}}
	switch {
	case len(validation.IsDNS1123Label(s.Namespace)) > 0:
		c.report(path+".namespace", "%q is no namespace: left out", short(s.Namespace))
		return s, false
	case len(validation.IsDNS1123Label(name)) > 0: // as the API server has it for the names of Services since 1.34
		c.report(path+".name", "%q is no name of a service: left out", short(name))
		return s, false
	case port == nil:
		return s, true
	case *port < 1 || *port > 65535:
		c.report(path+".port", "%d is no port: left out", *port)
		return s, false
	default:
		s.Port = uint16(*port) //nolint:gosec // within the bounds just checked.
		return s, true
	}
}

// ruleName reads a rule's name. A second rule of a name has none: what is attached to the name is attached to the first.
func (c *routeReader) ruleName(field string, name *gatewayv1.SectionName) string {
	text := string(deref(name, ""))
	switch {
	case text == "":
		return ""
	case len(validation.IsDNS1123Subdomain(text)) > 0:
		c.report(field, "%q is no name: taken as not there", short(text))
		return ""
	case c.names[text]:
		c.report(field, "an earlier rule is named %q, too: taken as not there", text)
		return ""
	default:
		c.names[text] = true
		return text
	}
}

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

// short cuts what somebody wrote to what a message can bear.
func short(text string) string {
	const limit = 80
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "…"
}

// deref gives what p points at, or the value that nil stands for.
func deref[T any](p *T, missing T) T {
	if p == nil {
		return missing
	}
	return *p
}
