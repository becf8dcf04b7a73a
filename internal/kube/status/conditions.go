package status

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	applymeta "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/weir-lb/weir/api"
)

// written is what was last written to a Service.
type written struct {
	conditions []metav1.Condition
	version    string // resourceVersion of the Service that was read; empty: nothing was written
}

// write applies the conditions where the Service says otherwise. A Service that was read already and still says
// otherwise has not been seen with them yet.
func (r *Reporter) write(ctx context.Context, s *corev1.Service, m *memory, want []metav1.Condition) error {
	if r.services == nil {
		return nil
	}
	have := ours(s.Status.Conditions)
	base := have
	if m.written.version != "" && m.written.version == s.ResourceVersion {
		base = m.written.conditions
	}
	want = complete(want, base, metav1.Time{Time: r.now()})
	if sameConditions(want, base) {
		return nil
	}
	_, err := r.services.Services(s.Namespace).ApplyStatus(ctx, applied(s, want),
		metav1.ApplyOptions{FieldManager: api.FieldManager, Force: true})
	r.metrics.conditionWrites.WithLabelValues(kindOf(err).label()).Inc()
	if kindOf(err) == stale || isAnother(err) {
		return nil // the Service is gone, or is another one by now, which is reported when it is seen
	}
	if err != nil {
		return fmt.Errorf("write conditions of Service %s/%s: %w", s.Namespace, s.Name, err)
	}
	m.written = written{conditions: want, version: s.ResourceVersion}
	return nil
}

// isAnother tells whether the API server refused a write because a Service of the same name took the place of the one
// that was read: it then calls the UID immutable.
func isAnother(err error) bool {
	cause, ok := apierrors.StatusCause(err, metav1.CauseTypeFieldValueInvalid)
	return ok && cause.Field == "metadata.uid"
}

// ours picks weir's conditions.
func ours(all []metav1.Condition) []metav1.Condition {
	var list []metav1.Condition
	for _, kind := range []string{api.ConditionAccepted, api.ConditionProgrammed} {
		if c := meta.FindStatusCondition(all, kind); c != nil {
			list = append(list, *c)
		}
	}
	return list
}

// complete fills in what wanted conditions take over from those that are there: the time of the last transition while the
// status is the same, and everything for one that is to stay as it is.
func complete(want, have []metav1.Condition, now metav1.Time) []metav1.Condition {
	completed := slices.Clone(want)
	for i := range completed {
		c := &completed[i]
		before := meta.FindStatusCondition(have, c.Type)
		switch {
		case c.Status == "" && before != nil:
			*c = *before
		case c.Status == "":
			c.Status, c.Reason = metav1.ConditionFalse, reasonWritePending
			c.Message = "the EndpointSlices do not say the plan yet"
			c.LastTransitionTime = now
		case before != nil && before.Status == c.Status:
			c.LastTransitionTime = before.LastTransitionTime
		default:
			c.LastTransitionTime = now
		}
	}
	return completed
}

// sameConditions compares conditions in status and reason. Messages carry numbers, which are refreshed only together with
// those; but not that of what is accepted, which says what the Service asks for and changes only when that does.
func sameConditions(a, b []metav1.Condition) bool {
	return slices.EqualFunc(a, b, func(x, y metav1.Condition) bool {
		return x.Type == y.Type && x.Status == y.Status && x.Reason == y.Reason &&
			(x.Type != api.ConditionAccepted || cut(x.Message, maxMessage) == cut(y.Message, maxMessage))
	})
}

// maxMessage is what the API takes as the message of a condition, in bytes.
const maxMessage = 32768

// applied is the patch: all of weir's conditions and nothing else, so that those that are left out go.
func applied(s *corev1.Service, conditions []metav1.Condition) *applycore.ServiceApplyConfiguration {
	status := applycore.ServiceStatus()
	for i := range conditions {
		c := &conditions[i]
		status.WithConditions(applymeta.Condition().
			WithType(c.Type).WithStatus(c.Status).WithReason(c.Reason).WithMessage(cut(c.Message, maxMessage)).
			WithObservedGeneration(c.ObservedGeneration).WithLastTransitionTime(c.LastTransitionTime))
	}
	return applycore.Service(s.Name, s.Namespace).WithUID(s.UID).WithStatus(status)
}
