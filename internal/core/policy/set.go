package policy

import (
	"cmp"
	"math/bits"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-lb/weir/internal/core/topology"
)

// index finds the rules for a destination without asking all.
type index struct {
	fields   []field
	defaults Conf
	capsSkew bool          // some rule names locality.maxSkew
	rules    []indexedRule // weakest first
	// Positions in rules, ascending.
	mesh        []int
	byNamespace map[string][]int
	byService   map[topology.ServiceName][]int // with an empty namespace: in all of them
	byRoute     map[routeName][]int

	routes   map[topology.ServiceName][]*Route // that may be about a service
	podsByIP map[netip.Addr]*Pod               // nil: several pods claim the address
}

type indexedRule struct {
	*Rule
	fields uint64   // one bit for each of index.fields that the rule says something about
	texts  []string // what it says there, for people, in the order of the bits
}

// text gives what the rule says about one of its fields.
func (r *indexedRule) text(field int) string { return r.texts[bits.OnesCount64(r.fields&(1<<field-1))] }

type routeName struct {
	kind            TargetKind
	namespace, name string
}

// NewSet gives a set in which rules, routes and pods are found fast. It keeps what s points at; pods that are not sorted are
// sorted in a copy.
func NewSet(s Set) *Set {
	if !slices.IsSortedFunc(s.Pods, comparePods) {
		s.Pods = slices.Clone(s.Pods)
		slices.SortFunc(s.Pods, comparePods)
	}
	s.index = newIndex(&s)
	return &s
}

func newIndex(s *Set) *index {
	x := &index{
		fields:      fieldTable(),
		defaults:    Defaults(),
		rules:       make([]indexedRule, len(s.Rules)),
		byNamespace: make(map[string][]int),
		byService:   make(map[topology.ServiceName][]int),
		byRoute:     make(map[routeName][]int),
		routes:      make(map[topology.ServiceName][]*Route),
		podsByIP:    make(map[netip.Addr]*Pod),
	}
	for i := range s.Rules {
		x.rules[i] = x.indexed(&s.Rules[i])
		x.capsSkew = x.capsSkew || s.Rules[i].Conf.Locality.MaxSkew != nil
	}
	slices.SortStableFunc(x.rules, func(a, b indexedRule) int { return Compare(a.Rule, b.Rule) })
	for i := range x.rules {
		x.addRule(i, x.rules[i].Target)
	}
	for i := range s.Routes {
		x.addRoute(&s.Routes[i])
	}
	for i := range s.Pods {
		x.addPod(&s.Pods[i])
	}
	return x
}

func (x *index) indexed(r *Rule) indexedRule {
	one := indexedRule{Rule: r, fields: x.said(&r.Conf)}
	for i := range x.fields {
		if one.fields&(1<<i) != 0 {
			one.texts = append(one.texts, x.fields[i].text(&r.Conf))
		}
	}
	return one
}

// said gives the fields that c says something about.
func (x *index) said(c *Conf) uint64 {
	var fields uint64
	for i := range x.fields {
		if _, ok := x.fields[i].of(c); ok {
			fields |= 1 << i
		}
	}
	return fields
}

func (x *index) addRule(i int, t Target) {
	switch t.Kind {
	case TargetMesh:
		x.mesh = append(x.mesh, i)
	case TargetNamespace:
		x.byNamespace[t.Namespace] = append(x.byNamespace[t.Namespace], i)
	case TargetService, TargetServiceImport:
		name := topology.ServiceName{Namespace: t.Namespace, Name: t.Name}
		x.byService[name] = append(x.byService[name], i)
		if t.Kind == TargetServiceImport { // also where the import is a service of its own
			name = topology.ImportedName(name)
			x.byService[name] = append(x.byService[name], i)
		}
	case TargetHTTPRoute, TargetGRPCRoute:
		name := routeName{t.Kind, t.Namespace, t.Name}
		x.byRoute[name] = append(x.byRoute[name], i)
	}
}

func (x *index) addRoute(r *Route) {
	about := r.Services
	if len(about) == 0 {
		for i := range r.Rules {
			about = append(about, r.Rules[i].Backends...)
		}
	}
	for i := range about {
		name := about[i].ServiceName
		if !slices.Contains(x.routes[name], r) {
			x.routes[name] = append(x.routes[name], r)
		}
	}
}

func (x *index) addPod(p *Pod) {
	for _, text := range p.IPs {
		ip, err := netip.ParseAddr(text)
		if err != nil {
			continue // an address that does not parse belongs to no client
		}
		ip = ip.Unmap()
		if other, taken := x.podsByIP[ip]; taken && other != p {
			x.podsByIP[ip] = nil
			continue
		}
		x.podsByIP[ip] = p
	}
}

// indexed gives the set's index. A set that NewSet did not make gets one for the question.
func (s *Set) indexed() *index {
	if s.index != nil {
		return s.index
	}
	return newIndex(s)
}

// about lists the positions of the rules about a destination, weakest first, whoever the client is. Rules about routes
// are not among them.
func (x *index) about(d Destination) []int {
	anywhere := topology.ServiceName{Name: d.Service.Name}
	found := slices.Concat(x.mesh, x.byNamespace[d.Service.Namespace])
	for _, i := range slices.Concat(x.byService[d.Service], x.byService[anywhere]) {
		if x.rules[i].Target.hasPort(d.Port) {
			found = append(found, i)
		}
	}
	slices.Sort(found)
	return found
}

// hasPort tells whether the target's section, if it has one, is the port. No port has a name of digits alone.
func (t *Target) hasPort(p topology.Port) bool {
	return t.Section == "" || t.Section == p.Name || t.Section == strconv.Itoa(int(p.Port))
}

func (t *Target) isRoute() bool { return t.Kind == TargetHTTPRoute || t.Kind == TargetGRPCRoute }

// Pod finds a pod; nil if it is not known.
func (s *Set) Pod(namespace, name string) *Pod {
	if s == nil {
		return nil
	}
	wanted := Pod{Namespace: namespace, Name: name}
	if s.index == nil {
		if i := slices.IndexFunc(s.Pods, func(p Pod) bool { return comparePods(p, wanted) == 0 }); i >= 0 {
			return &s.Pods[i]
		}
		return nil
	}
	if i, ok := slices.BinarySearchFunc(s.Pods, wanted, comparePods); ok {
		return &s.Pods[i]
	}
	return nil
}

// PodByIP finds the pod that has the address; nil if none has, or if several claim it.
func (s *Set) PodByIP(ip netip.Addr) *Pod {
	if s == nil {
		return nil
	}
	return s.indexed().podsByIP[ip.Unmap()]
}

// PodOf finds an endpoint's pod: by its name or, where the endpoint names none, by its address. Nil if it is not known,
// as all pods of other clusters.
func (s *Set) PodOf(e *topology.Endpoint) *Pod {
	if e.Cluster != "" {
		return nil
	}
	if namespace, name, ok := strings.Cut(e.Pod, "/"); ok {
		return s.Pod(namespace, name)
	}
	return s.PodByIP(e.Addr)
}

func comparePods(a, b Pod) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// Keep gives s with the rules that refused documents had before, so that the last good ones go on. A document is known by
// dialect, namespace and name; one that has rules in s has not been refused. before may be nil.
func (s *Set) Keep(before *Set, refused []Origin) *Set {
	if s == nil || len(refused) == 0 {
		return s
	}
	with := *s
	with.Refused = nil
	gone := make(map[Origin]bool, len(refused))
	for _, o := range refused {
		gone[o.document()] = true
	}
	for i := range s.Rules {
		delete(gone, s.Rules[i].Origin.document())
	}
	for _, o := range refused {
		if gone[o.document()] {
			with.Refused = append(with.Refused, o)
		}
	}
	if before != nil {
		with.Rules = slices.Clone(s.Rules)
		for i := range before.Rules {
			if gone[before.Rules[i].Origin.document()] {
				with.Rules = append(with.Rules, before.Rules[i])
			}
		}
	}
	return NewSet(with)
}

// LastGood tells whether rules of a refused document go on.
func (s *Set) LastGood(refused Origin) bool {
	return slices.ContainsFunc(s.Rules, func(r Rule) bool { return r.Origin.document() == refused.document() })
}

// document gives the part of the origin that names the document.
func (o Origin) document() Origin {
	return Origin{Dialect: o.Dialect, Namespace: o.Namespace, Name: o.Name}
}
