package convert

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// Node converts a Node. A zone or region label that is missing or no label value counts as not known; CPU that is not
// reported is 0. A node without the condition Ready counts as not ready, as it does for the built-in controller.
func Node(n *corev1.Node) (topology.Node, []reason.Finding) {
	p := problems{object: reason.Object{Kind: "Node", Name: n.Name}}
	node := topology.Node{Name: n.Name}
	if name := n.Labels[api.LabelZone]; name == "" {
		p.add(at("metadata.labels", api.LabelZone), "the node has no zone label: its zone is not known")
	} else {
		node.Zone = p.zone(at("metadata.labels", api.LabelZone), name)
	}
	if region, ok := n.Labels[api.LabelRegion]; ok {
		node.Region = string(p.zone(at("metadata.labels", api.LabelRegion), region)) // the same rule for both
	}
	if cpu := n.Status.Allocatable.Cpu(); cpu.Sign() >= 0 && cpu.CmpInt64(int64(topology.MaxCPU/1000)) <= 0 {
		node.CPU = topology.MilliCPU(cpu.MilliValue())
	} else {
		p.add("status.allocatable.cpu", "%s is negative or absurd: taken as not reported", cpu)
	}
	_, isControlPlane := n.Labels[api.LabelControlPlane]
	_, isMaster := n.Labels[api.LabelMaster]
	node.ControlPlane = isControlPlane || isMaster
	found := false
	for i := range n.Status.Conditions {
		if c := &n.Status.Conditions[i]; c.Type == corev1.NodeReady {
			node.Ready, found = c.Status == corev1.ConditionTrue, true
		}
	}
	if !found {
		p.add("status.conditions", "the node has no condition Ready: it counts as not ready")
	}
	return node, p.list
}

// zone reads the name of a zone; a bad one is reported and gives the unknown zone.
func (p *problems) zone(field, name string) topology.Zone {
	if name == "" {
		return ""
	}
	z, err := topology.ParseZone(name)
	if err != nil {
		p.add(field, "%v: taken as not known", err)
	}
	return z
}
