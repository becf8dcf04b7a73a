package convert_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-lb/weir/internal/kube/convert"
)

func TestPods(t *testing.T) {
	const pod = "metadata: {namespace: shop, name: web-0, labels: {app: web}}\n"
	const container = "spec: {nodeName: n1, containers: [{ports: " +
		"[{name: http, containerPort: 8080}, {name: dns, containerPort: 53, protocol: UDP}]}]}\n"
	const ready = "status: {podIPs: [{ip: 10.0.0.1}, {ip: 'fd00::1'}], conditions: [{type: Ready, status: 'True'}]}\n"
	for _, c := range []struct {
		name, spec, pod, want string
		problems              []string
	}{
		{
			"a ready pod", "{selector: {app: web}, ports: [{port: 80, targetPort: http}]}", pod + container + ready,
			"a:1@n1{pod=shop/web-0,ports=8080} fd00::1=a:1@n1{pod=shop/web-0,ports=8080}", nil,
		},
		{
			"one family only", "{selector: {app: web}, ipFamilies: [IPv4], ports: [{port: 80}]}", pod + container + ready,
			"a:1@n1{pod=shop/web-0}", nil,
		},
		{
			"a pod that is not ready", "{selector: {app: web}, ports: [{port: 80}]}", pod + "status: {podIP: 10.0.0.1}",
			"-:1!{pod=shop/web-0}", nil,
		},
		{
			"a pod that is not ready, published", "{selector: {app: web}, publishNotReadyAddresses: true, ports: [{port: 80}]}",
			pod + "status: {podIP: 10.0.0.1}", "-:1(tff){pod=shop/web-0}", nil,
		},
		{
			"a pod that terminates", "{selector: {app: web}, ports: [{port: 80}]}",
			"metadata: {namespace: shop, name: web-0, labels: {app: web}, deletionTimestamp: '2026-11-20T12:00:00Z'}\n" +
				"status: {podIP: 10.0.0.1, conditions: [{type: Ready, status: 'True'}]}",
			"-:1~{pod=shop/web-0}", nil,
		},
		{
			"a target that no container has",
			"{selector: {app: web}, ports: [{port: 80, targetPort: dns}, {port: 81, name: x, targetPort: 82}]}",
			pod + container + "status: {podIP: 10.0.0.1}", "a:1!@n1{pod=shop/web-0,ports=x:82}",
			[]string{`Pod shop/web-0: spec.containers: no container has the port "dns" over TCP that Service web asks for`},
		},
		{
			"a sidecar's port", "{selector: {app: web}, ports: [{port: 80, targetPort: mesh}]}",
			pod + "spec: {containers: [{}], initContainers: " +
				"[{restartPolicy: Always, ports: [{name: mesh, containerPort: 15001}]}]}\n" +
				"status: {podIP: 10.0.0.1}", "-:1!{pod=shop/web-0,ports=15001}", nil,
		},
		{
			"a node that is not there", "{selector: {app: web}, ports: [{port: 80}]}", pod + "spec: {nodeName: n9}\n" + ready,
			"-:1@n9{pod=shop/web-0} fd00::1=-:1@n9{pod=shop/web-0}",
			[]string{`Pod shop/web-0: spec.nodeName: there is no node "n9"`},
		},
		{
			"a pod without an address", "{selector: {app: web}, ports: [{port: 80}]}", pod + "status: {phase: Running}", "",
			[]string{"Pod shop/web-0: status.podIPs: the pod has no address: left out"},
		},
		{"a pending pod", "{selector: {app: web}, ports: [{port: 80}]}", pod + "status: {phase: Pending}", "", nil},
		{
			"a finished pod", "{selector: {app: web}, ports: [{port: 80}]}",
			pod + "status: {phase: Succeeded, podIP: 10.0.0.1}", "", nil,
		},
		{"a pod of another app", "{selector: {app: db}, ports: [{port: 80}]}", pod + ready, "", nil},
		{
			"a pod of another namespace", "{selector: {app: web}, ports: [{port: 80}]}",
			"metadata: {name: web-0, labels: {app: web}}\n" + ready, "", nil,
		},
		{"no selector, no pods", "{ports: [{port: 80}]}", pod + ready, "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := object[corev1.Service](t, "metadata: {namespace: shop, name: web}\nspec: "+c.spec)
			pods := []*corev1.Pod{object[corev1.Pod](t, c.pod)}
			endpoints, problems := convert.Pods(s, pods, convert.Zones{"n1": "a"})
			equal(t, "endpoints", c.want, text(endpoints))
			equal(t, "problems", c.problems, lines(problems))
		})
	}
}
