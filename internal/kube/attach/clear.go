package attach

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/api/v1alpha1"
)

// Clearer takes back what an Attacher wrote, for a clean-up. Use NewClearer.
type Clearer struct {
	client   client.Client
	services corev1client.ServicesGetter
}

// NewClearer makes a Clearer of a cluster, with a client as NewClient makes it.
func NewClearer(c client.Client, services corev1client.ServicesGetter) *Clearer {
	return &Clearer{client: c, services: services}
}

// Policies lists the policies whose status has something of ours; none where the resource is not installed.
func (c *Clearer) Policies(ctx context.Context) ([]*v1alpha1.LoadBalancingPolicy, error) {
	var list v1alpha1.LoadBalancingPolicyList
	if err := c.client.List(ctx, &list); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var ours []*v1alpha1.LoadBalancingPolicy
	for i := range list.Items {
		if p := &list.Items[i]; len(others(p.Status.Ancestors)) < len(p.Status.Ancestors) {
			ours = append(ours, p)
		}
	}
	return ours, nil
}

// Policy takes our entries out of the status of a policy. Others' stay.
func (c *Clearer) Policy(ctx context.Context, p *v1alpha1.LoadBalancingPolicy) error {
	_, err := patchStatus(ctx, c.client, p, others(p.Status.Ancestors))
	return err
}

// IsMarked tells whether a Service has our condition.
func (*Clearer) IsMarked(s *corev1.Service) bool {
	return meta.FindStatusCondition(s.Status.Conditions, api.ConditionPolicyAffected) != nil
}

// Service takes our condition off a Service.
func (c *Clearer) Service(ctx context.Context, s *corev1.Service) error {
	return clearService(ctx, c.services, s)
}
