//go:build e2e

package kube_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/feed"
	"github.com/weir-lb/weir/internal/kube/plans"
	"github.com/weir-lb/weir/internal/kube/webhook"
	"github.com/weir-lb/weir/internal/patience"
	"github.com/weir-lb/weir/test/kube"
)

// ownZone decides for every service that each endpoint is hinted to its own zone.
type ownZone struct{}

func (ownZone) Lookup(name topology.ServiceName) (*plans.Decision, bool) {
	service := &topology.Service{ServiceName: name, Mode: topology.ModePreferSameZone}
	return &plans.Decision{
		Record: &feed.Record{Name: name, Service: service, Managed: true},
		Plans:  []plan.Plan{{Service: name, Family: topology.IPv4, Mode: service.Mode, Hinted: true}},
	}, true
}

// certCluster is an API server with the objects around the webhook, and an account that may do what the webhook needs.
type certCluster struct {
	*testing.T
	c       *kube.Cluster
	admin   kubernetes.Interface
	account *rest.Config
	slices  int // that were written
}

func newCertCluster(t *testing.T, c *kube.Cluster, port int) *certCluster {
	t.Helper()
	account, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig("weir-controller"))
	if err != nil {
		t.Fatal(err)
	}
	w := &certCluster{T: t, c: c, admin: c.Client, account: account}
	w.must(w.admin.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "weir-system"}}, metav1.CreateOptions{}))
	w.allow()
	w.must(w.admin.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(t.Context(), &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: webhook.DefaultConfiguration},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name:                    "hints.weir.dev",
			ClientConfig:            admissionregistrationv1.WebhookClientConfig{URL: new(fmt.Sprintf("https://localhost:%d%s", port, webhook.Path))},
			AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionregistrationv1.SideEffectClassNone),
			TimeoutSeconds: new(int32(10)),
			// So that a call that comes to nothing is seen: weir's own configuration ignores it.
			FailurePolicy:  new(admissionregistrationv1.Fail),
			ObjectSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: api.LabelDistribution, Operator: metav1.LabelSelectorOpExists}}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{"discovery.k8s.io"}, APIVersions: []string{"v1"}, Resources: []string{"endpointslices"}},
			}},
		}},
	}, metav1.CreateOptions{}))
	return w
}

func (w *certCluster) must(_ any, err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// allow gives the account what the webhook's documentation says it needs, and the Lease of a leader.
func (w *certCluster) allow() {
	w.Helper()
	secret, lease := []string{webhook.DefaultSecret}, []string{"weir-controller"}
	meta := metav1.ObjectMeta{Namespace: "weir-system", Name: "weir-controller"}
	subjects := []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "weir-controller"}}
	w.must(w.admin.RbacV1().Roles("weir-system").Create(w.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: secret, Verbs: []string{"get", "list", "watch", "update"}},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create"}},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: lease, Verbs: []string{"get", "update"}},
	}}, metav1.CreateOptions{}))
	w.must(w.admin.RbacV1().RoleBindings("weir-system").Create(w.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
	}, metav1.CreateOptions{}))
	w.must(w.admin.RbacV1().ClusterRoles().Create(w.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: meta.Name}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"admissionregistration.k8s.io"}, Resources: []string{"mutatingwebhookconfigurations"},
		ResourceNames: []string{webhook.DefaultConfiguration}, Verbs: []string{"get", "list", "watch", "patch"},
	}}}, metav1.CreateOptions{}))
	w.must(w.admin.RbacV1().ClusterRoleBindings().Create(w.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: meta.Name}, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
	}, metav1.CreateOptions{}))
}

// replica is one replica of the controller, as far as the webhook goes.
type replica struct {
	address, probes string
	elected         <-chan struct{}
	stop            func()
}

func (w *certCluster) replica(port int) *replica {
	w.Helper()
	r := &replica{address: loopback(port), probes: loopback(w.c.Port())}
	mgr, err := manager.New(w.account, manager.Options{
		Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: r.probes,
		LeaderElection: true, LeaderElectionID: "weir-controller", LeaderElectionNamespace: "weir-system",
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 new(6 * time.Second), RenewDeadline: new(4 * time.Second), RetryPeriod: new(time.Second),
	})
	w.must(nil, err)
	hook, err := webhook.New(w.account, ownZone{}, webhook.Options{
		Address: r.address, Names: []string{"localhost"},
		// A new certificate is made a third of the validity before the old one ends: 5 s for a busy machine to bring it to the follower.
		Validity: 15 * time.Second, CAValidity: 45 * time.Second, PublishDelay: 3 * time.Second,
	})
	w.must(nil, err)
	w.must(nil, errors.Join(
		mgr.Add(everywhere(hook.Run)), mgr.Add(manager.RunnableFunc(hook.Lead)),
		mgr.AddReadyzCheck("webhook", func(*http.Request) error { return hook.Ready() }),
	))
	ctx, cancel := context.WithCancel(logr.NewContext(context.Background(), logr.Discard())) // of the election
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	r.elected = mgr.Elected()
	stopped := false
	r.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			w.Errorf("want the replica to end without an error, got %v", err)
		}
	}
	w.Cleanup(r.stop)
	return r
}

// everywhere is a part that runs on every replica.
type everywhere func(context.Context) error

func (e everywhere) Start(ctx context.Context) error { return e(ctx) }
func (everywhere) NeedLeaderElection() bool          { return false }

// isReady asks the replica's readiness probe.
func (r *replica) isReady() bool {
	w, err := http.Get("http://" + r.probes + "/readyz")
	if err != nil {
		return false
	}
	_ = w.Body.Close()
	return w.StatusCode == http.StatusOK
}

// served gives the end of the certificate that the replica serves with, and the key of its authority.
func (r *replica) served() (ends time.Time, authority string, err error) {
	c, err := tls.Dial("tcp", r.address, &tls.Config{InsecureSkipVerify: true, ServerName: "localhost"}) //nolint:gosec // looked at, not trusted
	if err != nil {
		return time.Time{}, "", err
	}
	defer func() { _ = c.Close() }()
	leaf := c.ConnectionState().PeerCertificates[0]
	return leaf.NotAfter, string(leaf.AuthorityKeyId), nil
}

// write creates a slice that the webhook is called for, and tells why it has no hints; nil when it has.
func (w *certCluster) write() error {
	w.Helper()
	w.slices++
	s, err := w.admin.DiscoveryV1().EndpointSlices("default").Create(w.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("web-%d", w.slices), Labels: map[string]string{api.LabelServiceName: "web", api.LabelDistribution: "PreferSameZone"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}, Zone: new("zone-a")}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if h := s.Endpoints[0].Hints; h == nil || len(h.ForZones) != 1 || h.ForZones[0].Name != "zone-a" {
		return fmt.Errorf("the slice was written with the hints %v", h)
	}
	return nil
}

func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// Two replicas with an account that may do no more than they need. The leader makes certificates, the other one is
// called; certificates of seconds are rotated, authority and all, while slices are written; then the leader goes, and the
// Secret is broken.
func TestWebhookCertificatesAreMadeRotatedAndMended(t *testing.T) {
	t.Parallel()
	c := kube.Start(t, kube.Options{})
	called := c.Port()
	w := newCertCluster(t, c, called)
	account := kubernetes.NewForConfigOrDie(w.account)
	if _, err := account.CoreV1().Secrets("weir-system").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Fatalf("want an account that may not list Secrets, got %v", err)
	}
	leader := w.replica(c.Port())
	<-leader.elected
	follower := w.replica(called)
	took := patience.Until(t, "both replicas are ready", func() bool { return leader.isReady() && follower.isReady() })
	took += patience.Until(t, "the API server trusts the webhook", func() bool { return w.write() == nil })
	t.Logf("from the second replica's start to the first slice with hints: %s", took)

	ends, authorities := make(map[time.Time]bool), make(map[string]bool)
	before := w.slices
	patience.Until(t, "certificates of two authorities were served", func() bool {
		if err := w.write(); err != nil {
			t.Errorf("slice %d, written during rotation: %v", w.slices, err)
		}
		end, authority, err := follower.served()
		if err != nil {
			t.Errorf("call the follower: %v", err)
		}
		ends[end], authorities[authority] = true, true
		return len(authorities) >= 2 || t.Failed()
	})
	t.Logf("%d slices written while %d certificates of %d authorities were served", w.slices-before, len(ends), len(authorities))

	select {
	case <-follower.elected:
		t.Fatal("the follower leads: what was seen is not what was meant")
	default:
	}
	leader.stop()
	<-follower.elected
	secrets := w.admin.CoreV1().Secrets("weir-system")
	secret, err := secrets.Get(t.Context(), webhook.DefaultSecret, metav1.GetOptions{})
	w.must(nil, err)
	for key := range secret.Data {
		secret.Data[key] = []byte("garbage")
	}
	w.must(secrets.Update(t.Context(), secret, metav1.UpdateOptions{}))
	end, _, err := follower.served()
	w.must(nil, err)
	took = patience.Until(t, "the broken Secret is replaced and the webhook called again", func() bool {
		now, _, err := follower.served()
		return err == nil && now.After(end) && w.write() == nil
	})
	t.Logf("from the broken Secret to the next slice with hints: %s", took)
	w.must(nil, secrets.Delete(t.Context(), webhook.DefaultSecret, metav1.DeleteOptions{}))
	patience.Until(t, "the Secret is there again and the webhook called", func() bool {
		_, err := secrets.Get(t.Context(), webhook.DefaultSecret, metav1.GetOptions{})
		return err == nil && w.write() == nil
	})
}
