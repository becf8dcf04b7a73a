package policy

import (
	"slices"
	"strconv"
	"strings"

	"github.com/weir-lb/weir/internal/core/topology"
)

// TellsApart tells whether any rule about the destination is about some clients only, zones aside: if not, ClassOf is empty
// for all clients. It reads no pod.
func (s *Set) TellsApart(d Destination) bool {
	return s != nil && len(s.indexed().tellingApart(d)) > 0
}

// ClassOf names the client's class: the rules about the destination that apply to it and not to everyone, zones aside. All
// clients of a class that are in one zone have the same settings. Empty for clients that no such rule is about. What the rules
// say does not change the name.
func (s *Set) ClassOf(c Client, d Destination) string {
	if s == nil {
		return ""
	}
	x := s.indexed()
	return x.classOf(s, &c, x.tellingApart(d))
}

// tellingApart lists the positions of the rules about a destination, or about its routes, that tell clients apart.
func (x *index) tellingApart(d Destination) []int {
	anywhere := topology.ServiceName{Name: d.Service.Name}
	lists := [][]int{x.mesh, x.byNamespace[d.Service.Namespace], x.byService[d.Service], x.byService[anywhere]}
	for _, route := range x.attached(d) {
		lists = append(lists, x.byRoute[route.name()])
	}
	var found []int
	for _, list := range lists {
		for _, i := range list {
			r := &x.rules[i]
			if r.Clients.tellsApart() && (r.Target.isRoute() || r.Target.hasPort(d.Port)) {
				found = append(found, i)
			}
		}
	}
	return found
}

func (x *index) classOf(s *Set, c *Client, apart []int) string {
	var names []string
	for _, i := range apart {
		if r := &x.rules[i]; r.Clients.selects(s, c) {
			names = append(names, r.Origin.id())
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ",")
}

// id names a rule among all: its document, the kind only where it is not the CRD, and the entry.
func (o Origin) id() string {
	place := o.Namespace
	if o.Dialect.IsMesh() {
		place = string(o.Dialect)
	}
	return place + "/" + o.Name + "#" + strconv.Itoa(o.Entry)
}
