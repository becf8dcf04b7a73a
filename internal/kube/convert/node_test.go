package convert_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-lb/weir/internal/kube/convert"
)

func TestNode(t *testing.T) {
	const ready = "status: {allocatable: {cpu: 3920m}, " +
		"conditions: [{type: MemoryPressure, status: 'False'}, {type: Ready, status: 'True'}]}"
	for _, c := range []struct {
		name, yaml, want string
		problems         []string
	}{
		{
			"a worker",
			"metadata: {name: n1, labels: {topology.kubernetes.io/zone: a, topology.kubernetes.io/region: eu}}\n" + ready,
			"n1=eu/a:3.92", nil,
		},
		{
			"a control plane by its old label",
			"metadata: {name: n1, labels: {topology.kubernetes.io/zone: a, node-role.kubernetes.io/master: ''}}\n" + ready,
			"n1=a:3.92^", nil,
		},
		{
			"a node that says nothing", "metadata: {name: n1}", "n1=-:?!",
			[]string{
				"Node n1: metadata.labels[topology.kubernetes.io/zone]: the node has no zone label: its zone is not known",
				"Node n1: status.conditions: the node has no condition Ready: it counts as not ready",
			},
		},
		{
			"a node whose readiness is not known",
			"metadata: {name: n1, labels: {topology.kubernetes.io/zone: a, node-role.kubernetes.io/control-plane: 'true'}}\n" +
				"status: {allocatable: {cpu: 4}, conditions: [{type: Ready, status: Unknown}]}",
			"n1=a:4!^", nil,
		},
		{
			"nonsense",
			"metadata: {name: n1, labels: {topology.kubernetes.io/zone: a/b}}\n" +
				"status: {allocatable: {cpu: -4}, conditions: [{type: Ready, status: 'True'}]}",
			"n1=-:?",
			[]string{
				`Node n1: metadata.labels[topology.kubernetes.io/zone]: bad zone name "a/b": want letters, digits and, inside, ` +
					`any of "-_.": taken as not known`,
				"Node n1: status.allocatable.cpu: -4 is negative or absurd: taken as not reported",
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			node, problems := convert.Node(object[corev1.Node](t, c.yaml))
			equal(t, "node", c.want, node.String())
			equal(t, "problems", c.problems, lines(problems))
		})
	}
}
