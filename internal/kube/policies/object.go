package policies

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/weir-lb/weir/api/v1alpha1"
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/convert"
)

// Documents writes rules as policies, which Rules reads as the same rules. It is how documents of the mesh become policies.
//
// Shape: the rules of one document with equal Conf, Clients and namespace become one policy, which has as many targets as it
// may have; the first policy of a document has its name, the others that and a number. The order of the rules is kept. A rule
// of the mesh's goes to the namespace of its clients or else of its target, or to policy.RootNamespace where it is about all.
//
// Clients are those of the rule: a namespace of clients is written as the policy's own where that says the same, and else as a
// selector by the label kubernetes.io/metadata.name. A rule of the mesh's about the services of a name in all namespaces
// cannot be said: its policy has no namespace, so that it means the services in the one that it is applied to, and a Problem
// says so.
func Documents(rules []policy.Rule) ([]*v1alpha1.LoadBalancingPolicy, []convert.Problem) {
	var drafts []*draft
	var problems []convert.Problem
	for i := range rules {
		r := &rules[i]
		if r.Target.Kind != policy.TargetMesh && r.Target.Namespace == "" {
			problems = append(problems, convert.Problem{
				Object:  convert.Ref{Kind: string(r.Origin.Dialect), Namespace: r.Origin.Namespace, Name: r.Origin.Name},
				Message: fmt.Sprintf("is about %s %s in every namespace; the policy will be about that of its own", r.Target.Kind, r.Target.Name),
				Source:  r.Origin.Source,
			})
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
	a.Entry, a.Source, b.Entry, b.Source = 0, "", 0, ""
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
	p.Spec = SpecOf(&d.rule.Conf)
	p.Spec.Clients = writeClients(&d.clients)
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

// SpecOf writes what a Conf says, without targets and clients.
func SpecOf(c *policy.Conf) v1alpha1.LoadBalancingPolicySpec {
	return v1alpha1.LoadBalancingPolicySpec{
		LoadBalancer:     writeLoadBalancer(c.LoadBalancer),
		HashPolicies:     each(c.HashPolicies, writeHashPolicy),
		EndpointHashKey:  writeEndpointHashKey(c.EndpointHashKey),
		Locality:         writeLocality(&c.Locality),
		OutlierDetection: writeOutlierDetection(c.OutlierDetection),
		SlowStart:        writeSlowStart(c.SlowStart),
		PanicThreshold:   writeDecimal(c.PanicThreshold),
	}
}

func writeLoadBalancer(l *policy.LoadBalancer) *v1alpha1.LoadBalancer {
	if l == nil {
		return nil
	}
	to := &v1alpha1.LoadBalancer{Type: string(l.Type)}
	if b := l.LeastRequest; b != nil {
		to.LeastRequest = &v1alpha1.LeastRequest{
			ChoiceCount: writeNumber(b.ChoiceCount), ActiveRequestBias: writeDecimal(b.ActiveRequestBias),
		}
	}
	if b := l.RingHash; b != nil {
		to.RingHash = &v1alpha1.RingHash{
			HashFunction: optional(string(b.HashFunction)),
			MinRingSize:  writeSize(b.MinRingSize), MaxRingSize: writeSize(b.MaxRingSize),
		}
	}
	if b := l.Maglev; b != nil {
		to.Maglev = &v1alpha1.Maglev{TableSize: writeSize(b.TableSize)}
	}
	return to
}

func writeHashPolicy(h policy.HashPolicy) v1alpha1.HashPolicy {
	to := v1alpha1.HashPolicy{Type: string(h.Type)}
	if h.Terminal {
		to.Terminal = &h.Terminal
	}
	switch h.Type {
	case policy.HashHeader:
		to.Header = &v1alpha1.HashHeader{Name: h.Name}
	case policy.HashCookie:
		to.Cookie = &v1alpha1.HashCookie{Name: h.Name, TTL: writeDuration(h.TTL), Path: optional(h.Path)}
	case policy.HashQueryParameter:
		to.QueryParameter = &v1alpha1.HashQueryParameter{Name: h.Name}
	case policy.HashFilterState:
		to.FilterState = &v1alpha1.HashFilterState{Key: h.Name}
	case policy.HashSourceIP:
	}
	return to
}

func writeEndpointHashKey(k *policy.EndpointHashKey) *v1alpha1.EndpointHashKey {
	if k == nil {
		return nil
	}
	return &v1alpha1.EndpointHashKey{Type: string(k.Type), Key: optional(k.Key)}
}

func writeLocality(l *policy.Locality) *v1alpha1.Locality {
	to := v1alpha1.Locality{
		Disabled:          clone(l.Disabled),
		ZoneKey:           clone(l.ZoneKey),
		FailoverThreshold: writeDecimal(l.FailoverThreshold),
		Affinity: each(l.Affinity, func(a policy.Affinity) v1alpha1.Affinity {
			one := v1alpha1.Affinity{Key: a.Key}
			if a.Weight != nil {
				one.Weight = new(int64(*a.Weight))
			}
			return one
		}),
		Weights: each(l.Weights, func(w policy.Weight) v1alpha1.Weight {
			return v1alpha1.Weight{Key: w.Key, Value: w.Value, Weight: int64(w.Weight)}
		}),
		Failover: each(l.Failover, func(f policy.Failover) v1alpha1.Failover {
			one := v1alpha1.Failover{To: v1alpha1.FailoverTo{Type: string(f.To), Zones: names(f.Zone)}}
			if f.From != nil {
				one.From = &v1alpha1.FailoverFrom{Zones: names(f.From)}
			}
			return one
		}),
		Costs: each(l.Costs, func(c policy.Cost) v1alpha1.Cost {
			return v1alpha1.Cost{From: string(c.From), To: string(c.To), Cost: *writeDecimal(&c.Cost)}
		}),
	}
	if o := l.Overflow; o != (policy.Overflow{}) {
		to.Overflow = new(v1alpha1.Overflow)
		if o.Mode != nil {
			to.Overflow.Mode = new(string(*o.Mode))
		}
		if b := o.LoadBand; b != nil {
			to.Overflow.LoadBand = &v1alpha1.LoadBand{Low: *writeDecimal(&b.Low), High: *writeDecimal(&b.High)}
		}
	}
	if reflect.ValueOf(to).IsZero() {
		return nil
	}
	return &to
}

func writeOutlierDetection(o *policy.OutlierDetection) *v1alpha1.OutlierDetection {
	if o == nil {
		return nil
	}
	to := &v1alpha1.OutlierDetection{
		Interval:           writeDuration(o.Interval),
		BaseEjectionTime:   writeDuration(o.BaseEjectionTime),
		MaxEjectionTime:    writeDuration(o.MaxEjectionTime),
		MaxEjectionPercent: writeDecimal(o.MaxEjectionPercent),
	}
	if c := o.Consecutive; c != nil {
		to.Consecutive = &v1alpha1.Consecutive{
			ServerErrors: writeNumber(c.ServerErrors), GatewayErrors: writeNumber(c.GatewayErrors),
			LocalErrors: writeNumber(c.LocalErrors),
		}
	}
	if s := o.SuccessRate; s != nil {
		to.SuccessRate = &v1alpha1.SuccessRate{
			Stdev: writeDecimal(s.Stdev), MinimumHosts: writeNumber(s.MinimumHosts), RequestVolume: writeNumber(s.RequestVolume),
		}
	}
	if f := o.FailurePercentage; f != nil {
		to.FailurePercentage = &v1alpha1.FailurePercentage{
			Threshold: writeDecimal(f.Threshold), MinimumHosts: writeNumber(f.MinimumHosts),
			RequestVolume: writeNumber(f.RequestVolume),
		}
	}
	return to
}

func writeSlowStart(s *policy.SlowStart) *v1alpha1.SlowStart {
	if s == nil {
		return nil
	}
	return &v1alpha1.SlowStart{
		Window:           metav1.Duration{Duration: s.Window},
		MinWeightPercent: writeDecimal(s.MinWeightPercent), Aggression: writeDecimal(s.Aggression),
	}
}

// writeDecimal writes whole numbers as such and others as text, because readers of YAML take those with a point for floats.
func writeDecimal(f *float64) *intstr.IntOrString {
	if f == nil {
		return nil
	}
	if *f == math.Trunc(*f) && math.Abs(*f) <= math.MaxInt32 {
		return new(intstr.FromInt32(int32(*f)))
	}
	return new(intstr.FromString(strconv.FormatFloat(*f, 'f', -1, 64)))
}

func writeNumber(n *int) *int32 {
	if n == nil {
		return nil
	}
	return new(int32(min(max(*n, math.MinInt32), math.MaxInt32)))
}

func writeSize(n *uint64) *int64 {
	if n == nil {
		return nil
	}
	return new(int64(min(*n, math.MaxInt64)))
}

func writeDuration(d *time.Duration) *metav1.Duration {
	if d == nil {
		return nil
	}
	return &metav1.Duration{Duration: *d}
}

func names(zones []topology.Zone) []string {
	var list []string
	for _, z := range zones {
		list = append(list, string(z))
	}
	return list
}

// each writes a list; nil, where nothing was said, stays nil.
func each[From, To any](list []From, write func(From) To) []To {
	if list == nil {
		return nil
	}
	to := make([]To, 0, len(list))
	for _, one := range list {
		to = append(to, write(one))
	}
	return to
}

// optional gives nil for the empty text, which stands for nothing said.
func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
