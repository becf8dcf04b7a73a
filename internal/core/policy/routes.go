package policy

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-lb/weir/internal/core/reason"
)

// attachment is one way in which requests of a route's rule are known: a hostname and a match.
type attachment struct {
	RouteHash
	route       *Route
	rule, match int
	host        string
}

// routes lists the rules of the routes that are about a destination, if some policy is about one of them, in the order in
// which the Gateway API has requests compared with them. A rule that no policy is about has the service's hash policies.
func (f *fold) routes(s *Set, c *Client, d Destination) []RouteHash {
	attached := f.index.attached(d)
	if !f.speakOf(s, c, attached) {
		return nil
	}
	if !f.algorithm().IsHashing() {
		f.noteUnusedRoutes(s, c, attached)
		return nil
	}
	var found []attachment
	for _, route := range attached {
		for i := range route.Rules {
			if route.leadsTo(i, d) {
				found = append(found, f.attachments(route, i, f.routeAuthor(s, c, route, i))...)
			}
		}
	}
	slices.SortStableFunc(found, func(a, b attachment) int { return compareAttachments(&a, &b) })
	hashes := make([]RouteHash, len(found))
	for i := range found {
		hashes[i] = found[i].RouteHash
	}
	return hashes
}

// attached lists the routes of which some rule leads to the destination.
func (x *index) attached(d Destination) []*Route {
	var found []*Route
	for _, r := range x.routes[d.Service] {
		for i := range r.Rules {
			if r.leadsTo(i, d) {
				found = append(found, r)
				break
			}
		}
	}
	return found
}

// leadsTo tells whether requests that a rule is about can come to the destination: the route's parent is the service, or,
// for routes of other parents, the rule's backend is.
func (r *Route) leadsTo(rule int, d Destination) bool {
	about := r.Services
	if len(about) == 0 {
		about = r.Rules[rule].Backends
	}
	return slices.ContainsFunc(about, func(p ServicePort) bool {
		return p.ServiceName == d.Service && (p.Port == 0 || p.Port == d.Port.Port)
	})
}

func (r *Route) name() routeName { return routeName{r.Kind, r.Namespace, r.Name} }

// speakOf tells whether a policy is about one of the routes, for this client.
func (f *fold) speakOf(s *Set, c *Client, routes []*Route) bool {
	return slices.ContainsFunc(routes, func(r *Route) bool {
		return slices.ContainsFunc(f.index.byRoute[r.name()], func(i int) bool { return f.isAbout(s, c, i) })
	})
}

func (f *fold) isAbout(s *Set, c *Client, i int) bool {
	r := &f.index.rules[i]
	return r.Conf.HashPolicies != nil && r.Clients.selectsZone(c.Zone) && r.Clients.selects(s, c)
}

func (f *fold) noteUnusedRoutes(s *Set, c *Client, routes []*Route) {
	for _, route := range routes {
		for _, i := range f.index.byRoute[route.name()] {
			if f.isAbout(s, c, i) {
				f.notes = append(f.notes, f.index.rules[i].Origin.Finding(pathHashPolicies, reason.Unused,
					"unused: "+algorithmText(f.algorithm())+" does not hash requests"))
			}
		}
	}
}

// routeAuthor gives the strongest policy about a route's rule; nil if there is none.
func (f *fold) routeAuthor(s *Set, c *Client, route *Route, rule int) *indexedRule {
	for _, i := range slices.Backward(f.index.byRoute[route.name()]) {
		r := &f.index.rules[i]
		if (r.Target.Section == "" || r.Target.Section == route.Rules[rule].Name) && f.isAbout(s, c, i) {
			return r
		}
	}
	return nil
}

// attachments gives a rule once for each hostname and each match, because the order compares those.
func (f *fold) attachments(route *Route, rule int, author *indexedRule) []attachment {
	hash := RouteHash{Route: route.title(rule), HashPolicies: f.conf.HashPolicies}
	if author != nil {
		hash.HashPolicies, hash.Origin = author.Conf.HashPolicies, &author.Origin
	}
	hosts, matches := route.Hosts, route.Rules[rule].Matches
	if len(hosts) == 0 {
		hosts = []string{""}
	}
	if len(matches) == 0 {
		matches = []Match{{}}
	}
	found := make([]attachment, 0, len(hosts)*len(matches))
	for _, host := range hosts {
		for m := range matches {
			a := attachment{RouteHash: hash, route: route, rule: rule, match: m, host: host}
			a.Match = matches[m]
			if host != "" {
				a.Hosts = []string{host}
			}
			found = append(found, a)
		}
	}
	return found
}

// title names a rule for people.
func (r *Route) title(rule int) string {
	name := r.Rules[rule].Name
	if name == "" {
		name = strconv.Itoa(rule)
	}
	return string(r.Kind) + " " + r.Namespace + "/" + r.Name + "#" + name
}

// compareAttachments orders what a request is compared with, first to last.
//
// Source: Gateway API, HTTPRouteRule.matches and HTTPRouteSpec.hostnames. It leaves the place of regular expressions to the
// implementation; they come after exact paths and before prefixes.
func compareAttachments(a, b *attachment) int {
	return cmp.Or(
		compareHosts(a.host, b.host),
		comparePaths(a.Match.Path, b.Match.Path),
		-compareBools(a.Match.Method != "", b.Match.Method != ""),
		cmp.Compare(len(b.Match.Headers), len(a.Match.Headers)),
		cmp.Compare(len(b.Match.Query), len(a.Match.Query)),
		compareAge(a.route.Created, b.route.Created),
		strings.Compare(a.route.Namespace, b.route.Namespace),
		strings.Compare(a.route.Name, b.route.Name),
		strings.Compare(string(a.route.Kind), string(b.route.Kind)),
		cmp.Compare(a.rule, b.rule),
		cmp.Compare(a.match, b.match),
	)
}

// compareHosts puts names before wildcards and both before none, and longer ones first.
func compareHosts(a, b string) int {
	return cmp.Or(
		-compareBools(a != "" && !isWildcard(a), b != "" && !isWildcard(b)),
		cmp.Compare(len(b), len(a)),
		strings.Compare(a, b),
	)
}

func isWildcard(host string) bool { return strings.HasPrefix(host, "*") }

func comparePaths(a, b *PathMatch) int {
	return cmp.Or(cmp.Compare(rankOfPath(a), rankOfPath(b)), cmp.Compare(len(block(b).Value), len(block(a).Value)))
}

// rankOfPath is lower for what is asked first. No path is a prefix of everything.
func rankOfPath(p *PathMatch) int {
	switch block(p).Type {
	case MatchExact:
		return 0
	case MatchRegex:
		return 1
	case MatchPrefix:
		return 2
	default:
		return 2
	}
}

// compareBools puts false before true.
func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}
