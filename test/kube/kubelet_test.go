//go:build e2e

package kube_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-lb/weir/test/kube"
)

// kubelet runs the pods of weir's namespace as processes on this machine, each with the arguments of its manifest and the
// rights of its ServiceAccount. Ports are given out anew, because all pods share one address, and the API server is routed
// to the webhooks of those that are ready. It belongs in the test's goroutine.
type kubelet struct {
	t    *testing.T
	c    *kube.Cluster
	pods map[types.UID]*runningPod
}

// runningPod is a pod as a process: a server, or a program that ends by itself.
type runningPod struct {
	name                    string
	process                 *kube.Process
	ended                   chan error // of a program that ends by itself; nil: a server
	webhook, metrics, ready string     // addresses of a server
	isReady                 bool
}

func newKubelet(t *testing.T, c *kube.Cluster) *kubelet {
	t.Helper()
	return &kubelet{t: t, c: c, pods: make(map[types.UID]*runningPod)}
}

// during lets pods run while do runs in a goroutine, and gives its error.
func (k *kubelet) during(do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	for {
		select {
		case err := <-done:
			k.sync()
			return err
		case <-time.After(50 * time.Millisecond):
			k.sync()
		}
	}
}

// sync starts the pods that are new, ends those that are gone, and tells the API server of those that changed.
func (k *kubelet) sync() {
	k.t.Helper()
	pods, err := k.c.Client.CoreV1().Pods(namespace).List(k.t.Context(), metav1.ListOptions{})
	if err != nil {
		k.t.Fatal(err)
	}
	there := make(map[types.UID]bool)
	changed := false
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		there[pod.UID] = true
		if k.pods[pod.UID] == nil {
			k.pods[pod.UID] = k.start(pod)
		}
		changed = k.tell(pod, k.pods[pod.UID]) || changed
	}
	for uid, pod := range k.pods {
		if !there[uid] {
			delete(k.pods, uid)
			changed = true
			if pod.process != nil {
				if err := pod.process.Terminate(time.Minute); err != nil {
					k.t.Errorf("pod %s: %v\n%s", pod.name, err, pod.process.Log())
				}
			}
		}
	}
	if changed {
		k.route()
	}
}

// start runs a pod.
func (k *kubelet) start(pod *corev1.Pod) *runningPod {
	k.t.Helper()
	address := func() string { return fmt.Sprintf("127.0.0.1:%d", k.c.Port()) }
	args := slices.Clone(pod.Spec.Containers[0].Args)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "$(POD_NAMESPACE)", pod.Namespace)
	}
	args = append(args, "--kubeconfig="+k.c.ServiceAccountKubeconfig(pod.Namespace, pod.Spec.ServiceAccountName))
	p := &runningPod{name: pod.Name}
	if pod.Spec.RestartPolicy == corev1.RestartPolicyNever {
		p.ended = make(chan error, 1)
		k.c.WeirProgram() // built here, so that nothing fails the test from another goroutine
		go func() {
			_, err := k.c.RunWeir(args...)
			p.ended <- err
		}()
		return p
	}
	p.webhook, p.metrics, p.ready = address(), address(), address()
	p.process = k.c.Weir(pod.Name, append(args, "--webhook-bind-address="+p.webhook, "--metrics-bind-address="+p.metrics,
		"--health-probe-bind-address="+p.ready, "--admin-bind-address=")...)
	return p
}

// tell writes a pod's status if it changed.
func (k *kubelet) tell(pod *corev1.Pod, p *runningPod) bool {
	k.t.Helper()
	status := corev1.ConditionTrue
	switch {
	case p.ended != nil:
		select {
		case err := <-p.ended:
			pod.Status.Phase, status = corev1.PodSucceeded, corev1.ConditionFalse
			if err != nil {
				pod.Status.Phase = corev1.PodFailed
				k.t.Errorf("pod %s: %v", p.name, err)
			}
		default:
			return false
		}
	case p.isReady || !answers(k.t.Context(), "http://"+p.ready+"/readyz"):
		return false
	default:
		p.isReady, pod.Status.Phase = true, corev1.PodRunning
	}
	pod.Status.PodIP = "192.0.2.10" // of the block for documentation: nothing connects to it
	pod.Status.PodIPs = []corev1.PodIP{{IP: pod.Status.PodIP}}
	for _, condition := range []corev1.PodConditionType{corev1.ContainersReady, corev1.PodReady} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: condition, Status: status, LastTransitionTime: metav1.Now(),
		})
	}
	pod.ResourceVersion = "" // whatever else changed of the pod meanwhile
	_, err := k.c.Client.CoreV1().Pods(namespace).UpdateStatus(k.t.Context(), pod, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return false // deleted since it was listed, which the next sync sees; a UID that is another one's is a conflict
	}
	if err != nil {
		k.t.Fatalf("tell that pod %s is %s: %v", pod.Name, pod.Status.Phase, err)
	}
	return true
}

// route sends the API server's calls of the webhook to the pods that are ready.
func (k *kubelet) route() {
	k.t.Helper()
	if _, err := k.c.Client.CoreV1().Services(namespace).Get(k.t.Context(), "weir-webhook", metav1.GetOptions{}); err != nil {
		return // gone: nothing calls it
	}
	var addresses []string
	for _, p := range k.pods {
		if p.isReady {
			addresses = append(addresses, p.webhook)
		}
	}
	k.c.Route(namespace, "weir-webhook", 443, addresses...)
}

// metrics gives where ready pods show their metrics.
func (k *kubelet) metrics() []string {
	var urls []string
	for _, p := range k.pods {
		if p.isReady {
			urls = append(urls, "https://"+p.metrics+"/metrics")
		}
	}
	return urls
}

// answers tells whether a page is there and says OK.
func answers(ctx context.Context, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
	}}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}
