package manifest

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/convert"
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
		tooLong := policy.Finding{Message: fmt.Sprintf("the document exceeds %d bytes: split it", maxMeshBytes), Severity: policy.Refused}
		r.meshDocument(d, &mesh.Document{
			Origin: policy.Origin{Dialect: policy.Dialect(kind), Name: name}, Findings: []policy.Finding{tooLong},
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
	r.refuse(d, convert.Ref{Kind: kind, Name: name}, policy.Finding{
		Path: "type", Message: fmt.Sprintf("unknown type: did you mean %s?", topology.Near(kind, known)[0]),
	})
}

// meshDocument adds what a document says, unless there is one of its name already.
func (r *reader) meshDocument(d document, read *mesh.Document) {
	ref := convert.Ref{Kind: string(read.Origin.Dialect), Name: read.Origin.Name}
	if first, ok := r.places[ref]; ok && ref.Name != "" {
		r.refuse(d, ref, policy.Finding{
			Message: fmt.Sprintf("the document is in %s already, and that one counts", position(first.file, first.root.Line)),
		})
		return
	}
	r.places[ref], r.meshes[ref] = d, read
	for _, f := range read.Findings {
		if f.Severity == policy.Refused {
			r.refuse(d, ref, f)
			continue
		}
		r.found(d, convert.Problem{Object: ref, Field: f.Path, Message: f.Message})
	}
	if read.Refused() {
		origin := read.Origin
		origin.Source = position(d.file, d.root.Line)
		r.refused = append(r.refused, origin)
		return
	}
	for _, rule := range read.Rules {
		entry := fmt.Sprintf("to[%d]", rule.Origin.Entry)
		if at(d.root, "spec") != nil {
			entry = "spec." + entry
		}
		rule.Origin.Source = position(d.file, lineOf(d.root, entry))
		r.rules = append(r.rules, rule)
	}
}

// refuse reports what keeps a document from being followed.
func (r *reader) refuse(d document, ref convert.Ref, f policy.Finding) {
	r.found(d, convert.Problem{
		Object: ref, Field: f.Path, Message: f.Message, Refused: true, Instead: policyLeftOut,
	})
}

// found reports a problem with the place of its field in a document that may not have a name.
func (r *reader) found(d document, p convert.Problem) {
	p.Source = position(d.file, lineOf(d.root, p.Field))
	r.problems = append(r.problems, p)
}
