package policies

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-lb/weir/api/v1alpha1"
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// Documents writes rules as policies, which Rules reads as the same rules. It is how documents of the mesh become policies.
//
// Shape: the rules of one document with equal Conf, Clients and namespace become one policy, which has as many targets as it
// may have; the first policy of a document has its name, the others that and a number. The order of the rules is kept. A rule
// of the mesh's goes to the namespace of its clients or else of its target, or to policy.RootNamespace where it is about all.
//
// Clients are those of the rule: a namespace of clients is written as the policy's own where that says the same, and else as a
// selector by the label kubernetes.io/metadata.name. A rule of the mesh's about the services of a name in all namespaces
// cannot be said: its policy has no namespace, so that it means the services in the one that it is applied to, and a finding
// says so.
func Documents(rules []policy.Rule) ([]*v1alpha1.LoadBalancingPolicy, []reason.Finding) {
	var drafts []*draft
	var problems []reason.Finding
	for i := range rules {
		r := &rules[i]
		if r.Target.Kind != policy.TargetMesh && r.Target.Namespace == "" {
			problems = append(problems, r.Origin.Finding("", reason.Differs,
				fmt.Sprintf("is about %s %s in every namespace; the policy will be about that of its own", r.Target.Kind, r.Target.Name)))
		}
		home, clients := place(r)
		same := func(d *draft) bool { return d.takes(r, home, &clients) }
		if n := slices.IndexFunc(drafts, same); n >= 0 {
			drafts[n].targets = append(drafts[n].targets, r.Target)
			continue
		}
		drafts = append(drafts, &draft{rule: r, home: home, clients: clients, targets: []policy.Target{r.Target}})
	}
	taken := make(map[string]bool)
	var list []*v1alpha1.LoadBalancingPolicy
	for _, d := range drafts {
		list = append(list, d.policy(taken))
	}
	return list, problems
}

// draft is a policy in the making.
type draft struct {
	rule    *policy.Rule // the first one
	home    string       // the policy's namespace
	clients policy.Clients
	targets []policy.Target
}

func (d *draft) takes(r *policy.Rule, home string, clients *policy.Clients) bool {
	a, b := d.rule.Origin, r.Origin
	a.Entry, a.Source, b.Entry, b.Source = 0, reason.Position{}, 0, reason.Position{}
	return a == b && d.home == home && len(d.targets) < maxTargets && !slices.Contains(d.targets, r.Target) &&
		reflect.DeepEqual(&d.clients, clients) && reflect.DeepEqual(&d.rule.Conf, &r.Conf)
}

// place gives the namespace of the policy that says a rule, and the clients that it names.
func place(r *policy.Rule) (home string, clients policy.Clients) {
	clients = r.Clients
	clients.Namespace = ""
	home = r.Target.Namespace
	isSystems := !r.Origin.Dialect.IsMesh() && r.Origin.Namespace == policy.RootNamespace
	if r.Target.Kind == policy.TargetMesh || isSystems && isService(r.Target.Kind) {
		home = policy.RootNamespace
	}
	consumer := r.Clients.Namespace
	switch {
	case consumer == "":
	case isService(r.Target.Kind) && consumer != home && consumer != policy.RootNamespace && !isSystems:
		home = consumer
	default:
		own := policy.Requirement{Key: corev1.LabelMetadataName, Operator: policy.In, Values: []string{consumer}}
		clients.Namespaces = append(slices.Clone(r.Clients.Namespaces), own)
	}
	return home, clients
}

func (d *draft) policy(taken map[string]bool) *v1alpha1.LoadBalancingPolicy {
	p := &v1alpha1.LoadBalancingPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: v1alpha1.Kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: d.home, Name: free(taken, d.home, d.rule.Origin.Name)},
	}
	if created := d.rule.Origin.Created; !created.IsZero() {
		p.CreationTimestamp = metav1.NewTime(created)
	}
	p.Spec.Conf, p.Spec.Clients = d.rule.Conf, writeClients(&d.clients)
	for _, t := range d.targets {
		p.Spec.TargetRefs = append(p.Spec.TargetRefs, writeTarget(t, d.home))
	}
	return p
}

// maxName is the longest name of an object, with room for a number.
const maxName = 253 - 8

// free gives a name that is not taken in a namespace, from one that need not be a Kubernetes name.
func free(taken map[string]bool, namespace, name string) string {
	name = strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '.':
			return c
		case c >= 'A' && c <= 'Z':
			return c - 'A' + 'a'
		default:
			return '-'
		}
	}, name)
	name = strings.Trim(name[:min(len(name), maxName)], "-.")
	name = cmp.Or(strings.NewReplacer(".-", ".", "-.", ".", "..", ".").Replace(name), "policy")
	one := name
	for n := 2; taken[namespace+"/"+one]; n++ {
		one = fmt.Sprintf("%s-%d", name, n)
	}
	taken[namespace+"/"+one] = true
	return one
}

func writeTarget(t policy.Target, home string) v1alpha1.TargetRef {
	ref := v1alpha1.TargetRef{Group: targetGroups()[t.Kind], Kind: string(t.Kind), Name: t.Name, SectionName: optional(t.Section)}
	switch {
	case t.Kind == policy.TargetMesh:
		ref.Name = meshName
	case t.Kind == policy.TargetNamespace:
		ref.Name = t.Namespace
	case isService(t.Kind) && t.Namespace != home:
		ref.Namespace = &t.Namespace
	}
	return ref
}

func writeClients(c *policy.Clients) *v1alpha1.Clients {
	to := v1alpha1.Clients{
		Zones: names(c.Zones), PodSelector: writeSelector(c.Pods), NamespaceSelector: writeSelector(c.Namespaces),
	}
	if c.Service != nil {
		to.Service = &v1alpha1.ServiceRef{Namespace: c.Service.Namespace, Name: c.Service.Name}
	}
	if reflect.ValueOf(to).IsZero() {
		return nil
	}
	return &to
}

// writeSelector writes as labels what stands first and is sorted, and the rest as expressions, so that reading gives the same order.
func writeSelector(s policy.Selector) *metav1.LabelSelector {
	if len(s) == 0 {
		return nil
	}
	to := new(metav1.LabelSelector)
	last := ""
	for i, q := range s {
		if q.Operator == policy.In && len(q.Values) == 1 && len(to.MatchExpressions) == 0 && (i == 0 || q.Key > last) {
			if to.MatchLabels == nil {
				to.MatchLabels = make(map[string]string)
			}
			to.MatchLabels[q.Key], last = q.Values[0], q.Key
			continue
		}
		to.MatchExpressions = append(to.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: q.Key, Operator: metav1.LabelSelectorOperator(q.Operator), Values: slices.Clone(q.Values),
		})
	}
	return to
}

func names(zones []topology.Zone) []string {
	var list []string
	for _, z := range zones {
		list = append(list, string(z))
	}
	return list
}

// optional gives nil for the empty text, which stands for nothing said.
func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
