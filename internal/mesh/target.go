package mesh

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/topology"
)

// The kinds of references.
const (
	kindMesh          = "Mesh"
	kindSubset        = "MeshSubset"
	kindService       = "MeshService"
	kindServiceSubset = "MeshServiceSubset"
	kindMultiZone     = "MeshMultiZoneService"
	kindHTTPRoute     = "MeshHTTPRoute"
)

// ref is a targetRef.
type ref struct {
	*mapping
	kind string
}

// ref reads a reference of one of these kinds; nil: it is refused.
func (v value) ref(kinds ...string) *ref {
	if !v.isThere() {
		return nil
	}
	m := v.fields("kind", "name", "namespace", "sectionName", "tags", "labels", "mesh")
	if m == nil {
		return nil
	}
	kind := m.at("kind")
	r := &ref{mapping: m, kind: kind.required()}
	if r.kind == "" || !r.isOneOf(kinds) {
		return nil
	}
	for _, key := range []string{"labels", "mesh"} {
		if other := m.at(key); other.isThere() {
			v.refuse(other.path, "weir has no counterpart of it: name the destination")
		}
	}
	r.only("tags", kindSubset, kindServiceSubset)
	r.only("name", kindMesh, kindService, kindServiceSubset, kindMultiZone, kindHTTPRoute)
	r.only("namespace", kindService, kindServiceSubset, kindMultiZone, kindHTTPRoute)
	r.only("sectionName", kindService, kindMultiZone, kindHTTPRoute)
	return r
}

// isOneOf refuses kinds that may not be here.
func (r *ref) isOneOf(kinds []string) bool {
	if slices.Contains(kinds, r.kind) {
		return true
	}
	path, want := r.at("kind").path, strings.Join(kinds, ", ")
	switch r.kind {
	case "MeshGateway", "Dataplane", "MeshExternalService":
		r.refuse(path, r.kind+" has no counterpart in weir: want "+want)
	case kindMesh, kindSubset, kindService, kindServiceSubset, kindMultiZone, kindHTTPRoute:
		r.refuse(path, r.kind+" may not be here: want "+want)
	default:
		r.refuse(path, fmt.Sprintf("unknown kind %s: did you mean %s? All that may be here: %s",
			quote(r.kind), topology.Near(r.kind, kinds)[0], want))
	}
	return false
}

// only refuses a field that other kinds than these do not have.
func (r *ref) only(key string, kinds ...string) {
	if v := r.at(key); v.isThere() && !slices.Contains(kinds, r.kind) {
		r.refuse(v.path, fmt.Sprintf("kind %s has none: it goes with %s", r.kind, strings.Join(kinds, ", ")))
	}
}

// clients are the clients of a document, and where each part of them stands.
type clients struct {
	policy.Clients
	at map[string]value // by the model's path
}

func (c *clients) spell(e *entry) {
	for path, v := range c.at {
		e.spell(path, v)
	}
}

// clients reads the reference at the top of a document, which says whose requests it is about; missing: those of all clients.
func (p *parser) clients(v value) clients {
	c := clients{at: map[string]value{"clients": v}}
	kinds := []string{kindMesh, kindSubset, kindService, kindServiceSubset}
	r := v.ref(kinds...)
	if r == nil {
		return c
	}
	if r.kind == kindService || r.kind == kindServiceSubset {
		name, _ := r.service(p.options.orDefault())
		c.Service = &name
		c.at["clients.service"] = r.at("name")
	}
	tags := r.at("tags").keys()
	if tags == nil {
		return c
	}
	c.at["clients.podSelector"] = tags.value
	for _, key := range slices.Sorted(maps.Keys(tags.fields)) {
		c.tag(key, tags.at(key))
	}
	return c
}

// tagZone is the tag that names a proxy's zone.
const tagZone = "kuma.io/zone"

// labelZone and labelNamespace are the labels that say in Kubernetes what the mesh says with tags.
const (
	labelZone      = "topology.kubernetes.io/zone"
	labelNamespace = "kubernetes.io/metadata.name"
)

// tag adds the condition that a tag makes.
func (c *clients) tag(key string, v value) {
	text := v.required()
	switch key {
	case tagZone, labelZone:
		if text != anyValue && text != "" {
			c.at[fmt.Sprintf("clients.zones[%d]", len(c.Zones))] = v
			c.Zones = append(c.Zones, topology.Zone(text))
		}
		return
	case "kuma.io/service":
		if text == anyValue || text == "" {
			return
		}
		if c.Service != nil {
			v.refuse(v.path, "the reference names a service already")
			return
		}
		name, _ := serviceName(text, v.options.orDefault())
		if !isName(name.Name) || !isName(name.Namespace) {
			v.refuse(v.path, quote(text)+" names no service")
		}
		c.Service = &name
		c.at["clients.service"] = v
		return
	case "k8s.kuma.io/namespace":
		c.Namespaces = append(c.Namespaces, requirement(labelNamespace, text))
		c.at["clients.namespaceSelector"] = v
		return
	}
	if strings.HasPrefix(key, "kuma.io/") || strings.HasPrefix(key, "k8s.kuma.io/") {
		v.warn(v.path, "weir gives pods no such tag: only those that have a label of this name are meant")
	}
	c.at[fmt.Sprintf("clients.podSelector.matchExpressions[%d]", len(c.Pods))] = v
	c.at["clients.podSelector.matchLabels["+key+"]"] = v
	c.Pods = append(c.Pods, requirement(key, text))
}

// anyValue is the value of a tag that has to be there with any value.
const anyValue = "*"

// requirement is a condition on a label.
func requirement(key, text string) policy.Requirement {
	if text == anyValue {
		return policy.Requirement{Key: key, Operator: policy.Exists}
	}
	return policy.Requirement{Key: key, Operator: policy.In, Values: []string{text}}
}

// target reads what an entry is about.
func (e *entry) target(v value) {
	if !v.isThere() {
		e.refuse(v.path, "missing: it names the destination")
		return
	}
	e.spell(fmt.Sprintf("targetRefs[%d]", e.rule.Origin.Entry), v)
	kinds := []string{kindMesh, kindService}
	if e.origin.Dialect == policy.DialectMeshLoadBalancingStrategy {
		kinds = append(kinds, kindMultiZone, kindHTTPRoute)
	}
	r := v.ref(kinds...)
	if r == nil {
		return
	}
	t, namespace := &e.rule.Target, e.options.Namespace
	switch r.kind {
	case kindMesh:
		t.Kind = policy.TargetMesh
		return
	case kindService:
		t.Kind = policy.TargetService
	case kindMultiZone:
		t.Kind = policy.TargetServiceImport
	case kindHTTPRoute:
		t.Kind, namespace = policy.TargetHTTPRoute, e.options.orDefault()
	}
	name, port := r.service(namespace)
	t.Namespace, t.Name, t.Section = name.Namespace, name.Name, port
	if section := r.at("sectionName"); section.isThere() {
		if port != "" {
			r.refuse(section.path, "the name has a port already")
		}
		t.Section = section.required()
	}
}

// orDefault is the namespace of what has to have one.
func (o Options) orDefault() string { return cmp.Or(o.Namespace, "default") }

// service gives the namespace and name that a reference has, or else this namespace, and the port if it is in the name.
func (r *ref) service(elsewhere string) (name topology.ServiceName, port string) {
	at := r.at("name")
	text := at.required()
	name, port = serviceName(text, "")
	namespace := r.at("namespace")
	switch {
	case namespace.isThere() && name.Namespace != "":
		r.refuse(namespace.path, "the name has a namespace already")
	case namespace.isThere():
		name.Namespace = namespace.required()
	case name.Namespace == "":
		name.Namespace = elsewhere
	}
	if text != "" && !isName(name.Name) {
		at.refuse(at.path, quote(name.Name)+" is no name: want lower-case letters, digits, - and .")
	}
	if name.Namespace != "" && !isName(name.Namespace) {
		at.refuse(cmp.Or(r.pathOf("namespace"), at.path), quote(name.Namespace)+" is no name: want lower-case letters, digits and -")
	}
	return name, port
}

// pathOf gives the path of a key that is there; empty: it is not.
func (r *ref) pathOf(key string) string {
	if v := r.at(key); v.isThere() {
		return v.path
	}
	return ""
}

// maxName is the longest name of an object in Kubernetes.
const maxName = 253

func isName(text string) bool {
	return len(text) <= maxName && regexp.MustCompile(`^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$`).MatchString(text)
}

// serviceName reads backend and backend_namespace_svc_80, the name that a mesh on Kubernetes makes of a service's port.
func serviceName(text, namespace string) (name topology.ServiceName, port string) {
	found := regexp.MustCompile(`^([^_]+)_([^_]+)_svc(?:_(\d+))?$`).FindStringSubmatch(text)
	if found == nil {
		return topology.ServiceName{Namespace: namespace, Name: text}, ""
	}
	return topology.ServiceName{Namespace: found[2], Name: found[1]}, found[3]
}
