package policy_test

import (
	"encoding/json"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/core/policy"
)

func TestMergeRows(t *testing.T) {
	ring := func(least, most *int64) *policy.LoadBalancer {
		return &policy.LoadBalancer{Type: policy.RingHash, RingHash: &policy.RingHashConf{MinRingSize: least, MaxRingSize: most}}
	}
	maglev := &policy.LoadBalancer{Type: policy.Maglev, Maglev: &policy.MaglevConf{TableSize: new(int64(251))}}
	header := hashOf(policy.HashHeader, "x")
	source := policy.HashPolicy{Type: policy.HashSourceIP}
	whole := *ring(new(int64(9)), nil)
	whole.Whole = true
	for name, c := range map[string]struct{ weaker, stronger, want policy.Conf }{
		"K-60 objects merge": {
			policy.Conf{LoadBalancer: ring(new(int64(1)), new(int64(7)))},
			policy.Conf{LoadBalancer: ring(nil, new(int64(8)))},
			policy.Conf{LoadBalancer: ring(new(int64(1)), new(int64(8)))},
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
			policy.Conf{LoadBalancer: ring(new(int64(9)), nil)},
			policy.Conf{LoadBalancer: &whole},
		},
		"K-65 the threshold is one value": {
			policy.Conf{Locality: policy.Locality{FailoverThreshold: new(policy.Number(50.0))}},
			policy.Conf{Locality: policy.Locality{FailoverThreshold: new(policy.Number(70.0))}},
			policy.Conf{Locality: policy.Locality{FailoverThreshold: new(policy.Number(70.0))}},
		},
		"a slow start is one value": {
			policy.Conf{SlowStart: &policy.SlowStart{Window: policy.Duration(time.Minute), Aggression: new(policy.Number(2.0))}},
			policy.Conf{SlowStart: &policy.SlowStart{Window: policy.Duration(time.Second)}},
			policy.Conf{SlowStart: &policy.SlowStart{Window: policy.Duration(time.Second)}},
		},
		"a load band is one value, its mode another": {
			policy.Conf{Locality: policy.Locality{Overflow: policy.Overflow{Mode: new(policy.OverflowLoadBand), LoadBand: &policy.LoadBand{Low: 1, High: 2}}}},
			policy.Conf{Locality: policy.Locality{Overflow: policy.Overflow{LoadBand: &policy.LoadBand{Low: 3, High: 4}}}},
			policy.Conf{Locality: policy.Locality{Overflow: policy.Overflow{Mode: new(policy.OverflowLoadBand), LoadBand: &policy.LoadBand{Low: 3, High: 4}}}},
		},
		"detectors merge by field": {
			policy.Conf{OutlierDetection: &policy.OutlierDetection{Consecutive: &policy.Consecutive{ServerErrors: new(int32(5))}}},
			policy.Conf{OutlierDetection: &policy.OutlierDetection{Consecutive: &policy.Consecutive{LocalErrors: new(int32(0))}}},
			policy.Conf{OutlierDetection: &policy.OutlierDetection{Consecutive: &policy.Consecutive{ServerErrors: new(int32(5)), LocalErrors: new(int32(0))}}},
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
		Type: policy.LeastRequest, LeastRequest: &policy.LeastRequestConf{ChoiceCount: new(int32(8))},
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
	twin := mergePatch(mergePatch(document(t, &a), document(t, &b)), document(t, &c))
	if diff := cmp.Diff(twin, document(t, &left)); diff != "" {
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
type object = map[string]any

// mergePatch is RFC 7396 without deletions, but for a load balancer of another type and for what the reference calls atomic.
func mergePatch(target, patch object) object {
	merged := maps.Clone(target)
	if merged == nil {
		merged = object{}
	}
	for key, value := range patch {
		inner, isObject := value.(map[string]any)
		old, had := merged[key].(map[string]any)
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

// document spells a conf as the CRD does; lists are opaque to the merge.
func document(t *testing.T, c *policy.Conf) object {
	t.Helper()
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var o object
	if err := json.Unmarshal(text, &o); err != nil {
		t.Fatal(err)
	}
	return o
}
