package policies

import (
	"fmt"
	"regexp"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/weir-lb/weir/api/v1alpha1"
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/topology"
)

// conf reads what a policy says. What is refused is left out.
func (r *reader) conf(s *v1alpha1.LoadBalancingPolicySpec) policy.Conf {
	return policy.Conf{
		LoadBalancer:     r.loadBalancer(s.LoadBalancer),
		HashPolicies:     r.hashPolicies(s.HashPolicies),
		EndpointHashKey:  r.endpointHashKey(s.EndpointHashKey),
		Locality:         r.locality(s.Locality),
		OutlierDetection: r.outlierDetection(s.OutlierDetection),
		SlowStart:        r.slowStart(s.SlowStart),
		PanicThreshold:   r.decimal("panicThreshold", s.PanicThreshold),
	}
}

func (r *reader) loadBalancer(l *v1alpha1.LoadBalancer) *policy.LoadBalancer {
	if l == nil {
		return nil
	}
	to := &policy.LoadBalancer{Type: policy.Algorithm(l.Type)}
	if b := l.LeastRequest; b != nil {
		to.LeastRequest = &policy.LeastRequestConf{
			ChoiceCount:       number(b.ChoiceCount),
			ActiveRequestBias: r.decimal("loadBalancer.leastRequest.activeRequestBias", b.ActiveRequestBias),
		}
	}
	if b := l.RingHash; b != nil {
		to.RingHash = &policy.RingHashConf{
			MinRingSize: r.size("loadBalancer.ringHash.minRingSize", b.MinRingSize),
			MaxRingSize: r.size("loadBalancer.ringHash.maxRingSize", b.MaxRingSize),
		}
		if b.HashFunction != nil {
			to.RingHash.HashFunction = policy.HashFunction(*b.HashFunction)
			if *b.HashFunction == "" {
				r.refuse("loadBalancer.ringHash.hashFunction", "want XXHash or MurmurHash2")
			}
		}
	}
	if b := l.Maglev; b != nil {
		to.Maglev = &policy.MaglevConf{TableSize: r.size("loadBalancer.maglev.tableSize", b.TableSize)}
	}
	return to
}

func (r *reader) hashPolicies(list []v1alpha1.HashPolicy) []policy.HashPolicy {
	if list == nil {
		return nil
	}
	to := make([]policy.HashPolicy, 0, len(list))
	for i := range list {
		to = append(to, r.hashPolicy(fmt.Sprintf("hashPolicies[%d]", i), &list[i]))
	}
	return to
}

// hashPolicy reads one step. Which block it has is lost in what the core knows, and so is checked here.
func (r *reader) hashPolicy(field string, h *v1alpha1.HashPolicy) policy.HashPolicy {
	to := policy.HashPolicy{Type: policy.HashPolicyType(h.Type), Terminal: h.Terminal != nil && *h.Terminal}
	blocks := []struct {
		of    policy.HashPolicyType
		field string
		there bool
	}{
		{policy.HashHeader, "header", h.Header != nil},
		{policy.HashCookie, "cookie", h.Cookie != nil},
		{policy.HashQueryParameter, "queryParameter", h.QueryParameter != nil},
		{policy.HashFilterState, "filterState", h.FilterState != nil},
	}
	for _, b := range blocks {
		switch {
		case b.there && b.of != to.Type:
			r.refuse(field+"."+b.field, "goes with type %s only", b.of)
		case !b.there && b.of == to.Type:
			r.refuse(field+"."+b.field, "is needed with type %s", b.of)
		}
	}
	switch {
	case h.Header != nil:
		to.Name = h.Header.Name
	case h.QueryParameter != nil:
		to.Name = h.QueryParameter.Name
	case h.FilterState != nil:
		to.Name = h.FilterState.Key
	case h.Cookie != nil:
		to.Name = h.Cookie.Name
		to.TTL = duration(h.Cookie.TTL)
		if h.Cookie.Path != nil {
			to.Path = *h.Cookie.Path
			if to.Path == "" {
				r.refuse(field+".cookie.path", "want a path that begins with a slash, or nothing")
			}
		}
	}
	return to
}

func (r *reader) endpointHashKey(k *v1alpha1.EndpointHashKey) *policy.EndpointHashKey {
	if k == nil {
		return nil
	}
	to := &policy.EndpointHashKey{Type: policy.EndpointHashKeyType(k.Type)}
	if k.Key != nil {
		to.Key = *k.Key
		if to.Key == "" {
			r.refuse("endpointHashKey.key", "want the key of a label or an annotation")
		}
	}
	return to
}

func (r *reader) locality(l *v1alpha1.Locality) policy.Locality {
	if l == nil {
		return policy.Locality{}
	}
	to := policy.Locality{
		Disabled:          clone(l.Disabled),
		ZoneKey:           clone(l.ZoneKey),
		Affinity:          r.affinity(l.Affinity),
		Weights:           r.weights(l.Weights),
		Failover:          r.failover(l.Failover),
		FailoverThreshold: r.decimal("locality.failoverThreshold", l.FailoverThreshold),
		Costs:             r.costs(l.Costs),
	}
	if o := l.Overflow; o != nil {
		if o.Mode != nil {
			to.Overflow.Mode = new(policy.OverflowMode(*o.Mode))
		}
		if b := o.LoadBand; b != nil {
			low, high := r.decimal("locality.overflow.loadBand.low", &b.Low), r.decimal("locality.overflow.loadBand.high", &b.High)
			if low != nil && high != nil {
				to.Overflow.LoadBand = &policy.LoadBand{Low: *low, High: *high}
			}
		}
	}
	return to
}

func (r *reader) affinity(list []v1alpha1.Affinity) []policy.Affinity {
	if list == nil {
		return nil
	}
	to := make([]policy.Affinity, 0, len(list))
	for i, a := range list {
		one := policy.Affinity{Key: a.Key}
		if a.Weight != nil {
			one.Weight = new(r.weight(fmt.Sprintf("locality.affinity[%d].weight", i), *a.Weight))
		}
		to = append(to, one)
	}
	return to
}

func (r *reader) weights(list []v1alpha1.Weight) []policy.Weight {
	if list == nil {
		return nil
	}
	to := make([]policy.Weight, 0, len(list))
	for i, w := range list {
		weight := r.weight(fmt.Sprintf("locality.weights[%d].weight", i), w.Weight)
		to = append(to, policy.Weight{Key: w.Key, Value: w.Value, Weight: weight})
	}
	return to
}

func (r *reader) failover(list []v1alpha1.Failover) []policy.Failover {
	if list == nil {
		return nil
	}
	to := make([]policy.Failover, 0, len(list))
	for i, f := range list {
		at := fmt.Sprintf("locality.failover[%d]", i)
		one := policy.Failover{To: policy.FailoverType(f.To.Type), Zone: zones(f.To.Zones)}
		if f.From != nil {
			one.From = zones(f.From.Zones)
			if len(f.From.Zones) == 0 {
				r.refuse(at+".from.zones", "want at least one zone, or no from for any")
			}
		}
		to = append(to, one)
	}
	return to
}

func (r *reader) costs(list []v1alpha1.Cost) []policy.Cost {
	if list == nil {
		return nil
	}
	to := make([]policy.Cost, 0, len(list))
	for i, c := range list {
		one := policy.Cost{From: topology.Zone(c.From), To: topology.Zone(c.To)}
		if cost := r.decimal(fmt.Sprintf("locality.costs[%d].cost", i), &c.Cost); cost != nil {
			one.Cost = *cost
		}
		to = append(to, one)
	}
	return to
}

func (r *reader) outlierDetection(o *v1alpha1.OutlierDetection) *policy.OutlierDetection {
	if o == nil {
		return nil
	}
	to := &policy.OutlierDetection{
		Interval:           duration(o.Interval),
		BaseEjectionTime:   duration(o.BaseEjectionTime),
		MaxEjectionTime:    duration(o.MaxEjectionTime),
		MaxEjectionPercent: r.decimal("outlierDetection.maxEjectionPercent", o.MaxEjectionPercent),
	}
	if c := o.Consecutive; c != nil {
		to.Consecutive = &policy.Consecutive{
			ServerErrors: number(c.ServerErrors), GatewayErrors: number(c.GatewayErrors), LocalErrors: number(c.LocalErrors),
		}
	}
	if s := o.SuccessRate; s != nil {
		to.SuccessRate = &policy.SuccessRate{
			Stdev:        r.decimal("outlierDetection.successRate.stdev", s.Stdev),
			MinimumHosts: number(s.MinimumHosts), RequestVolume: number(s.RequestVolume),
		}
	}
	if f := o.FailurePercentage; f != nil {
		to.FailurePercentage = &policy.FailurePercentage{
			Threshold:    r.decimal("outlierDetection.failurePercentage.threshold", f.Threshold),
			MinimumHosts: number(f.MinimumHosts), RequestVolume: number(f.RequestVolume),
		}
	}
	return to
}

func (r *reader) slowStart(s *v1alpha1.SlowStart) *policy.SlowStart {
	if s == nil {
		return nil
	}
	return &policy.SlowStart{
		Window:           s.Window.Duration,
		MinWeightPercent: r.decimal("slowStart.minWeightPercent", s.MinWeightPercent),
		Aggression:       r.decimal("slowStart.aggression", s.Aggression),
	}
}

// decimalShape is what the patterns of the CustomResourceDefinition take at most.
func decimalShape() *regexp.Regexp { return regexp.MustCompile(`^[0-9]{1,9}(\.[0-9]{1,12})?$`) }

func (r *reader) decimal(field string, d *intstr.IntOrString) *float64 {
	if d == nil {
		return nil
	}
	text := d.String()
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || d.Type == intstr.String && !decimalShape().MatchString(text) {
		r.refuse(field, `bad number %q, want one as 85 or "0.8"`, text)
		return nil
	}
	return &f
}

// size reads a number of entries.
func (r *reader) size(field string, n *int64) *uint64 {
	if n == nil {
		return nil
	}
	if *n < 0 {
		r.refuse(field, "is %d, want a number above 0", *n)
		return nil
	}
	return new(uint64(*n))
}

// maxWeight is what xDS has for the weight of a locality.
const maxWeight = 1<<32 - 1

func (r *reader) weight(field string, n int64) uint32 {
	if n < 1 || n > maxWeight {
		r.refuse(field, "is %d, want 1 to %d", n, int64(maxWeight))
		return 1
	}
	return uint32(n)
}

func number(n *int32) *int {
	if n == nil {
		return nil
	}
	return new(int(*n))
}

func duration(d *metav1.Duration) *time.Duration {
	if d == nil {
		return nil
	}
	return new(d.Duration)
}

func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	return new(*p)
}
