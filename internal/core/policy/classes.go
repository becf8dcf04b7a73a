package policy

import (
	"slices"
	"strconv"
	"strings"

	"github.com/weir-lb/weir/internal/core/topology"
)

// Class is a group of clients that rules about a destination tell from others by pod, namespace or service. All of its
// clients in one zone have the same settings.
type Class struct {
	ID     string
	Client Client // one of them, without a zone
	Pods   []*Pod // sorted by namespace and name; empty for the endpoints of a service, which a Set does not know
}

// TellsApart tells whether any rule about the destination is about some clients only, zones aside: if not, ClassOf is empty
// for everybody. It looks at no pod.
func (s *Set) TellsApart(d Destination) bool {
	return s != nil && len(s.indexed().tellingApart(d)) > 0
}

// Classes lists the classes of the set's pods, by ID. The endpoints of a service that a rule names as clients make a class
// for that rule alone: which pods they are, ClassOf is told by Client.Serves. Clients of no class are not listed. It looks at
// every pod of the set, so that it is for people's questions.
func (s *Set) Classes(d Destination) []Class {
	if s == nil {
		return nil
	}
	x := s.indexed()
	apart := x.tellingApart(d)
	if len(apart) == 0 {
		return nil
	}
	byID := make(map[string]*Class)
	for i := range s.Pods {
		p := &s.Pods[i]
		c := Client{Namespace: p.Namespace, Pod: p.Labels}
		id := x.classOf(s, &c, apart)
		if id == "" {
			continue
		}
		if byID[id] == nil {
			byID[id] = &Class{ID: id, Client: c}
		}
		byID[id].Pods = append(byID[id].Pods, p)
	}
	for _, i := range apart {
		service := x.rules[i].Clients.Service
		if service == nil {
			continue
		}
		c := Client{Namespace: service.Namespace, Serves: []topology.ServiceName{*service}}
		if id := x.classOf(s, &c, apart); id != "" && byID[id] == nil {
			byID[id] = &Class{ID: id, Client: c}
		}
	}
	classes := make([]Class, 0, len(byID))
	for _, class := range byID {
		classes = append(classes, *class)
	}
	slices.SortFunc(classes, func(a, b Class) int { return strings.Compare(a.ID, b.ID) })
	return classes
}

// ClassOf names the client's class: the rules about the destination that apply to it and not to everyone, zones aside.
// Empty for clients that no such rule is about. What the rules say does not change the name.
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
