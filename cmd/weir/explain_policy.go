package main

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/explain"
)

// setClient fills in the client for which policies are resolved.
func (f *explainFlags) setClient(s *inputs, o *explain.Options) error {
	o.Policies, o.ClientName = s.policies, "any client"
	switch {
	case f.client != "":
		return s.setPodClient(f.client, o)
	case f.node != "":
		node := s.Snapshot.Node(f.node)
		o.Client = policy.Client{Node: node.Name, Zone: node.Zone}
		o.ClientName = fmt.Sprintf("clients on node %s in %s", node.Name, cmp.Or(node.Zone, "no zone"))
	}
	return nil
}

// setPodClient makes a pod the client.
func (s *inputs) setPodClient(name string, o *explain.Options) error {
	if s.policies == nil {
		return errNoPolicies
	}
	pod, err := s.pod(name)
	if err != nil {
		return err
	}
	o.Client = policy.Client{Node: pod.Node, Namespace: pod.Namespace, Pod: pod.Labels, Serves: s.served(pod)}
	if node := s.Snapshot.Node(pod.Node); node != nil {
		o.Client.Zone = node.Zone
	}
	o.ClientName = fmt.Sprintf("pod %s/%s on node %s in %s",
		pod.Namespace, pod.Name, cmp.Or(pod.Node, "(none)"), cmp.Or(o.Client.Zone, "no zone"))
	return nil
}

// pod finds a pod by [NAMESPACE/]NAME.
func (s *inputs) pod(text string) (*policy.Pod, error) {
	name, err := clientName(text, s.namespace)
	if err != nil {
		return nil, err
	}
	if pod := s.policies.Pod(name.Namespace, name.Name); pod != nil {
		return pod, nil
	}
	var known []string
	for i := range s.policies.Pods {
		known = append(known, s.policies.Pods[i].Namespace+"/"+s.policies.Pods[i].Name)
	}
	if len(known) == 0 {
		return nil, fmt.Errorf("no pod %s: %s no pod at all", name, s.holder)
	}
	return nil, fmt.Errorf("no pod %s: did you mean %s?", name, strings.Join(topology.Near(name.String(), known), ", "))
}

// served lists the services that a pod is an endpoint of.
func (s *inputs) served(pod *policy.Pod) []topology.ServiceName {
	var services []topology.ServiceName
	for _, svc := range s.Snapshot.Services {
		isServed := slices.ContainsFunc(svc.Endpoints, func(e topology.Endpoint) bool {
			return e.Pod == pod.Namespace+"/"+pod.Name || slices.ContainsFunc(pod.IPs, func(text string) bool {
				addr, err := netip.ParseAddr(text)
				return err == nil && addr.Unmap() == e.Addr.Unmap()
			})
		})
		if isServed {
			services = append(services, svc.ServiceName)
		}
	}
	return services
}
