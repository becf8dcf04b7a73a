package convert

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// Pods makes the endpoints of a Service from the pods that its selector matches, as the built-in controller would: for
// clusters that are described without EndpointSlices. Pods of other namespaces, finished ones and those that wait for
// their address are passed over. None come from a Service without a selector.
func Pods(s *corev1.Service, pods []*corev1.Pod, zones Zones) ([]topology.Endpoint, []reason.Finding) {
	if len(s.Spec.Selector) == 0 {
		return nil, nil
	}
	selector := labels.SelectorFromSet(s.Spec.Selector)
	var endpoints []topology.Endpoint
	var found []reason.Finding
	for _, pod := range pods {
		if namespace(pod.Namespace) != namespace(s.Namespace) || !selector.Matches(labels.Set(pod.Labels)) {
			continue
		}
		p := problems{object: reason.Object{Kind: "Pod", Namespace: namespace(pod.Namespace), Name: pod.Name}}
		endpoints = append(endpoints, p.pod(s, pod, zones)...)
		found = append(found, p.list...)
	}
	return merge(endpoints), found
}

func (p *problems) pod(s *corev1.Service, pod *corev1.Pod, zones Zones) []topology.Endpoint {
	switch pod.Status.Phase {
	case corev1.PodSucceeded, corev1.PodFailed:
		return nil
	default:
	}
	addrs := p.podAddrs(s, pod)
	var endpoints []topology.Endpoint
	for _, addr := range addrs {
		e := topology.Endpoint{
			Addr: addr, Ports: p.podPorts(s, pod), Node: pod.Spec.NodeName,
			Pod:        p.object.Namespace + "/" + pod.Name,
			Conditions: podConditions(s, pod),
		}
		// A second address of a pod on an unknown node would report it a second time.
		reported := map[string]bool{e.Node: len(endpoints) > 0}
		p.locate("spec.nodeName", &e, zones, reported)
		endpoints = append(endpoints, e)
	}
	return endpoints
}

// podAddrs gives the pod's first address of each family that the Service has; of both when the Service has no address.
func (p *problems) podAddrs(s *corev1.Service, pod *corev1.Pod) []netip.Addr {
	field, texts := "status.podIPs", make([]string, 0, len(pod.Status.PodIPs))
	for _, ip := range pod.Status.PodIPs {
		texts = append(texts, ip.IP)
	}
	if len(texts) == 0 && pod.Status.PodIP != "" {
		field, texts = "status.podIP", []string{pod.Status.PodIP}
	}
	if len(texts) == 0 && pod.Status.Phase != corev1.PodPending {
		p.add(field, "the pod has no address: left out")
	}
	var addrs []netip.Addr
	for _, text := range texts {
		addr, ok := p.addr(field, text)
		if !ok || !hasFamily(s, topology.FamilyOf(addr)) {
			continue
		}
		sameFamily := func(a netip.Addr) bool { return topology.FamilyOf(a) == topology.FamilyOf(addr) }
		if !slices.ContainsFunc(addrs, sameFamily) {
			addrs = append(addrs, addr)
		}
	}
	return addrs
}

func hasFamily(s *corev1.Service, f topology.Family) bool {
	return len(s.Spec.IPFamilies) == 0 || slices.Contains(s.Spec.IPFamilies, corev1.IPFamily(f.String()))
}

func podConditions(s *corev1.Service, pod *corev1.Pod) topology.Conditions {
	isServing := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
	isTerminating := pod.DeletionTimestamp != nil
	isReady := s.Spec.PublishNotReadyAddresses || isServing && !isTerminating
	return topology.Conditions{
		Ready: condition(&isReady), Serving: condition(&isServing), Terminating: condition(&isTerminating),
	}
}

// podPorts gives the numbers at which the pod answers the Service's ports. A named target that no container has is
// reported, and the pod does not answer that port.
func (p *problems) podPorts(s *corev1.Service, pod *corev1.Pod) []topology.EndpointPort {
	var ports []topology.EndpointPort
	quiet := problems{} // what is wrong with the Service's ports is reported with the Service
	for i := range s.Spec.Ports {
		sp := &s.Spec.Ports[i]
		protocol := quiet.protocol("", sp.Protocol)
		target, ok := podPort(sp, protocol, pod)
		if !ok {
			p.add("spec.containers", "no container has the port %q over %s that Service %s asks for",
				sp.TargetPort.String(), protocol, s.Name)
			continue
		}
		if number, ok := quiet.portNumber("", target); ok {
			ports = append(ports, topology.EndpointPort{
				Name: sp.Name, Protocol: protocol, AppProtocol: deref(sp.AppProtocol, ""), Port: number,
			})
		}
	}
	return ports
}

func podPort(sp *corev1.ServicePort, protocol topology.Protocol, pod *corev1.Pod) (int32, bool) {
	if sp.TargetPort.Type == intstr.Int {
		if sp.TargetPort.IntVal == 0 {
			return sp.Port, true // the API server's default
		}
		return sp.TargetPort.IntVal, true
	}
	quiet := problems{}
	containers := slices.Clone(pod.Spec.Containers)
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if deref(c.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways { // a sidecar
			containers = append(containers, *c)
		}
	}
	for i := range containers {
		for _, port := range containers[i].Ports {
			if port.Name == sp.TargetPort.StrVal && quiet.protocol("", port.Protocol) == protocol {
				return port.ContainerPort, true
			}
		}
	}
	return 0, false
}
