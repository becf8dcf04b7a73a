package kube

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

type pod struct {
	name   string
	number uint32
	ready  bool
}

// Scale adds ready pods to a zone or removes its oldest ones until it has count.
func (a *App) Scale(zone string, count int) {
	a.Cluster.tb.Helper()
	for a.Count(zone) > count {
		if err := a.remove(a.Cluster.tb.Context(), zone); err != nil {
			a.Cluster.tb.Fatal(err)
		}
	}
	for a.Count(zone) < count {
		if err := a.add(a.Cluster.tb.Context(), zone); err != nil {
			a.Cluster.tb.Fatal(err)
		}
	}
}

// Count is how many pods a zone has.
func (a *App) Count(zone string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.pods[zone])
}

// Pods lists the names of a zone's pods, oldest first.
func (a *App) Pods(zone string) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var names []string
	for _, p := range a.pods[zone] {
		names = append(names, p.name)
	}
	return names
}

// add creates a pod on a node of the zone and says that it runs and is ready.
func (a *App) add(ctx context.Context, zone string) error {
	c := a.Cluster
	node, err := c.nodes.pick(zone)
	if err != nil {
		return err
	}
	a.mu.Lock()
	name := fmt.Sprintf("%s-%d", a.Name, a.made)
	a.made++
	a.mu.Unlock()
	client := c.Client.CoreV1().Pods(a.Namespace)
	created, err := client.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: a.labels()},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{
			Name: "main", Image: "test.invalid/none", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: PodPort}},
		}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create pod %s/%s: %w", a.Namespace, name, err)
	}
	number := c.podNumber.Add(1)
	created.Status = podStatus(number)
	if _, err := client.UpdateStatus(ctx, created, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("set the status of pod %s/%s: %w", a.Namespace, name, err)
	}
	a.mu.Lock()
	a.pods[zone] = append(a.pods[zone], &pod{name, number, true})
	a.mu.Unlock()
	return nil
}

// podStatus is that of the running and ready pod with this number, which no other pod of the cluster has or had.
func podStatus(number uint32) corev1.PodStatus {
	ipv4, ipv6 := podAddress(corev1.IPv4Protocol, number).String(), podAddress(corev1.IPv6Protocol, number).String()
	return corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: ipv4, PodIPs: []corev1.PodIP{{IP: ipv4}, {IP: ipv6}},
		Conditions: podReady(corev1.ConditionTrue),
	}
}

func podAddress(family corev1.IPFamily, number uint32) netip.Addr {
	if family == corev1.IPv6Protocol {
		return numbered(podRange6, number)
	}
	return numbered(podRange4, number)
}

// numbered is the address with this number in a range.
func numbered(prefix string, number uint32) netip.Addr {
	bytes := netip.MustParsePrefix(prefix).Addr().AsSlice()
	tail := bytes[len(bytes)-4:]
	binary.BigEndian.PutUint32(tail, binary.BigEndian.Uint32(tail)+number)
	address, _ := netip.AddrFromSlice(bytes) // of the same length
	return address
}

func podReady(ready corev1.ConditionStatus) []corev1.PodCondition {
	return []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}, {Type: corev1.ContainersReady, Status: ready}}
}

// remove deletes the zone's oldest pod at once, as there is no kubelet to let it end.
func (a *App) remove(ctx context.Context, zone string) error {
	a.mu.Lock()
	if len(a.pods[zone]) == 0 {
		a.mu.Unlock()
		return nil
	}
	name := a.pods[zone][0].name
	a.pods[zone] = a.pods[zone][1:]
	a.mu.Unlock()
	if err := a.Cluster.Client.CoreV1().Pods(a.Namespace).Delete(ctx, name, *metav1.NewDeleteOptions(0)); err != nil {
		return fmt.Errorf("delete pod %s/%s: %w", a.Namespace, name, err)
	}
	return nil
}

// SetReady says of a pod whether it is ready.
func (a *App) SetReady(name string, ready corev1.ConditionStatus) {
	a.Cluster.tb.Helper()
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":%q},{"type":"ContainersReady","status":%[1]q}]}}`, ready)
	_, err := a.Cluster.Client.CoreV1().Pods(a.Namespace).
		Patch(a.Cluster.tb.Context(), name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	if err != nil {
		a.Cluster.tb.Fatalf("set whether pod %s/%s is ready: %v", a.Namespace, name, err)
	}
	a.note(name, ready == corev1.ConditionTrue)
}

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
	a.note(name, false)
}

// note remembers whether a pod is ready.
func (a *App) note(name string, ready bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, list := range a.pods {
		for _, p := range list {
			if p.name == name {
				p.ready = ready
			}
		}
	}
}
