package mesh

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
)

// Strictness says what becomes of a table size that is no prime number. The specification's own example has one.
type Strictness int

// The levels of strictness.
const (
	Compatible Strictness = iota // the next prime is taken, with a warning
	Strict                       // it is refused, as Envoy does
)

// Options say how documents are read. The zero value works.
type Options struct {
	Strictness Strictness
	// Namespace is that of what is named without one. Empty: a service stands for those of its name in all namespaces, as
	// in a mesh, where names have no namespace; clients and routes are of the namespace default.
	Namespace string
}

// Document is what was read of one document.
type Document struct {
	Origin   policy.Origin    // of the first entry
	Rules    []policy.Rule    // one for each entry of spec.to, in that order; none if the document is refused
	Findings []reason.Finding // in the order in which they were found, with paths in the document's own spelling, as spec.to[0].default

	paths []map[string]string // of each entry, see entry
}

// Path gives the document's path for one of the model's, as findings have it, about an entry of spec.to.
func (d *Document) Path(entry int, path string) string {
	if entry < 0 || entry >= len(d.paths) {
		return ""
	}
	return translate(d.paths[entry], path)
}

// Refused tells whether the document does not count.
func (d *Document) Refused() bool {
	return reason.AnyRefused(d.Findings)
}

// Types are the types of documents that Parse reads.
func Types() []policy.Dialect {
	return []policy.Dialect{policy.DialectMeshLoadBalancing, policy.DialectMeshLoadBalancingStrategy}
}

// Parse reads one document: JSON, with each key once. It never fails: what is wrong is among the Findings.
func Parse(data []byte, o Options) Document {
	p := parser{options: o}
	if data = bytes.TrimSpace(data); json.Valid(data) {
		p.envelope(value{parser: &p, raw: data})
	} else {
		p.refuse("", "the text is no JSON")
	}
	d := Document{Origin: p.origin, Findings: p.findings, paths: p.paths}
	if !d.Refused() {
		d.Rules = p.rules
	}
	return d
}

// parser gathers what a document says.
type parser struct {
	options  Options
	origin   policy.Origin
	rules    []policy.Rule
	paths    []map[string]string // of each entry
	findings []reason.Finding
}

func (p *parser) refuse(path, message string) {
	p.findings = append(p.findings, reason.Finding{Field: path, Message: message, Severity: reason.Refused, Reason: reason.Invalid})
}

func (p *parser) warn(path, message string) {
	p.findings = append(p.findings, reason.Finding{Field: path, Message: message, Reason: reason.Unused})
}

// The keys of a document and of its spec, which old documents have at the top.
const (
	specKey = "spec"
	toKey   = "to"
	refKey  = "targetRef"
)

func (p *parser) envelope(root value) {
	top := root.fields("type", "name", "mesh", specKey, refKey, toKey, "labels", "creationTime", "modificationTime")
	if top == nil {
		p.refuse("", "want a mapping with type, name and spec")
		return
	}
	dialect := policy.Dialect(top.at("type").text())
	p.origin = policy.Origin{Dialect: dialect, Name: top.at("name").required()}
	if !slices.Contains(Types(), dialect) {
		p.refuse("type", "unknown type "+quote(string(dialect))+": want MeshLoadBalancing or MeshLoadBalancingStrategy")
		return
	}
	if mesh := top.at("mesh").text(); mesh != "" && mesh != "default" {
		p.warn("mesh", "weir knows one mesh: the document counts as if it were of mesh default")
	}
	spec := top
	if inner := top.at(specKey); inner.isThere() {
		for _, key := range []string{refKey, toKey} {
			if old := top.at(key); old.isThere() {
				p.refuse(old.path, "is there beside spec: write it below spec")
			}
		}
		if spec = inner.fields(refKey, toKey); spec == nil {
			return
		}
	}
	p.spec(spec)
}

// spec reads what old documents have at the top, and others below spec.
func (p *parser) spec(spec *mapping) {
	clients := p.clients(spec.at(refKey))
	to := spec.at(toKey)
	if !to.isThere() {
		p.refuse(to.path, "missing: a document names the destinations that it is about")
		return
	}
	items, isList := to.list()
	if isList && len(items) == 0 {
		p.refuse(to.path, "empty: a document names the destinations that it is about")
	}
	for i, item := range items {
		e := entry{parser: p, spelled: make(map[string]string)}
		e.rule.Origin = p.origin
		e.rule.Origin.Entry = i
		e.rule.Clients = clients.Clients
		clients.spell(&e)
		e.readEntry(item)
		p.rules = append(p.rules, e.rule)
		p.paths = append(p.paths, e.spelled)
	}
}

// entry is one destination and what is said about it.
type entry struct {
	*parser
	rule policy.Rule
	// spelled has the document's path for each path of the model, which is the CRD's, so that what the validator says
	// can be told in the words of the document.
	spelled map[string]string
}

// spell notes that the part of the model at path stands at v.
func (e *entry) spell(path string, v value) { e.spelled[path] = v.path }

// translate gives the document's path for one of the model's: that of the longest part which is known, and the rest as it
// is.
func translate(spelled map[string]string, path string) string {
	for end := len(path); end > 0; end = strings.LastIndexAny(path[:end], ".[") {
		if known, ok := spelled[path[:end]]; ok {
			return known + path[end:]
		}
	}
	return spelled[""]
}

func (e *entry) readEntry(item value) {
	e.spell("", item)
	fields := item.fields(refKey, "default")
	if fields == nil {
		e.refuseNothing(item)
		return
	}
	e.target(fields.at(refKey))
	body := fields.at("default")
	if !body.isThere() {
		e.refuse(body.path, "missing: it holds what is said about the destination")
		return
	}
	conf := body.fields("localityAwareness", "appendLocalityAwareness", "loadBalancer", "hashPolicies")
	if conf == nil {
		return
	}
	e.spell("", body)
	e.loadBalancer(conf.at("loadBalancer"))
	e.hashPolicies(conf.at("hashPolicies"))
	e.locality(conf.at("localityAwareness"), conf.at("appendLocalityAwareness"))
	if !reason.AnyRefused(e.findings) {
		e.validate()
	}
}
