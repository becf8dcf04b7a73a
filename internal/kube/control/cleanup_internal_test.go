package control

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientfake "k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/api/v1alpha1"
	"github.com/weir-lb/weir/internal/kube/attach"
	"github.com/weir-lb/weir/internal/kube/status"
)

// hinted makes a slice of shop/web with hints, which are weir's if it is marked.
func hinted(name string, annotations map[string]string) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, Annotations: annotations, Labels: map[string]string{discoveryv1.LabelServiceName: "web"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}, Hints: spelt("a")}},
	}
}

// newTestCleaner makes a cleaner of a cluster with a slice of ours, one of somebody else's, and an armed webhook.
func newTestCleaner(t *testing.T, intercept interceptor.Funcs) (*cleaner, *[]string) {
	t.Helper()
	var lines []string
	o := CleanupOptions{Webhook: "weir-hints", Progress: func(r Removal) {
		line := r.Object + ": " + r.What
		if r.Err != nil {
			line += " stays"
		}
		lines = append(lines, line)
	}}
	armed := &admissionv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "weir-hints", ResourceVersion: "1"},
		Webhooks:   []admissionv1.MutatingWebhook{{Name: "hints.weir.dev"}},
	}
	set := clientfake.NewClientset(armed)
	reporter, err := status.New(status.Options{Services: set.CoreV1()})
	if err != nil {
		t.Fatal(err)
	}
	objects := fake.NewClientBuilder().WithInterceptorFuncs(intercept).WithObjects(
		hinted("ours", map[string]string{api.AnnotationHints: "Balanced"}), hinted("theirs", nil)).Build()
	attached := attach.NewClearer(fakePolicies(t), set.CoreV1())
	return &cleaner{
		options: o, client: objects, leases: set.CoordinationV1(), webhooks: set.AdmissionregistrationV1(),
		reporter: reporter, attached: attached,
	}, &lines
}

// fakePolicies has a policy whose status weir and somebody else wrote, and one that nobody looked at.
func fakePolicies(t *testing.T) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	policy := func(name string, controllers ...string) client.Object {
		p := &v1alpha1.LoadBalancingPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		for _, c := range controllers {
			p.Status.Ancestors = append(p.Status.Ancestors, v1alpha1.PolicyAncestorStatus{ControllerName: c})
		}
		return p
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(new(v1alpha1.LoadBalancingPolicy)).
		WithObjects(policy("told", api.ControllerName, "example.com/other"), policy("new")).Build()
}

const (
	policyGoes  = "LoadBalancingPolicy shop/told: weir's part of the status"
	oursGoes    = "EndpointSlice shop/ours: hints and the annotation weir.dev/hints"
	webhookGoes = "MutatingWebhookConfiguration weir-hints: webhooks"
)

func TestACleanupTakesBackWhatIsMarkedAndNothingElse(t *testing.T) {
	c, lines := newTestCleaner(t, interceptor.Funcs{})
	if err := c.untilNothingIsLeft(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{webhookGoes, oursGoes, policyGoes}, *lines); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	var list discoveryv1.EndpointSliceList
	if err := c.client.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	for _, s := range list.Items {
		isHinted, isOurs := s.Endpoints[0].Hints != nil, s.Name == "ours"
		if isHinted == isOurs || len(s.Annotations) > 0 {
			t.Errorf("%s: hints %v, annotations %v", s.Name, s.Endpoints[0].Hints, s.Annotations)
		}
	}
	armed, err := c.webhooks.MutatingWebhookConfigurations().Get(t.Context(), "weir-hints", metav1.GetOptions{})
	if err != nil || len(armed.Webhooks) > 0 {
		t.Errorf("the webhook configuration: %v %v, want one without webhooks", armed, err)
	}
}

func TestADryRunOfACleanupWritesNothing(t *testing.T) {
	c, lines := newTestCleaner(t, interceptor.Funcs{
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			t.Error("a slice was patched")
			return nil
		},
	})
	c.options.DryRun = true
	if found, err := c.pass(t.Context()); err != nil || found != 3 {
		t.Errorf("found %d, %v", found, err)
	}
	if diff := cmp.Diff([]string{webhookGoes, oursGoes, policyGoes}, *lines); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestACleanupGoesOnAfterAnErrorAndTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refusals := 2
		c, lines := newTestCleaner(t, interceptor.Funcs{
			Patch: func(ctx context.Context, w client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				if refusals--; refusals >= 0 {
					return misfit()
				}
				return w.Patch(ctx, o, p, opts...)
			},
		})
		if err := c.untilNothingIsLeft(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{webhookGoes, oursGoes + " stays", policyGoes, oursGoes + " stays", oursGoes}, *lines); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}

func TestACleanupTellsWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newTestCleaner(t, interceptor.Funcs{
			Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
				return misfit()
			},
		})
		err := c.untilNothingIsLeft(t.Context())
		if err == nil || !strings.Contains(err.Error(), "shop/ours") {
			t.Errorf("%v, want an error that names shop/ours", err)
		}
	})
}
