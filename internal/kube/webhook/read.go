package webhook

import (
	"encoding/json"
	"unicode/utf8"

	discoveryv1 "k8s.io/api/discovery/v1"
	kjson "sigs.k8s.io/json"
)

// read reads the parts of an EndpointSlice that hints are decided by. Reading is most of what a call costs, and endpoints
// are most of a slice, so they are read by hand if they are as API servers write them, which takes a fifth of the time.
func read(object []byte) (*discoveryv1.EndpointSlice, error) {
	s := new(discoveryv1.EndpointSlice)
	c := cursor{whole: object, rest: object}
	var list []byte
	c.members(func(key []byte) {
		if string(key) == "endpoints" && list == nil {
			list = c.lift()
			return
		}
		c.value()
	})
	if endpoints, ok := readEndpoints(list); ok && json.Valid(list) {
		err := kjson.UnmarshalCaseSensitivePreserveInts(c.left(), s)
		if err != nil || s.Endpoints == nil { // there may be endpoints for a second time
			s.Endpoints = endpoints
			return s, err
		}
		s = new(discoveryv1.EndpointSlice)
	}
	return s, kjson.UnmarshalCaseSensitivePreserveInts(object, s)
}

// reader reads endpoints from an API server's JSON: no null, no escapes, no key twice.
type reader struct {
	cursor
	odd bool // something else was met
}

// readEndpoints reads a list of endpoints without their target references, which no hint depends on; false if anything
// in it is out of the ordinary.
func readEndpoints(list []byte) ([]discoveryv1.Endpoint, bool) {
	r := reader{cursor: cursor{whole: list, rest: list}}
	var endpoints []discoveryv1.Endpoint
	r.array(func() { endpoints = append(endpoints, r.endpoint()) })
	return endpoints, !r.odd && r.next() == 0
}

func (r *reader) endpoint() discoveryv1.Endpoint {
	var e discoveryv1.Endpoint
	r.object(func(key []byte) {
		switch string(key) {
		case "addresses":
			r.once(e.Addresses == nil)
			r.array(func() { e.Addresses = append(e.Addresses, r.str()) })
		case "conditions":
			r.once(e.Conditions == discoveryv1.EndpointConditions{})
			e.Conditions = r.conditions()
		case "hints":
			r.once(e.Hints == nil)
			e.Hints = r.hints()
		case "zone":
			r.once(e.Zone == nil)
			e.Zone = new(r.str())
		case "nodeName":
			r.once(e.NodeName == nil)
			e.NodeName = new(r.str())
		case "targetRef":
			r.odd = r.odd || r.next() != '{'
			r.value()
		default:
			r.odd = true
		}
	})
	return e
}

func (r *reader) conditions() discoveryv1.EndpointConditions {
	var c discoveryv1.EndpointConditions
	r.object(func(key []byte) {
		switch string(key) {
		case "ready":
			r.once(c.Ready == nil)
			c.Ready = r.boolean()
		case "serving":
			r.once(c.Serving == nil)
			c.Serving = r.boolean()
		case "terminating":
			r.once(c.Terminating == nil)
			c.Terminating = r.boolean()
		default:
			r.odd = true
		}
	})
	return c
}

func (r *reader) hints() *discoveryv1.EndpointHints {
	h := new(discoveryv1.EndpointHints)
	r.object(func(key []byte) {
		switch string(key) {
		case "forZones":
			r.once(h.ForZones == nil)
			r.array(func() { h.ForZones = append(h.ForZones, discoveryv1.ForZone{Name: r.name()}) })
		case "forNodes":
			r.once(h.ForNodes == nil)
			r.array(func() { h.ForNodes = append(h.ForNodes, discoveryv1.ForNode{Name: r.name()}) })
		default:
			r.odd = true
		}
	})
	return h
}

// name reads an object that is a name alone.
func (r *reader) name() string {
	var name string
	r.object(func(key []byte) {
		r.once(name == "" && string(key) == "name")
		name = r.str()
	})
	return name
}

// once notes when a key comes that was not to come.
func (r *reader) once(isExpected bool) { r.odd = r.odd || !isExpected }

func (r *reader) object(each func(key []byte)) { r.once(r.members(each)) }

func (r *reader) array(each func()) { r.once(r.elements(each)) }

func (r *reader) str() string {
	if r.next() != '"' {
		r.odd = true
		r.value()
		return ""
	}
	text := r.text()
	for _, b := range text {
		if b == '\\' || b >= utf8.RuneSelf {
			r.odd = true
		}
	}
	return string(text[1 : len(text)-1])
}

func (r *reader) boolean() *bool {
	switch string(r.value()) {
	case "true":
		return new(true)
	case "false":
		return new(false)
	}
	r.odd = true
	return nil
}
