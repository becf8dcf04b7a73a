package attach

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/api/v1alpha1"
)

// controllerName names weir in the status of a policy.
const controllerName = api.ControllerName

// maxAncestors is what the status of a policy takes.
const maxAncestors = 16

// merged gives the entries that a policy's status should have: those of others as they are, in their places, and ours. An
// entry keeps its place; a condition keeps its time while its status stays.
//
// Shape: at most 16. Others' entries stay in any case, so that ours may not all have room.
func merged(p *v1alpha1.LoadBalancingPolicy, want []v1alpha1.PolicyAncestorStatus, now metav1.Time) []v1alpha1.PolicyAncestorStatus {
	var list []v1alpha1.PolicyAncestorStatus
	left := slices.Clone(want)
	for _, have := range p.Status.Ancestors {
		if have.ControllerName != controllerName {
			list = append(list, have)
			continue
		}
		i := slices.IndexFunc(left, func(w v1alpha1.PolicyAncestorStatus) bool { return reflect.DeepEqual(w.AncestorRef, have.AncestorRef) })
		if i < 0 {
			continue // a target of before
		}
		list = append(list, dated(left[i], have.Conditions, p.Generation, now))
		left = slices.Delete(left, i, i+1)
	}
	for _, w := range left {
		if len(list) < maxAncestors {
			list = append(list, dated(w, nil, p.Generation, now))
		}
	}
	return list
}

// dated gives an entry with its generation and times. Conditions of other types that others added to ours stay.
func dated(want v1alpha1.PolicyAncestorStatus, have []metav1.Condition, generation int64, now metav1.Time) v1alpha1.PolicyAncestorStatus {
	conditions := slices.Clone(have)
	for _, c := range want.Conditions {
		c.ObservedGeneration, c.LastTransitionTime = generation, now
		before := meta.FindStatusCondition(conditions, c.Type)
		if before == nil {
			conditions = append(conditions, c)
			continue
		}
		if before.Status == c.Status {
			c.LastTransitionTime = before.LastTransitionTime
		}
		*before = c
	}
	want.Conditions = conditions
	return want
}

// transition is a change of what is said about a policy at one target.
type transition struct {
	ref       v1alpha1.AncestorRef
	condition metav1.Condition // Accepted as it is now
}

// transitions finds where Accepted changes its status or reason.
func transitions(before, after []v1alpha1.PolicyAncestorStatus) []transition {
	var list []transition
	for _, a := range after {
		if a.ControllerName != controllerName {
			continue
		}
		now := meta.FindStatusCondition(a.Conditions, v1alpha1.ConditionAccepted)
		i := slices.IndexFunc(before, func(b v1alpha1.PolicyAncestorStatus) bool {
			return b.ControllerName == controllerName && reflect.DeepEqual(a.AncestorRef, b.AncestorRef)
		})
		if i >= 0 {
			was := meta.FindStatusCondition(before[i].Conditions, v1alpha1.ConditionAccepted)
			if was != nil && was.Status == now.Status && was.Reason == now.Reason {
				continue
			}
		}
		list = append(list, transition{a.AncestorRef, *now})
	}
	return list
}

// others gives the entries of a status that are not ours.
func others(all []v1alpha1.PolicyAncestorStatus) []v1alpha1.PolicyAncestorStatus {
	var list []v1alpha1.PolicyAncestorStatus
	for _, a := range all {
		if a.ControllerName != controllerName {
			list = append(list, a)
		}
	}
	return list
}
