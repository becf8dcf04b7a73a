//go:build e2e

package kube_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/weir-lb/weir/test/kube"
)

const (
	namespace = "weir-system"
	manifests = "../../deploy/manifests"
	// clustersNamespace is where the optional manifests look for Secrets; it is their owner's.
	clustersNamespace = "weir-clusters"
)

func plainManifestsInstallAndDemandLittle(s subtest) {
	t, c := s.T, s.c
	c.Namespace(clustersNamespace)
	c.Kubectl("apply", "-f", manifests)                                       // as the guide says
	c.Kubectl("apply", "--server-side", "-f", manifests, "--force-conflicts") // as a GitOps tool does
	c.Kubectl("apply", "--dry-run=server", "-f", filepath.Join(manifests, "optional"))

	d, err := c.Client.AppsV1().Deployments(namespace).Get(t.Context(), "weir-controller", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := tryPod(t, c, &d.Spec.Template); err != nil {
		t.Errorf("the controller's pod in a namespace that enforces the level restricted: %v", err)
	}
	var cleanup batchv1.Job
	read(t, c, "cleanup.yaml", &cleanup)
	if err := tryPod(t, c, &cleanup.Spec.Template); err != nil {
		t.Errorf("the pod of the clean-up in a namespace that enforces the level restricted: %v", err)
	}
	var agent appsv1.DaemonSet
	read(t, c, "agent.yaml", &agent)
	if err := tryPod(t, c, &agent.Spec.Template); !apierrors.IsForbidden(err) {
		t.Errorf("the agent's pod, on the host's network, in the same namespace: %v, want forbidden", err)
	}
	c.Kubectl("apply", "-f", filepath.Join(manifests, "optional", "agent.yaml"))
	if err := tryPod(t, c, &agent.Spec.Template); err != nil {
		t.Errorf("the agent's pod in the namespace that its manifest labels: %v", err)
	}
	c.Kubectl("delete", "-f", manifests, "-f", filepath.Join(manifests, "optional"), "--ignore-not-found")
}

// tryPod asks the API server whether it would take a pod of a template.
func tryPod(t *testing.T, c *kube.Cluster, template *corev1.PodTemplateSpec) error {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: template.Spec}
	pod.Name = "try"
	_, err := c.Client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// read takes the object with a pod template out of an optional manifest, with the API server's defaults.
func read(t *testing.T, c *kube.Cluster, file string, into any) {
	t.Helper()
	text := c.Kubectl("apply", "--dry-run=server", "-o", "json", "-f", filepath.Join(manifests, "optional", file))
	var list struct{ Items []json.RawMessage }
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	for _, item := range list.Items {
		var object struct{ Spec struct{ Template any } }
		if err := json.Unmarshal(item, &object); err != nil {
			t.Fatal(err)
		}
		if object.Spec.Template != nil {
			if err := json.Unmarshal(item, into); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("%s has no pod template", file)
}

func apiServerTakesWhatTheChartRenders(s subtest) {
	t, c := s.T, s.c
	c.Namespace(namespace)
	c.Namespace(clustersNamespace)
	for _, values := range []string{"everything", "bare"} { // the others have objects of operators that are not there
		rendered := helm(t, c, "template", "weir", "deploy/chart", "--namespace", namespace, "--kube-version", "1.36.3",
			"--values", "deploy/chart/ci/"+values+"-values.yaml")
		path := filepath.Join(t.TempDir(), values+".yaml")
		if err := os.WriteFile(path, []byte(rendered), 0o600); err != nil {
			t.Fatal(err)
		}
		if taken := c.Kubectl("apply", "--dry-run=server", "-o", "name", "-f", path); !strings.Contains(taken, "deployment.apps/weir-controller") {
			t.Errorf("with the values %s the API server takes\n%s", values, taken)
		}
	}
}

func rolesLetWeirDoItsWork(s subtest) {
	t, c := s.T, s.c
	c.Namespace(clustersNamespace)
	c.Kubectl("apply", "-f", manifests)
	c.Kubectl("apply", "-f", filepath.Join(manifests, "optional"))
	defer c.Kubectl("delete", "-f", manifests, "-f", filepath.Join(manifests, "optional"), "--ignore-not-found")
	const (
		events, slices = "events.events.k8s.io", "endpointslices.discovery.k8s.io"
		leases         = "leases.coordination.k8s.io"
		webhooks       = "mutatingwebhookconfigurations.admissionregistration.k8s.io"
		policies       = "loadbalancingpolicies.weir.dev"
		verdicts       = "loadbalancingpolicies/status.weir.dev"
		routes         = "httproutes.gateway.networking.k8s.io"
	)
	for _, may := range []struct {
		account, verb, resource, namespace, name string
		want                                     bool
	}{
		{"controller", "watch", "services", "", "", true},
		{"controller", "watch", "nodes", "", "", true},
		{"controller", "watch", slices, "", "", true},
		{"controller", "patch", slices, "shop", "", true},
		{"controller", "update", slices, "shop", "", false},
		{"controller", "delete", slices, "shop", "", false},
		{"controller", "create", slices, "shop", "", false},
		{"controller", "patch", "services/status", "shop", "", true},
		{"controller", "patch", "services", "shop", "", false},
		{"controller", "patch", "nodes", "", "", false},
		{"controller", "list", "pods", "", "", false},
		{"controller", "create", events, "shop", "", true},
		{"controller", "create", "events", namespace, "", true},
		{"controller", "create", "tokenreviews.authentication.k8s.io", "", "", true},
		{"controller", "create", "subjectaccessreviews.authorization.k8s.io", "", "", true},
		{"controller", "update", leases, namespace, "weir-controller", true},
		{"controller", "update", leases, namespace, "other", false},
		{"controller", "update", leases, "kube-system", "weir-controller", false},
		{"controller", "update", "secrets", namespace, "weir-webhook-certificate", true},
		{"controller", "get", "secrets", namespace, "other", false},
		{"controller", "list", "secrets", namespace, "", false},
		{"controller", "create", "secrets", namespace, "", true},
		{"controller", "create", "secrets", "shop", "", false},
		{"controller", "patch", webhooks, "", "weir-hints", true},
		{"controller", "patch", webhooks, "", "other", false},
		{"controller", "list", webhooks, "", "", false},
		{"controller", "watch", policies, "", "", true},
		{"controller", "watch", routes, "", "", true},
		{"controller", "patch", verdicts, "shop", "", true},
		{"controller", "patch", policies, "shop", "", false},
		{"agent", "watch", policies, "", "", true},
		{"agent", "watch", routes, "", "", true},
		{"agent", "watch", "pods", "", "", true},
		{"agent", "watch", "namespaces", "", "", true},
		{"agent", "patch", verdicts, "shop", "", false},
		{"cleanup", "patch", verdicts, "shop", "", true},
		{"cleanup", "patch", policies, "shop", "", false},
		{"agent", "watch", "services", "", "", true},
		{"agent", "watch", "nodes", "", "", true},
		{"agent", "watch", slices, "", "", true},
		{"agent", "patch", slices, "shop", "", false},
		{"agent", "patch", "services/status", "shop", "", false},
		{"agent", "get", "secrets", namespace, "weir-webhook-certificate", false},
		{"cleanup", "patch", slices, "shop", "", true},
		{"cleanup", "patch", "services/status", "shop", "", true},
		{"cleanup", "update", leases, namespace, "weir-controller", true},
		{"cleanup", "create", leases, namespace, "", false},
		{"cleanup", "get", "secrets", namespace, "weir-webhook-certificate", false},
		{"cleanup", "patch", webhooks, "", "weir-hints", true},
		{"cleanup", "delete", webhooks, "", "weir-hints", false},
		{"cleanup", "update", slices, "shop", "", false},
	} {
		resource, group, _ := strings.Cut(may.resource, ".")
		resource, subresource, _ := strings.Cut(resource, "/")
		review, err := c.Client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{
				User: "system:serviceaccount:" + namespace + ":weir-" + may.account,
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Verb: may.verb, Group: group, Resource: resource, Subresource: subresource,
					Namespace: may.namespace, Name: may.name,
				},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if review.Status.Allowed != may.want {
			t.Errorf("%+v: allowed %v", may, review.Status.Allowed)
		}
	}

	// The API server takes a list of one name for a request for that name.
	client := account(t, c, "weir-controller")
	_, err := client.CoreV1().Secrets(namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=weir-webhook-certificate"})
	if err != nil {
		t.Errorf("list the Secret by its name: %v", err)
	}
	_, err = client.AdmissionregistrationV1().MutatingWebhookConfigurations().List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=weir-hints"})
	if err != nil {
		t.Errorf("list the webhook's configuration by its name: %v", err)
	}
}

// account gives a client that is a ServiceAccount of weir's.
func account(t *testing.T, c *kube.Cluster, name string) kubernetes.Interface {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", c.ServiceAccountKubeconfig(namespace, name))
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func upgradeKeepsTheCertificate(s subtest) {
	t, c := s.T, s.c
	helm(t, c, "install", "weir", "deploy/chart", "--namespace", namespace, "--create-namespace")
	secrets, webhooks := c.Client.CoreV1().Secrets(namespace), c.Client.AdmissionregistrationV1().MutatingWebhookConfigurations()
	// What the controller does, with its own rights.
	client := account(t, c, "weir-controller")
	secret, err := client.CoreV1().Secrets(namespace).Get(t.Context(), "weir-webhook-certificate", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	secret.Data = map[string][]byte{"tls.crt": []byte("certificate"), "tls.key": []byte("key")}
	if _, err := client.CoreV1().Secrets(namespace).Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	authority := base64.StdEncoding.EncodeToString(authorityOf(t, c))
	patch := `[{"op":"add","path":"/webhooks/0/clientConfig/caBundle","value":"` + authority + `"}]`
	if _, err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().
		Patch(t.Context(), "weir-hints", types.JSONPatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}

	helm(t, c, "upgrade", "weir", "deploy/chart", "--namespace", namespace,
		"--set", "controller.manage=all", "--set", "controller.replicas=3", "--set", "webhook.timeoutSeconds=1")

	after, err := secrets.Get(t.Context(), secret.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(secret.Data, after.Data); diff != "" {
		t.Errorf("the Secret's data after an upgrade (-before +after)\n%s", diff)
	}
	configuration, err := webhooks.Get(t.Context(), "weir-hints", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w := &configuration.Webhooks[0]
	if got := base64.StdEncoding.EncodeToString(w.ClientConfig.CABundle); got != authority {
		t.Errorf("the authority after an upgrade is %q, want %q", got, authority)
	}
	if *w.TimeoutSeconds != 1 || len(w.ObjectSelector.MatchExpressions) != 0 || len(w.NamespaceSelector.MatchExpressions) != 1 {
		t.Errorf("the upgrade did not reach the webhook: %+v", w)
	}

	finished := make(chan error, 1)
	go func() { finished <- finishCleanUp(t.Context(), c) }()
	helm(t, c, "uninstall", "weir", "--namespace", namespace)
	if err := <-finished; err != nil {
		t.Error(err)
	}
	rest := c.Kubectl("get", "-A", "-o", "name", "-l", "app.kubernetes.io/name=weir",
		"all,configmap,secret,serviceaccount,role,rolebinding,clusterrole,clusterrolebinding,pdb,networkpolicy,mutatingwebhookconfiguration")
	if rest != "" {
		t.Errorf("the uninstallation leaves behind:\n%s", rest)
	}
}

// finishCleanUp is the kubelet for the job that takes hints back: it waits for the job and reports success. It fails
// if the job is not the last object.
func finishCleanUp(ctx context.Context, c *kube.Cluster) error {
	jobs := c.Client.BatchV1().Jobs(namespace)
	for ; ; time.Sleep(50 * time.Millisecond) {
		job, err := jobs.Get(ctx, "weir-cleanup", metav1.GetOptions{})
		if ctx.Err() != nil {
			return fmt.Errorf("wait for the job: %w", err)
		}
		if err != nil {
			continue
		}
		_, err = c.Client.AppsV1().Deployments(namespace).Get(ctx, "weir-controller", metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("the controller's Deployment while the clean-up runs: %w, want not found", err)
		}
		now := metav1.Now()
		job.Status.StartTime, job.Status.CompletionTime, job.Status.Succeeded = &job.CreationTimestamp, &now, 1
		for _, condition := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
			job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
				Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: now,
			})
		}
		_, err = jobs.UpdateStatus(ctx, job, metav1.UpdateOptions{})
		return err
	}
}

// authorityOf gives a certificate authority that the API server takes for one: the cluster's own.
func authorityOf(t *testing.T, c *kube.Cluster) []byte {
	t.Helper()
	config, err := clientcmd.LoadFromFile(c.AdminKubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	pem, err := os.ReadFile(config.Clusters["test"].CertificateAuthority)
	if err != nil {
		t.Fatal(err)
	}
	return pem
}

// helm runs the helm that is pinned, as the administrator.
func helm(t *testing.T, c *kube.Cluster, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"tool", "-modfile=tools-helm.mod", "helm", "--kubeconfig", c.AdminKubeconfig()}, args...)...)
	cmd.Dir, cmd.Env = "../..", append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath") // as the Makefile builds it
	var problems strings.Builder                                                           // and what the go command says while it builds helm
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, problems.String())
	}
	return string(out)
}
