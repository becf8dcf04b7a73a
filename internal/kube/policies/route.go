package policies

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// The bounds of a route: those of the Gateway API's own CRDs. Nothing else checks files.
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
func HTTPRoute(r *gatewayv1.HTTPRoute) (policy.Route, []reason.Finding) {
	c := newRouteReader(policy.TargetHTTPRoute, &r.ObjectMeta)
	c.envelope(&r.Spec.CommonRouteSpec, r.Spec.Hostnames)
	for i := range r.Spec.Rules[:c.atMost("spec.rules", len(r.Spec.Rules), maxRules)] {
		in, path := &r.Spec.Rules[i], fmt.Sprintf("spec.rules[%d]", i)
		rule := policy.RouteRule{Name: c.ruleName(path+".name", in.Name), Matches: matches(c, path, in.Matches, c.httpMatch)}
		rule.Backends = backends(c, path, in.BackendRefs, func(b *gatewayv1.HTTPBackendRef) *gatewayv1.BackendRef { return &b.BackendRef })
		if len(in.Matches) == 0 {
			rule.Matches = []policy.Match{{Path: &policy.PathMatch{Type: policy.MatchPrefix, Value: "/"}}} // the CRD's default
		}
		c.addRule(path, rule, len(in.Matches))
	}
	return c.route, c.found
}

// GRPCRoute converts a route as HTTPRoute does. Its services and methods become the paths that gRPC puts them in.
func GRPCRoute(r *gatewayv1.GRPCRoute) (policy.Route, []reason.Finding) {
	c := newRouteReader(policy.TargetGRPCRoute, &r.ObjectMeta)
	c.envelope(&r.Spec.CommonRouteSpec, r.Spec.Hostnames)
	for i := range r.Spec.Rules[:c.atMost("spec.rules", len(r.Spec.Rules), maxRules)] {
		in, path := &r.Spec.Rules[i], fmt.Sprintf("spec.rules[%d]", i)
		rule := policy.RouteRule{Name: c.ruleName(path+".name", in.Name), Matches: matches(c, path, in.Matches, c.grpcMatch)}
		rule.Backends = backends(c, path, in.BackendRefs, func(b *gatewayv1.GRPCBackendRef) *gatewayv1.BackendRef { return &b.BackendRef })
		c.addRule(path, rule, len(in.Matches))
	}
	return c.route, c.found
}

// matches reads the matches of a rule that can be followed.
func matches[T any](c *routeReader, path string, in []T, read func(path string, match *T) (policy.Match, bool)) []policy.Match {
	var list []policy.Match
	for j := range in[:c.atMost(path+".matches", len(in), maxMatches-c.matches)] {
		if m, ok := read(fmt.Sprintf("%s.matches[%d]", path, j), &in[j]); ok {
			list = append(list, m)
		}
	}
	return list
}

// routeReader makes one route.
type routeReader struct {
	object  reason.Object
	route   policy.Route
	matches int             // so far, in all rules
	steps   int             // of expressions, so far
	names   map[string]bool // of rules, so far
	found   []reason.Finding
}

func newRouteReader(kind policy.TargetKind, m *metav1.ObjectMeta) *routeReader {
	return &routeReader{
		object: reason.Object{Kind: string(kind), Namespace: namespaceOf(m), Name: m.Name},
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
	c.found = append(c.found, reason.Finding{Object: c.object, Field: field, Reason: reason.Invalid, Message: fmt.Sprintf(format, args...)})
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

// backends reads those backends of a rule that are services and are sent anything.
func backends[T any](c *routeReader, rule string, in []T, refOf func(*T) *gatewayv1.BackendRef) []policy.ServicePort {
	var services []policy.ServicePort
	path := rule + ".backendRefs"
	for i := range in[:c.atMost(path, len(in), maxBackends)] {
		ref := refOf(&in[i])
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

// short cuts a value to what a message can bear.
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
