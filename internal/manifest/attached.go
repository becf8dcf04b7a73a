package manifest

import (
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-lb/weir/api/v1alpha1"
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/policies"
)

// policyKind is what a LoadBalancingPolicy says of itself.
func policyKind() kind {
	return kind{apiVersion: v1alpha1.GroupVersion().String(), kind: v1alpha1.Kind}
}

func policyListKind() kind {
	k := policyKind()
	k.kind += "List"
	return k
}

// otherPolicyKind reports an object that was most likely meant to be a LoadBalancingPolicy: one of weir's API group in a
// version or of a kind that is not there, or of a kind with a similar name in any group. It tells whether there was one.
func (r *reader) otherPolicyKind(d document, k kind) bool {
	want := policyKind()
	near, isNear := topology.Nearest(k.kind, []string{want.kind, policyListKind().kind})
	if group, _, _ := strings.Cut(k.apiVersion, "/"); group != v1alpha1.GroupVersion().Group && !isNear {
		return false
	}
	name := d.name()
	f := reason.Finding{
		Object: refOf(k, &name), Field: "kind", Severity: reason.Refused, Reason: reason.Unknown,
		Message: fmt.Sprintf("unknown kind %s", k),
	}
	switch {
	case k.kind == near:
		f.Field, f.Message = "apiVersion", fmt.Sprintf("there is no %s in %s", k.kind, k.apiVersion)
		f.Mend = fmt.Sprintf("did you mean %s?", want.apiVersion)
	case isNear:
		f.Mend = fmt.Sprintf("did you mean %s?", kind{want.apiVersion, near})
	default:
		f.Mend = fmt.Sprintf("did you mean %s?", want)
	}
	r.found(d, f)
	return true
}

// attached takes a LoadBalancingPolicy. An API server would not take one with fields that it does not know, so that one in
// a file is refused for them; and one with a field of the wrong type is no reason to stop at the others.
func (r *reader) attached(d document, k kind) error {
	value := new(v1alpha1.LoadBalancingPolicy)
	name := d.name() // before decode, which may leave of the document no more than its mistake
	whole := copyOf(d.root, maxDepth)
	unknown, err := r.decode(d, value)
	mistake, isMistake := errors.AsType[*reason.Finding](err)
	switch {
	case isMistake && mistake.Field != "":
		value = &v1alpha1.LoadBalancingPolicy{ObjectMeta: name}
		d.root = whole
	case err != nil:
		return err
	}
	if value.Namespace == "" {
		value.Namespace = corev1.NamespaceDefault
	}
	ref := refOf(k, value)
	if !r.register(d, ref) {
		return nil
	}
	first := len(r.problems)
	for ; isMistake && len(r.problems)-first < maxMistakes; mistake, isMistake = r.nextMistake(d, mistake.Field) {
		mistake.Object, mistake.Reason = ref, reason.Invalid
		r.problems = append(r.problems, *mistake)
	}
	for _, field := range unknown {
		r.report(reason.Finding{
			Object: ref, Field: field, Severity: reason.Refused, Reason: reason.Unknown, Message: "unknown field",
		})
	}
	var rules []policy.Rule
	if err == nil {
		var problems []reason.Finding
		rules, problems = policies.Rules(value)
		for _, p := range problems {
			r.report(p)
		}
	}
	r.follow(d, value, rules, r.problems[first:])
	return nil
}

// maxMistakes is how many fields of the wrong type are reported of an object: each is found with some fifty attempts.
const maxMistakes = 20

// nextMistake finds the next field of the wrong type, after one that is reported has been emptied; false: there is none.
func (r *reader) nextMistake(d document, reported string) (*reason.Finding, bool) {
	empty(d.root, reported)
	_, err := r.decode(document{file: d.file, root: copyOf(d.root, maxDepth)}, new(v1alpha1.LoadBalancingPolicy))
	mistake, ok := errors.AsType[*reason.Finding](err)
	return mistake, ok && mistake.Field != "" && mistake.Field != reported
}

// follow adds the rules of a policy, or notes that it is refused for one of these problems.
func (r *reader) follow(d document, p *v1alpha1.LoadBalancingPolicy, rules []policy.Rule, problems []reason.Finding) {
	source := d.position("")
	for i := range problems {
		if problems[i].IsRefused() {
			problems[i].Instead = policyLeftOut
		}
	}
	if reason.AnyRefused(problems) {
		r.refused = append(r.refused, policy.Origin{
			Dialect: policy.DialectCRD, Namespace: p.Namespace, Name: p.Name, Created: p.CreationTimestamp.Time, Source: source,
		})
		return
	}
	for _, rule := range rules {
		rule.Origin.Source = source
		r.rules = append(r.rules, rule)
	}
}

// name gives the name and namespace of an object as far as they are text.
func (d document) name() metav1.ObjectMeta {
	var name metav1.ObjectMeta
	for field, text := range map[string]*string{"name": &name.Name, "namespace": &name.Namespace} {
		if metadata := at(d.root, "metadata"); metadata != nil {
			if value := at(metadata, field); value != nil && resolve(value).Kind == yaml.ScalarNode {
				*text = resolve(value).Value
			}
		}
	}
	return name
}
