package attach

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-lb/weir/api/v1alpha1"
)

// entry is what a controller says of a target.
func entry(controller, target string, conditions ...metav1.Condition) v1alpha1.PolicyAncestorStatus {
	return v1alpha1.PolicyAncestorStatus{
		AncestorRef: v1alpha1.AncestorRef{Name: target}, ControllerName: controller, Conditions: conditions,
	}
}

func accepted(status metav1.ConditionStatus, reason string, at int64) metav1.Condition {
	return metav1.Condition{Type: "Accepted", Status: status, Reason: reason, LastTransitionTime: metav1.Unix(at, 0), ObservedGeneration: at}
}

func TestOthersEntriesAndTimesStay(t *testing.T) {
	foreign := metav1.Condition{Type: "Seen", Status: metav1.ConditionTrue, Reason: "Seen"}
	p := &v1alpha1.LoadBalancingPolicy{ObjectMeta: metav1.ObjectMeta{Generation: 7}}
	p.Status.Ancestors = []v1alpha1.PolicyAncestorStatus{
		entry("other", "a", accepted(metav1.ConditionFalse, "No", 1)),
		entry(controllerName, "b", foreign, accepted(metav1.ConditionTrue, "Accepted", 1)),
		entry(controllerName, "gone", accepted(metav1.ConditionTrue, "Accepted", 1)),
		entry(controllerName, "c", accepted(metav1.ConditionTrue, "Accepted", 1)),
	}
	want := []v1alpha1.PolicyAncestorStatus{
		entry(controllerName, "a", condition("Accepted", metav1.ConditionTrue, "Accepted", "")),
		entry(controllerName, "b", condition("Accepted", metav1.ConditionTrue, "Accepted", "")),
		entry(controllerName, "c", condition("Accepted", metav1.ConditionFalse, "Invalid", "")),
	}
	stays := accepted(metav1.ConditionTrue, "Accepted", 1)
	stays.ObservedGeneration = 7
	isNew, falls := accepted(metav1.ConditionTrue, "Accepted", 5), accepted(metav1.ConditionFalse, "Invalid", 5)
	isNew.ObservedGeneration, falls.ObservedGeneration = 7, 7
	got := merged(p, want, metav1.Unix(5, 0))
	if diff := cmp.Diff([]v1alpha1.PolicyAncestorStatus{
		p.Status.Ancestors[0],
		entry(controllerName, "b", foreign, stays),
		entry(controllerName, "c", falls),
		entry(controllerName, "a", isNew),
	}, got); diff != "" {
		t.Error(diff)
	}
	var changed []string
	for _, c := range transitions(p.Status.Ancestors, got) {
		changed = append(changed, c.ref.Name+" "+c.condition.Reason)
	}
	if diff := cmp.Diff([]string{"c Invalid", "a Accepted"}, changed); diff != "" {
		t.Errorf("transitions: %s", diff)
	}
	p.Status.Ancestors = got
	if diff := cmp.Diff(got, merged(p, want, metav1.Unix(9, 0))); diff != "" {
		t.Errorf("once more: %s", diff)
	}
}

func TestThereAreAtMostSixteenEntriesAndOthersGoFirst(t *testing.T) {
	p := new(v1alpha1.LoadBalancingPolicy)
	var want []v1alpha1.PolicyAncestorStatus
	for i := range 15 {
		p.Status.Ancestors = append(p.Status.Ancestors, entry("other", fmt.Sprint(i)))
		want = append(want, entry(controllerName, fmt.Sprint(i)))
	}
	got := merged(p, want, metav1.Unix(1, 0))
	if len(got) != 16 || len(others(got)) != 15 || got[15].AncestorRef.Name != "0" {
		t.Errorf("%d entries, %d of others: %v", len(got), len(others(got)), got)
	}
}
