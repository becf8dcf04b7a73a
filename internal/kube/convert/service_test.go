package convert_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/convert"
)

func TestService(t *testing.T) {
	for _, c := range []struct {
		name, spec string
		want       string
		problems   []string
	}{
		{"one written by hand has the API server's defaults", "{ports: [{port: 80}]}", "service shop/web", nil},
		{
			"one from a cluster",
			`{type: NodePort, clusterIP: 10.96.0.1, clusterIPs: [10.96.0.1, 'fd00::1'], internalTrafficPolicy: Local,
			  externalTrafficPolicy: Local,
			  ports: [{name: http, port: 80, protocol: TCP, appProtocol: http, targetPort: web, nodePort: 30080},
			          {name: dns, port: 53, protocol: UDP, targetPort: 5353}]}`,
			"service shop/web port=dns:53/UDP port=http:80+30080@http ip=10.96.0.1,fd00::1 " +
				"internal=Local external=Local exposed", nil,
		},
		{
			"a headless one has no address", "{clusterIP: None, clusterIPs: [None], ports: [{port: 80}]}",
			"service shop/web headless", nil,
		},
		{
			"an external IP exposes", "{externalIPs: [192.0.2.1], clusterIP: 10.96.0.1, ports: [{port: 80}]}",
			"service shop/web ip=10.96.0.1 exposed", nil,
		},
		{
			"what is bad is left out, the rest stays",
			`{clusterIP: 10.96.0, internalTrafficPolicy: local, ports: [{port: 80}, {port: 0}, {port: 70000},
			  {port: 81}, {name: x, port: 82, protocol: tcp, nodePort: -1}]}`,
			"service shop/web port=80 port=x:82",
			[]string{
				"Service shop/web: spec.ports[1].port: 0 is no port number from 1 to 65535: left out",
				"Service shop/web: spec.ports[2].port: 70000 is no port number from 1 to 65535: left out",
				`Service shop/web: spec.ports[3].name: a second port "" over TCP: left out`,
				`Service shop/web: spec.ports[4].protocol: unknown protocol "tcp": taken as TCP`,
				"Service shop/web: spec.ports[4].nodePort: -1 is no port number from 1 to 65535: left out",
				`Service shop/web: spec.internalTrafficPolicy: unknown policy "local": taken as Cluster`,
				`Service shop/web: spec.clusterIP: "10.96.0" is no IP address: left out`,
			},
		},
		{
			"nobody listens on every interface", `{clusterIP: "::", ports: [{port: 80}]}`, "service shop/web",
			[]string{"Service shop/web: spec.clusterIP: :: is no address of one machine: left out"},
		},
		{
			"an alias is left out", "{type: ExternalName, externalName: example.com}", "",
			[]string{"Service shop/web: spec.type: ExternalName is a DNS alias without endpoints: left out"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := object[corev1.Service](t, "metadata: {namespace: shop, name: web}\nspec: "+c.spec)
			svc, problems := convert.Service(s, convert.Options{})
			var got string
			if svc != nil {
				svc.Mode = topology.ModeUnset // has a test of its own
				got = topology.NewSnapshot(nil, []*topology.Service{svc}, topology.Costs{}).String()
			}
			equal(t, "service", c.want, got)
			equal(t, "problems", c.problems, lines(problems))
		})
	}
}

func TestTheLabelGivesAServiceToAProxy(t *testing.T) {
	for label, want := range map[string]string{"other": "other", api.ServiceProxyName: topology.ProxyWeir, `""`: ""} {
		text := "metadata: {name: web, labels: {service.kubernetes.io/service-proxy-name: " + label + "}}"
		svc, _ := convert.Service(object[corev1.Service](t, text), convert.Options{})
		if svc.Proxy != want {
			t.Errorf("%s: want %q, got %q", label, want, svc.Proxy)
		}
	}
}

func TestLoadBalancerExposesByItsMode(t *testing.T) {
	for status, want := range map[string]bool{
		"{}": false,
		"{loadBalancer: {ingress: [{hostname: lb.example.com}]}}":         false,
		"{loadBalancer: {ingress: [{ip: 192.0.2.1}]}}":                    true,
		"{loadBalancer: {ingress: [{ip: 192.0.2.1, ipMode: VIP}]}}":       true,
		"{loadBalancer: {ingress: [{ip: 192.0.2.1, ipMode: Proxy}]}}":     false,
		"{loadBalancer: {ingress: [{hostname: a}, {ip: 192.0.2.1}, {}]}}": true,
	} {
		svc, _ := convert.Service(object[corev1.Service](t, "metadata: {name: web}\nstatus: "+status), convert.Options{})
		if svc.ExternallyAccessible != want {
			t.Errorf("%s: want %t", status, want)
		}
	}
}
