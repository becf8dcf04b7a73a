package kube

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// terminateGrace is how long a pod may take to end, in seconds: longer than any test.
const terminateGrace = 24 * 3600

// Terminate begins to delete a pod, which goes on for good, as there is no kubelet to say that it has ended. It still
// serves if it was ready.
func (a *App) Terminate(name string) {
	c := a.Cluster
	c.tb.Helper()
	err := c.Client.CoreV1().Pods(a.Namespace).Delete(c.tb.Context(), name, *metav1.NewDeleteOptions(terminateGrace))
	if err != nil {
		c.tb.Fatalf("begin to delete pod %s/%s: %v", a.Namespace, name, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, list := range a.pods {
		for _, p := range list {
			if p.name == name {
				p.ready = false
			}
		}
	}
}
