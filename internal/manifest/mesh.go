package manifest

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/mesh"
)

// maxMeshBytes bounds one document of a mesh, written out as JSON: what etcd takes of an object (1.5 MiB).
const maxMeshBytes = 3 << 19

// policyLeftOut says what becomes of a policy that is refused. A caller that knows an earlier state of it keeps that.
const policyLeftOut = "the policy is left out"

// meshType gives the type of a document of a mesh, which has one in place of apiVersion and kind.
func (d document) meshType() (string, bool) {
	if at(d.root, "kind") != nil || at(d.root, "apiVersion") != nil {
		return "", false
	}
	return d.word("type")
}

// word gives the text of a key; false: there is none.
func (d document) word(key string) (string, bool) {
	value := at(d.root, key)
	if value == nil || resolve(value).Kind != yaml.ScalarNode {
		return "", false
	}
	return resolve(value).Value, true
}

// mesh takes a document of a mesh. One that makes no sense is reported, and the others go on.
func (r *reader) mesh(d document, kind string) error {
	names := make([]string, 0, len(mesh.Types()))
	for _, t := range mesh.Types() {
		names = append(names, string(t))
	}
	if !slices.Contains(names, kind) {
		r.otherMeshType(d, kind, names)
		return nil
	}
	name, _ := d.word("name")
	e := encoder{file: d.file, repeated: r.repeated}
	err := e.value(d.root)
	r.repeated = e.repeated
	if err != nil {
		return err
	}
	if e.out.Len() > maxMeshBytes {
		r.meshDocument(d, &mesh.Document{
			Origin: policy.Origin{Dialect: policy.Dialect(kind), Name: name},
			Findings: []reason.Finding{{
				Severity: reason.Refused, Reason: reason.Unreadable,
				Message: fmt.Sprintf("the document exceeds %d bytes: split it", maxMeshBytes),
			}},
		})
		return nil
	}
	read := mesh.Parse(e.out.Bytes(), r.options)
	r.meshDocument(d, &read)
	return nil
}

// otherMeshType counts a document of a type that weir has no use for, unless it is likely a slip of the pen.
func (r *reader) otherMeshType(d document, kind string, known []string) {
	if !strings.HasPrefix(strings.ToLower(kind), "meshload") {
		r.skipped["type "+kind]++
		return
	}
	name, _ := d.word("name")
	r.found(d, reason.Finding{
		Object: reason.Object{Kind: kind, Name: name}, Field: "type", Severity: reason.Refused, Reason: reason.Unknown,
		Message: "unknown type", Mend: fmt.Sprintf("did you mean %s?", topology.Near(kind, known)[0]),
	})
}

// meshDocument adds what a document says, unless there is one of its name already.
func (r *reader) meshDocument(d document, read *mesh.Document) {
	ref := read.Origin.Object()
	if first, ok := r.places[ref]; ok && ref.Name != "" {
		r.found(d, reason.Finding{
			Object: ref, Severity: reason.Refused, Reason: reason.Repeated,
			Message: fmt.Sprintf("the document is in %s already, and that one counts", first.position("")),
		})
		return
	}
	r.places[ref], r.meshes[ref] = d, read
	for _, f := range read.Findings {
		f.Object = ref
		r.found(d, f)
	}
	if read.Refused() {
		origin := read.Origin
		origin.Source = d.position("")
		r.refused = append(r.refused, origin)
		return
	}
	for _, rule := range read.Rules {
		entry := fmt.Sprintf("to[%d]", rule.Origin.Entry)
		if at(d.root, "spec") != nil {
			entry = "spec." + entry
		}
		rule.Origin.Source = d.position(entry)
		r.rules = append(r.rules, rule)
	}
}

// found reports a finding with the place of its field in a document that may not have a name.
func (r *reader) found(d document, f reason.Finding) {
	f.Position = d.position(f.Field)
	if f.IsRefused() {
		f.Instead = policyLeftOut
	}
	r.problems = append(r.problems, f)
}

// meshObject refuses a document of a mesh in the form that the mesh has for Kubernetes; false: it is none.
func (r *reader) meshObject(d document, k kind) bool {
	if !strings.HasPrefix(strings.ToLower(k.kind), "meshload") {
		return false
	}
	name := d.name()
	r.found(d, reason.Finding{
		Object: refOf(k, &name), Field: "apiVersion", Severity: reason.Refused, Reason: reason.Unknown,
		Message: fmt.Sprintf("the Kubernetes form of a mesh's document (%s), which only the mesh reads", k),
		Mend:    fmt.Sprintf("write type: %s and name: %s at the top in place of apiVersion, kind and metadata", k.kind, name.Name),
	})
	return true
}

// fragment refuses what the specification shows of a document: the part below default, or an entry of spec.to; false: it is
// none.
func (r *reader) fragment(d document) bool {
	if at(d.root, "kind") != nil || at(d.root, "apiVersion") != nil {
		return false
	}
	for _, key := range []string{"loadBalancer", "localityAwareness", "appendLocalityAwareness", "hashPolicies", "default"} {
		if at(d.root, key) == nil {
			continue
		}
		place := "spec.to[].default"
		if key == "default" {
			place = "spec.to[]"
		}
		r.found(d, reason.Finding{
			Object: reason.Object{Kind: string(policy.DialectMeshLoadBalancing)}, Field: key, Severity: reason.Refused,
			Reason: reason.Invalid, Message: "a part of a document, as the specification shows it",
			Mend: "write it below " + place + " of a document with type: MeshLoadBalancing, name and spec",
		})
		return true
	}
	return false
}
