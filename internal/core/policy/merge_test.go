package policy_test

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/core/policy"
)

func TestMergeRows(t *testing.T) {
	ring := func(least, most *uint64) *policy.LoadBalancer {
		return &policy.LoadBalancer{Type: policy.RingHash, RingHash: &policy.RingHashConf{MinRingSize: least, MaxRingSize: most}}
	}
	maglev := &policy.LoadBalancer{Type: policy.Maglev, Maglev: &policy.MaglevConf{TableSize: new(uint64(251))}}
	header := policy.HashPolicy{Type: policy.HashHeader, Name: "x"}
	source := policy.HashPolicy{Type: policy.HashSourceIP}
	whole := *ring(new(uint64(9)), nil)
	whole.Whole = true
	for name, c := range map[string]struct{ weaker, stronger, want policy.Conf }{
		"K-60 objects merge": {
			policy.Conf{LoadBalancer: ring(new(uint64(1)), new(uint64(7)))},
			policy.Conf{LoadBalancer: ring(nil, new(uint64(8)))},
			policy.Conf{LoadBalancer: ring(new(uint64(1)), new(uint64(8)))},
		},
		"K-60 lists are replaced": {
			policy.Conf{HashPolicies: []policy.HashPolicy{header, source}},
			policy.Conf{HashPolicies: []policy.HashPolicy{source}},
			policy.Conf{HashPolicies: []policy.HashPolicy{source}},
		},
		"K-60 an empty list replaces, too": {
			policy.Conf{HashPolicies: []policy.HashPolicy{header}},
			policy.Conf{HashPolicies: []policy.HashPolicy{}},
			policy.Conf{HashPolicies: []policy.HashPolicy{}},
		},
		"K-64 a load balancer of another type is replaced whole": {
			policy.Conf{LoadBalancer: maglev},
			policy.Conf{LoadBalancer: ring(new(uint64(9)), nil)},
			policy.Conf{LoadBalancer: &whole},
		},
		"K-65 the threshold is one value": {
			policy.Conf{Locality: policy.Locality{FailoverThreshold: new(50.0)}},
			policy.Conf{Locality: policy.Locality{FailoverThreshold: new(70.0)}},
			policy.Conf{Locality: policy.Locality{FailoverThreshold: new(70.0)}},
		},
		"a slow start is one value": {
			policy.Conf{SlowStart: &policy.SlowStart{Window: time.Minute, Aggression: new(2.0)}},
			policy.Conf{SlowStart: &policy.SlowStart{Window: time.Second}},
			policy.Conf{SlowStart: &policy.SlowStart{Window: time.Second}},
		},
		"a load band is one value, its mode another": {
			policy.Conf{Locality: policy.Locality{Overflow: policy.Overflow{Mode: new(policy.OverflowLoadBand), LoadBand: &policy.LoadBand{Low: 1, High: 2}}}},
			policy.Conf{Locality: policy.Locality{Overflow: policy.Overflow{LoadBand: &policy.LoadBand{Low: 3, High: 4}}}},
			policy.Conf{Locality: policy.Locality{Overflow: policy.Overflow{Mode: new(policy.OverflowLoadBand), LoadBand: &policy.LoadBand{Low: 3, High: 4}}}},
		},
		"detectors merge by field": {
			policy.Conf{OutlierDetection: &policy.OutlierDetection{Consecutive: &policy.Consecutive{ServerErrors: new(5)}}},
			policy.Conf{OutlierDetection: &policy.OutlierDetection{Consecutive: &policy.Consecutive{LocalErrors: new(0)}}},
			policy.Conf{OutlierDetection: &policy.OutlierDetection{Consecutive: &policy.Consecutive{ServerErrors: new(5), LocalErrors: new(0)}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, policy.Merge(c.weaker, c.stronger)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestMergeDoesNotDependOnTheGroupingWhenATypeComesBack(t *testing.T) {
	first := policy.Conf{LoadBalancer: &policy.LoadBalancer{
		Type: policy.LeastRequest, LeastRequest: &policy.LeastRequestConf{ChoiceCount: new(8)},
	}}
	between := policy.Conf{LoadBalancer: &policy.LoadBalancer{Type: policy.RoundRobin}}
	last := policy.Conf{LoadBalancer: &policy.LoadBalancer{Type: policy.LeastRequest}}
	got := policy.Merge(first, policy.Merge(between, last))
	if got.LoadBalancer.LeastRequest != nil {
		t.Error("a choice count came back that a rule between had taken away")
	}
	if diff := cmp.Diff(policy.Merge(policy.Merge(first, between), last), got); diff != "" {
		t.Errorf("(-left +right)\n%s", diff)
	}
}

// mergeLaws checks what every merge has to keep.
func mergeLaws(t *testing.T, seed uint64) {
	t.Helper()
	g := newGenerator(seed)
	a, b, c := g.conf(), g.conf(), g.conf()
	left := policy.Merge(policy.Merge(a, b), c)
	right := policy.Merge(a, policy.Merge(b, c))
	if diff := cmp.Diff(left, right); diff != "" {
		t.Fatalf("seed %d: not associative (-(ab)c +a(bc))\n%s", seed, diff)
	}
	for name, got := range map[string]policy.Conf{
		"idempotent":            policy.Merge(a, a),
		"unchanged by silence":  policy.Merge(a, policy.Conf{}),
		"unchanged over nobody": policy.Merge(policy.Conf{}, a),
	} {
		if diff := cmp.Diff(a, got); diff != "" {
			t.Fatalf("seed %d: not %s (-want +got)\n%s", seed, name, diff)
		}
	}
	if diff := cmp.Diff(left, policy.Merge(left, left)); diff != "" {
		t.Fatalf("seed %d: a merged conf is not idempotent\n%s", seed, diff)
	}
	twin := mergePatch(mergePatch(document(&a), document(&b)), document(&c))
	if diff := cmp.Diff(twin, document(&left)); diff != "" {
		t.Fatalf("seed %d: differs from a JSON merge patch (-patch +merge)\n%s", seed, diff)
	}
}

func TestMergeIsAssociativeIdempotentAndAJSONMergePatch(t *testing.T) {
	for seed := range uint64(1000) {
		mergeLaws(t, seed)
	}
}

func FuzzMerge(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(mergeLaws)
}

// object is a JSON object.
type object map[string]any

// mergePatch is RFC 7396 without deletions, but for a load balancer of another type and for what the reference calls atomic.
func mergePatch(target, patch object) object {
	merged := maps.Clone(target)
	if merged == nil {
		merged = object{}
	}
	for key, value := range patch {
		inner, isObject := value.(object)
		old, had := merged[key].(object)
		switch {
		case !isObject || !had:
			merged[key] = value
		case key == "loadBalancer" && old["type"] != inner["type"], key == "loadBand", key == "slowStart", key == "endpointHashKey":
			merged[key] = value
		default:
			merged[key] = mergePatch(old, inner)
		}
	}
	return merged
}

// put sets a field that was said.
func put[T any](o object, key string, value *T) {
	if value != nil {
		o[key] = *value
	}
}

// putList sets a list that was said; it is opaque to the merge.
func putList[T any](o object, key string, values []T) {
	if values != nil {
		o[key] = values
	}
}

// putObject sets an object that was said.
func putObject[T any](o object, key string, value *T, fill func(object, *T)) {
	if value == nil {
		return
	}
	inner := object{}
	fill(inner, value)
	o[key] = inner
}

// document spells a conf as the CRD does.
func document(c *policy.Conf) object {
	o := object{}
	putObject(o, "loadBalancer", c.LoadBalancer, func(o object, b *policy.LoadBalancer) {
		o["type"] = b.Type
		putObject(o, "leastRequest", b.LeastRequest, func(o object, l *policy.LeastRequestConf) {
			put(o, "choiceCount", l.ChoiceCount)
			put(o, "activeRequestBias", l.ActiveRequestBias)
		})
		putObject(o, "ringHash", b.RingHash, func(o object, r *policy.RingHashConf) {
			if r.HashFunction != "" {
				o["hashFunction"] = r.HashFunction
			}
			put(o, "minRingSize", r.MinRingSize)
			put(o, "maxRingSize", r.MaxRingSize)
		})
		putObject(o, "maglev", b.Maglev, func(o object, m *policy.MaglevConf) { put(o, "tableSize", m.TableSize) })
	})
	putList(o, "hashPolicies", c.HashPolicies)
	putObject(o, "endpointHashKey", c.EndpointHashKey, func(o object, k *policy.EndpointHashKey) { o["type"], o["key"] = k.Type, k.Key })
	if locality := localityDocument(&c.Locality); len(locality) > 0 {
		o["locality"] = locality
	}
	putObject(o, "outlierDetection", c.OutlierDetection, outlierDocument)
	putObject(o, "slowStart", c.SlowStart, func(o object, s *policy.SlowStart) {
		o["window"] = s.Window
		put(o, "minWeightPercent", s.MinWeightPercent)
		put(o, "aggression", s.Aggression)
	})
	put(o, "panicThreshold", c.PanicThreshold)
	return o
}

func localityDocument(l *policy.Locality) object {
	o := object{}
	put(o, "disabled", l.Disabled)
	put(o, "zoneKey", l.ZoneKey)
	putList(o, "affinity", l.Affinity)
	putList(o, "weights", l.Weights)
	putList(o, "failover", l.Failover)
	put(o, "failoverThreshold", l.FailoverThreshold)
	putList(o, "costs", l.Costs)
	overflow := object{}
	put(overflow, "mode", l.Overflow.Mode)
	putObject(overflow, "loadBand", l.Overflow.LoadBand, func(o object, b *policy.LoadBand) { o["low"], o["high"] = b.Low, b.High })
	if len(overflow) > 0 {
		o["overflow"] = overflow
	}
	return o
}

func outlierDocument(o object, d *policy.OutlierDetection) {
	put(o, "interval", d.Interval)
	put(o, "baseEjectionTime", d.BaseEjectionTime)
	put(o, "maxEjectionTime", d.MaxEjectionTime)
	put(o, "maxEjectionPercent", d.MaxEjectionPercent)
	putObject(o, "consecutive", d.Consecutive, func(o object, c *policy.Consecutive) {
		put(o, "serverErrors", c.ServerErrors)
		put(o, "gatewayErrors", c.GatewayErrors)
		put(o, "localErrors", c.LocalErrors)
	})
	putObject(o, "successRate", d.SuccessRate, func(o object, s *policy.SuccessRate) {
		put(o, "stdev", s.Stdev)
		put(o, "minimumHosts", s.MinimumHosts)
		put(o, "requestVolume", s.RequestVolume)
	})
	putObject(o, "failurePercentage", d.FailurePercentage, func(o object, f *policy.FailurePercentage) {
		put(o, "threshold", f.Threshold)
		put(o, "minimumHosts", f.MinimumHosts)
		put(o, "requestVolume", f.RequestVolume)
	})
}
