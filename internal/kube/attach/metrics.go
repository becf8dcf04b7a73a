package attach

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/weir-lb/weir/api/v1alpha1"
)

// reasons are why a policy is accepted at a target, or not: the label of the metric, and each has a series from the start.
func reasons() []string {
	return []string{v1alpha1.ReasonAccepted, v1alpha1.ReasonConflicted, v1alpha1.ReasonInvalid, v1alpha1.ReasonTargetNotFound}
}

// newTargets makes and registers the metric. All is zero on a replica that does not lead.
func newTargets(r prometheus.Registerer) (*prometheus.GaugeVec, error) {
	targets := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "weir_policy_targets",
		Help: "Targets of LoadBalancingPolicies, by whether the policy is accepted there, and why not.",
	}, []string{"reason"})
	count(targets, nil)
	return targets, r.Register(targets)
}

// count makes the metric say a verdict.
func count(targets *prometheus.GaugeVec, verdict [][]v1alpha1.PolicyAncestorStatus) {
	counts := make(map[string]int)
	for _, entries := range verdict {
		for i := range entries {
			counts[meta.FindStatusCondition(entries[i].Conditions, v1alpha1.ConditionAccepted).Reason]++
		}
	}
	for _, reason := range reasons() {
		targets.WithLabelValues(reason).Set(float64(counts[reason]))
	}
}
