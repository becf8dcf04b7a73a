package manifest

import (
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	kubejson "sigs.k8s.io/json"

	"github.com/weir-lb/weir/api/v1alpha1"
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/kube/convert"
	"github.com/weir-lb/weir/internal/mesh"
)

// reader gathers the objects of all documents.
type reader struct {
	objects  convert.Objects
	places   map[reason.Object]document // where each object stands
	problems []reason.Finding
	skipped  map[string]int
	repeated int // bytes that aliases have repeated so far

	// Of policies.
	options    mesh.Options
	rules      []policy.Rule
	refused    []policy.Origin
	meshes     map[reason.Object]*mesh.Document
	namespaces []*corev1.Namespace
	httpRoutes []*gatewayv1.HTTPRoute
	grpcRoutes []*gatewayv1.GRPCRoute
}

func newReader(o mesh.Options) *reader {
	return &reader{
		places: make(map[reason.Object]document), skipped: make(map[string]int),
		options: o, meshes: make(map[reason.Object]*mesh.Document),
	}
}

// report adds a problem with the place of its object and field.
func (r *reader) report(p reason.Finding) {
	if d, ok := r.places[p.Object]; ok {
		p.Position = d.position(p.Field)
	}
	r.problems = append(r.problems, p)
}

// The versions of the Gateway API that routes are read in. They differ in nothing that weir reads.
const (
	gatewayV1      = "gateway.networking.k8s.io/v1"
	gatewayV1Beta1 = "gateway.networking.k8s.io/v1beta1"
)

// The versions of the Multi-Cluster Services API that ServiceImports are read in. They differ in nothing that weir reads.
const (
	importsV1Beta1  = "multicluster.x-k8s.io/v1beta1"
	importsV1Alpha1 = "multicluster.x-k8s.io/v1alpha1"
)

// kind is what a document says of itself.
type kind struct{ apiVersion, kind string }

func (k kind) String() string { return k.apiVersion + " " + k.kind }

func (d document) errorAt(field, format string, args ...any) error {
	return broken(d.position(field), field, format, args...)
}

// kind reads apiVersion and kind; what is missing comes from the list that the document is in.
func (d document) kind(inList kind) (kind, error) {
	if resolve(d.root).Kind != yaml.MappingNode {
		return kind{}, d.errorAt("", "want a Kubernetes object: a mapping with apiVersion and kind")
	}
	k := inList
	for field, text := range map[string]*string{"apiVersion": &k.apiVersion, "kind": &k.kind} {
		value := at(d.root, field)
		if value == nil {
			continue
		}
		if value = resolve(value); value.Kind != yaml.ScalarNode {
			return kind{}, d.errorAt(field, "want text")
		}
		*text = value.Value
	}
	if k.kind == "" {
		return kind{}, d.errorAt("kind", "missing: a Kubernetes object says its kind")
	}
	if k.apiVersion == "" {
		return kind{}, d.errorAt("apiVersion", "missing: a Kubernetes object says its apiVersion")
	}
	return k, nil
}

// document takes one document: an object, or a list of them.
func (r *reader) document(d document) error {
	if kind, ok := d.meshType(); ok {
		return r.mesh(d, kind)
	}
	if r.fragment(d) {
		return nil
	}
	k, err := d.kind(kind{})
	if err != nil {
		return err
	}
	switch k {
	case kind{"v1", "List"}:
		return r.items(d, kind{}) // they say what they are
	case kind{"v1", "NodeList"}, kind{"v1", "ServiceList"}, kind{"v1", "PodList"}, kind{"v1", "NamespaceList"},
		kind{"discovery.k8s.io/v1", "EndpointSliceList"}, kind{importsV1Beta1, "ServiceImportList"}, kind{importsV1Alpha1, "ServiceImportList"}, kind{gatewayV1, "HTTPRouteList"}, kind{gatewayV1Beta1, "HTTPRouteList"},
		kind{gatewayV1, "GRPCRouteList"}, policyListKind():
		return r.items(d, kind{apiVersion: k.apiVersion, kind: strings.TrimSuffix(k.kind, "List")})
	default:
		return r.object(d, k)
	}
}

// items takes the objects of a list, which are of the kind of the list unless they say otherwise.
func (r *reader) items(d document, k kind) error {
	items := at(d.root, "items")
	if items == nil || resolve(items).ShortTag() == "!!null" {
		return nil
	}
	if items = resolve(items); items.Kind != yaml.SequenceNode {
		return d.errorAt("items", "want a list")
	}
	var broken []error
	for _, item := range items.Content {
		element := document{file: d.file, root: item}
		if item.Kind == yaml.AliasNode {
			return element.errorAt("", "an alias in place of an object: write the object out")
		}
		if typed, ok := element.meshType(); ok && k == (kind{}) {
			broken = append(broken, r.mesh(element, typed))
			continue
		}
		k, err := element.kind(k)
		switch {
		case err != nil:
		case strings.HasSuffix(k.kind, "List"): // as what several calls of kubectl get, put together, have
			err = r.document(element)
		default:
			err = r.object(element, k)
		}
		broken = append(broken, err)
	}
	return errors.Join(broken...)
}

// object takes one object.
func (r *reader) object(d document, k kind) error {
	switch k {
	case kind{"v1", "Node"}:
		return take(r, d, k, &r.objects.Nodes)
	case kind{"v1", "Service"}:
		return take(r, d, k, &r.objects.Services)
	case kind{"discovery.k8s.io/v1", "EndpointSlice"}:
		return take(r, d, k, &r.objects.Slices)
	case kind{importsV1Beta1, convert.KindServiceImport}, kind{importsV1Alpha1, convert.KindServiceImport}:
		return take(r, d, k, &r.objects.Imports)
	case kind{"v1", "Pod"}:
		return take(r, d, k, &r.objects.Pods)
	case kind{"v1", "Namespace"}:
		return take(r, d, k, &r.namespaces)
	case kind{gatewayV1, "HTTPRoute"}, kind{gatewayV1Beta1, "HTTPRoute"}:
		return take(r, d, k, &r.httpRoutes)
	case kind{gatewayV1, "GRPCRoute"}:
		return take(r, d, k, &r.grpcRoutes)
	case policyKind():
		return r.attached(d, k)
	default:
		if r.meshObject(d, k) || r.otherPolicyKind(d, k) {
			return nil
		}
		r.skipped[k.String()]++
		return nil
	}
}

// take decodes an object and adds it to list, unless there is one of its name already.
func take[T any, P interface {
	*T
	metav1.Object
}](r *reader, d document, k kind, list *[]*T,
) error {
	value := P(new(T))
	unknown, err := r.decode(d, value)
	if err != nil {
		return err
	}
	ref := refOf(k, value)
	if !r.register(d, ref) {
		return nil
	}
	for _, field := range unknown {
		r.report(reason.Finding{Object: ref, Field: field, Reason: reason.Unknown, Message: "unknown field: passed over"})
	}
	*list = append(*list, (*T)(value))
	return nil
}

// refOf names an object. A manifest may leave out the namespace.
func refOf(k kind, object metav1.Object) reason.Object {
	ref := reason.Object{Kind: k.kind, Namespace: object.GetNamespace(), Name: object.GetName()}
	switch {
	case k.kind == "Node", k.kind == "Namespace":
		ref.Namespace = ""
	case ref.Namespace == "":
		ref.Namespace = corev1.NamespaceDefault
	}
	return ref
}

// register notes where an object stands, and tells whether it counts: it has a name that no earlier one has.
func (r *reader) register(d document, ref reason.Object) bool {
	severity := reason.Warning
	if ref.Kind == v1alpha1.Kind {
		severity = reason.Refused
	}
	if ref.Name == "" {
		r.problems = append(r.problems, reason.Finding{
			Position: d.position(""), Object: ref, Field: "metadata.name", Severity: severity, Reason: reason.Invalid,
			Message: "the object has no name: left out",
		})
		return false
	}
	if first, ok := r.places[ref]; ok {
		r.problems = append(r.problems, reason.Finding{
			Position: d.position(""), Object: ref, Severity: severity, Reason: reason.Repeated,
			Message: fmt.Sprintf("the object is in %s already, and that one counts", first.position("")),
		})
		return false
	}
	r.places[ref] = d
	return true
}

// decode reads a document into value, a Kubernetes object, and gives the paths of fields that it does not have.
func (r *reader) decode(d document, value any) (unknown []string, err error) {
	var strict []error
	repeated := r.repeated
	check := func() error {
		e := encoder{file: d.file, repeated: repeated}
		err := e.value(d.root)
		r.repeated = e.repeated
		if err == nil {
			strict, err = kubejson.UnmarshalStrict(e.out.Bytes(), value, kubejson.DisallowUnknownFields)
		}
		return err
	}
	if err := check(); err != nil {
		if _, ok := errors.AsType[*reason.Finding](err); ok {
			return nil, err
		}
		path, node := culprit(d.root, check)
		if own := check(); own != nil { // that of the culprit alone, as another's may come first
			err = own
		}
		return nil, broken(d.positionOf(node), path, "%s", typeError(err))
	}
	for _, err := range strict {
		if field, ok := errors.AsType[kubejson.FieldError](err); ok {
			unknown = append(unknown, field.FieldPath())
		}
	}
	return unknown, nil
}
