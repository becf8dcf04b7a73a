package attach

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	applymeta "k8s.io/client-go/applyconfigurations/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/api/v1alpha1"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/events"
	"github.com/weir-lb/weir/internal/kube/feed"
)

// FieldManager is the name that the conditions of Services are written by. It is not that of weir's other conditions, because
// those are applied whole: what is left out of them goes.
const FieldManager = api.FieldManager + "-policies"

// reasonAttached is why a Service has the condition.
const reasonAttached = "PolicyAttached"

// write makes the status of a policy say the verdict, and tells of what changed.
func (a *Attacher) write(ctx context.Context, p *v1alpha1.LoadBalancingPolicy, want []v1alpha1.PolicyAncestorStatus) error {
	if p.DeletionTimestamp != nil || a.policyVersions[p.UID] == p.ResourceVersion {
		return nil
	}
	ancestors := merged(p, want, now())
	if equality.Semantic.DeepEqual(ancestors, p.Status.Ancestors) {
		return nil
	}
	version, err := patchStatus(ctx, a.client, p, ancestors)
	if isPast(err) {
		return nil // a newer version is on its way, or the policy is gone
	}
	if err != nil {
		return fmt.Errorf("write the status of LoadBalancingPolicy %s/%s: %w", p.Namespace, p.Name, err)
	}
	if version != p.ResourceVersion {
		a.policyVersions[p.UID] = p.ResourceVersion
	}
	for _, t := range transitions(p.Status.Ancestors, ancestors) {
		a.send(p, t)
	}
	return nil
}

// isPast tells whether a write was refused because the object is not what it was.
func isPast(err error) bool { return apierrors.IsConflict(err) || apierrors.IsNotFound(err) }

// patchStatus replaces the ancestors of the version that was looked at, and gives the new version.
func patchStatus(ctx context.Context, c client.Client, p *v1alpha1.LoadBalancingPolicy, ancestors []v1alpha1.PolicyAncestorStatus) (string, error) {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": p.ResourceVersion},
		"status":   map[string]any{"ancestors": ancestors},
	})
	if err != nil {
		return "", err
	}
	written := &v1alpha1.LoadBalancingPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}}
	err = c.Status().Patch(ctx, written, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(FieldManager))
	return written.ResourceVersion, err
}

// send tells of a transition.
func (a *Attacher) send(p *v1alpha1.LoadBalancingPolicy, t transition) {
	if a.options.Events == nil {
		return
	}
	kind := corev1.EventTypeWarning
	if t.condition.Status == metav1.ConditionTrue {
		kind = corev1.EventTypeNormal
	}
	a.options.Events.Send(events.Event{
		Regarding: corev1.ObjectReference{
			APIVersion: v1alpha1.GroupVersion().String(), Kind: v1alpha1.Kind,
			Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion,
		},
		Type: kind, Reason: t.condition.Reason, Action: "Attach", Note: cut(refText(t.ref)+": "+t.condition.Message, maxNote),
	})
}

// maxNote is what the API takes as the note of an event, in bytes.
const maxNote = 1024

func refText(r v1alpha1.AncestorRef) string {
	text := deref(r.Kind) + " " + r.Name
	if r.SectionName != nil {
		text += " (" + *r.SectionName + ")"
	}
	return text
}

// mark makes the Services say which policies are attached to them.
func (a *Attacher) mark(ctx context.Context, state *feed.State, attached map[topology.ServiceName][]string) error {
	var errs []error
	for _, r := range state.Records {
		if r.Object != nil {
			errs = append(errs, a.markOne(ctx, r, attached[r.Name]))
		}
	}
	maps.DeleteFunc(a.serviceVersions, func(name topology.ServiceName, _ string) bool { return finder(state)(name) == nil })
	return errors.Join(errs...)
}

func (a *Attacher) markOne(ctx context.Context, r *feed.Record, names []string) error {
	s := r.Object
	if s.DeletionTimestamp != nil || a.serviceVersions[r.Name] == s.ResourceVersion {
		return nil
	}
	have := meta.FindStatusCondition(s.Status.Conditions, api.ConditionPolicyAffected)
	if len(names) == 0 {
		if have == nil {
			return nil
		}
		return a.applied(r, clearService(ctx, a.services, s))
	}
	want := condition(api.ConditionPolicyAffected, metav1.ConditionTrue, reasonAttached, "load-balancing policies: "+strings.Join(names, ", "))
	want.ObservedGeneration, want.LastTransitionTime = s.Generation, now()
	if have != nil {
		if have.Status == want.Status && have.Reason == want.Reason && have.Message == want.Message {
			return nil
		}
		if have.Status == want.Status {
			want.LastTransitionTime = have.LastTransitionTime
		}
	}
	return a.applied(r, apply(ctx, a.services, s, &want))
}

// applied remembers a write to a Service.
func (a *Attacher) applied(r *feed.Record, err error) error {
	switch {
	case isPast(err) || isAnother(err):
		return nil
	case err != nil:
		return fmt.Errorf("write the condition of Service %s: %w", r.Name, err)
	}
	a.serviceVersions[r.Name] = r.Object.ResourceVersion
	return nil
}

// isAnother tells whether another Service took the place of the one that was looked at: the API server calls the UID
// immutable then.
func isAnother(err error) bool {
	cause, ok := apierrors.StatusCause(err, metav1.CauseTypeFieldValueInvalid)
	return ok && cause.Field == "metadata.uid"
}

// apply writes our condition of a Service; nil takes it off.
func apply(ctx context.Context, services corev1client.ServicesGetter, s *corev1.Service, c *metav1.Condition) error {
	status := applycore.ServiceStatus()
	if c != nil {
		status.WithConditions(applymeta.Condition().
			WithType(c.Type).WithStatus(c.Status).WithReason(c.Reason).WithMessage(c.Message).
			WithObservedGeneration(c.ObservedGeneration).WithLastTransitionTime(c.LastTransitionTime))
	}
	_, err := services.Services(s.Namespace).ApplyStatus(ctx, applycore.Service(s.Name, s.Namespace).WithUID(s.UID).WithStatus(status),
		metav1.ApplyOptions{FieldManager: FieldManager, Force: true})
	return err
}

func clearService(ctx context.Context, services corev1client.ServicesGetter, s *corev1.Service) error {
	return apply(ctx, services, s, nil)
}

// fingerprint tells Services apart by name and version: the endpoints change far more often, and do not count here.
func (a *Attacher) fingerprint(state *feed.State) uint64 {
	if state == nil {
		return 0
	}
	var h maphash.Hash
	h.SetSeed(a.seed)
	for _, r := range state.Records {
		if r.Object != nil {
			_, _ = h.WriteString(string(r.Object.UID) + "/" + r.Object.ResourceVersion + "\n") // never fails
		}
	}
	return h.Sum64()
}
