package policies

import (
	"cmp"
	"net/netip"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-lb/weir/internal/core/policy"
)

// IsFinished tells whether a pod runs no more, so that its address may be another's by now.
func IsFinished(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// Pod gives what policies know of a pod. Its addresses are its own ones: none of a finished pod, and none of a pod on the host's
// network. It shares its labels and annotations with p.
func Pod(p *corev1.Pod) policy.Pod {
	return policy.Pod{
		Namespace: cmp.Or(p.Namespace, corev1.NamespaceDefault), Name: p.Name, Node: p.Spec.NodeName,
		IPs: podIPs(p), Labels: p.Labels, Annotations: p.Annotations,
	}
}

func podIPs(p *corev1.Pod) []string {
	if p.Spec.HostNetwork || IsFinished(p) {
		return nil
	}
	addresses := p.Status.PodIPs
	if len(addresses) == 0 {
		addresses = []corev1.PodIP{{IP: p.Status.PodIP}}
	}
	var ips []string
	for _, a := range addresses {
		if _, err := netip.ParseAddr(a.IP); err == nil {
			ips = append(ips, a.IP)
		}
	}
	return ips
}
