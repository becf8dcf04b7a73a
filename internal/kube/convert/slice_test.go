package convert_test

import (
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/weir-lb/weir/internal/kube/convert"
)

func TestSlices(t *testing.T) {
	const http = "ports: [{name: '', port: 80, protocol: TCP}]\n"
	zones := convert.Zones{"n1": "a", "n2": "b", "n3": ""}
	for _, c := range []struct {
		name     string
		slices   []string
		want     string
		problems []string
	}{
		{
			"conditions that are missing stay unknown",
			[]string{http + `addressType: IPv4
endpoints:
- {addresses: [10.0.0.1], zone: a, conditions: {ready: true, serving: true, terminating: false}}
- {addresses: [10.0.0.2], zone: a, conditions: {}}
- {addresses: [10.0.0.3], zone: a, conditions: {ready: false, serving: true, terminating: true}}
- {addresses: [10.0.0.4], zone: a, conditions: {ready: true}}`},
			"a:1 a:1? a:1~ a:1(t??)", nil,
		},
		{
			"a zone comes from the node where the endpoint has none",
			[]string{http + `addressType: IPv4
endpoints:
- {addresses: [10.0.0.1], nodeName: n2}
- {addresses: [10.0.0.2], nodeName: n2, zone: a}
- {addresses: [10.0.0.3], nodeName: n3}
- {addresses: [10.0.0.4], nodeName: n9}
- {addresses: [10.0.0.5], nodeName: n9}`},
			"b:1?@n2 a:1?@n2 -:1?@n3 -:2?@n9",
			[]string{`EndpointSlice default/s0: endpoints[3].nodeName: there is no node "n9"`},
		},
		{
			"hints and pods",
			[]string{http + `addressType: IPv4
endpoints:
- {addresses: [10.0.0.1], targetRef: {kind: Pod, namespace: shop, name: web-0},
   hints: {forZones: [{name: b}, {name: a}, {name: ''}], forNodes: [{name: n1}]}}
- {addresses: [10.0.0.2], targetRef: {kind: Pod, name: web-1}}
- {addresses: [10.0.0.3], targetRef: {kind: VirtualMachine, name: web-2}}`},
			"-:1?>a,b,@n1{pod=shop/web-0} -:1?{pod=default/web-1} -:1?", nil,
		},
		{
			"both families and several slices are one list",
			[]string{
				http + "addressType: IPv6\nendpoints: [{addresses: ['fd00::1']}]",
				http + "addressType: IPv4\nendpoints: [{addresses: [10.0.0.1]}]",
				http + "addressType: IPv4\nendpoints: [{addresses: [10.0.0.2]}]",
			},
			"-:2? fd00::1=-:1?", nil,
		},
		{
			"only the first address counts",
			[]string{http + "addressType: IPv4\nendpoints: [{addresses: [10.0.0.1, 10.0.0.9]}]"},
			"-:1?", nil,
		},
		{
			"what has no address is left out",
			[]string{
				http + "addressType: IPv4\n" +
					"endpoints: [{addresses: []}, {addresses: [web]}, {addresses: ['fd00::1']}, {addresses: [10.0.0.1]}]",
				http + "addressType: FQDN\nendpoints: [{addresses: [example.com]}]",
				http + "endpoints: [{addresses: [10.0.0.7]}]",
			},
			"-:1?",
			[]string{
				"EndpointSlice default/s0: endpoints[0].addresses: the endpoint has no address: left out",
				`EndpointSlice default/s0: endpoints[1].addresses[0]: "web" is no IP address: left out`,
				"EndpointSlice default/s0: endpoints[2].addresses[0]: fd00::1 is not IPv4, the slice's address type: left out",
				"EndpointSlice default/s1: addressType: FQDN has no address to send to: the slice is left out",
				`EndpointSlice default/s2: addressType: unknown type "", want IPv4 or IPv6: the slice is left out`,
			},
		},
		{
			"what is no one machine's address is left out, and an IPv4 address is one however it is written",
			[]string{http + "addressType: IPv4\n" +
				"endpoints: [{addresses: [0.0.0.0]}, {addresses: [224.0.0.1]}, {addresses: ['::ffff:10.0.0.1']}]"},
			"-:1?",
			[]string{
				"EndpointSlice default/s0: endpoints[0].addresses[0]: 0.0.0.0 is no address of one machine: left out",
				"EndpointSlice default/s0: endpoints[1].addresses[0]: 224.0.0.1 is no address of one machine: left out",
			},
		},
		{
			"a port without a number is left out",
			[]string{`{addressType: IPv4, ports: [{name: a}, {name: b, port: 81}, {name: b, port: 82}],
endpoints: [{addresses: [10.0.0.1]}]}`},
			"-:1?{ports=b:81}",
			[]string{
				"EndpointSlice default/s0: ports[0].port: the port has no number: left out",
				`EndpointSlice default/s0: ports[2].name: a second port "b" over TCP: left out`,
			},
		},
		{
			"a slice without ports has endpoints without ports",
			[]string{"{addressType: IPv4, endpoints: [{addresses: [10.0.0.1]}]}"},
			"-:1?{ports=-}", nil,
		},
		{
			"of the same address twice the ready one counts, then the first slice",
			[]string{
				http + "addressType: IPv4\nendpoints: [{addresses: [10.0.0.1], zone: a, conditions: {ready: false}}]",
				http + "addressType: IPv4\n" +
					"endpoints: [{addresses: [10.0.0.1], zone: b, conditions: {ready: true, terminating: true}}]",
				http + "addressType: IPv4\nendpoints: [{addresses: [10.0.0.1], zone: c, conditions: {ready: true}}]",
				http + "addressType: IPv4\nendpoints: [{addresses: [10.0.0.1], zone: d, conditions: {ready: true}}]",
			},
			"c:1(t??)", nil,
		},
		{
			"other ports of the same address stay an endpoint of their own",
			[]string{
				http + "addressType: IPv4\nendpoints: [{addresses: [10.0.0.1]}]",
				"{addressType: IPv4, ports: [{name: '', port: 80}, {name: admin, port: 82}], endpoints: [{addresses: [10.0.0.1]}]}",
			},
			"-:1? 10.0.0.1=-:1?{ports=admin:82}", nil,
		},
		{
			"another number of the same port is another endpoint",
			[]string{
				http + "addressType: IPv4\nendpoints: [{addresses: [10.0.0.1], zone: a}]",
				"{addressType: IPv4, ports: [{name: '', port: 81}], endpoints: [{addresses: [10.0.0.1], zone: b}]}",
			},
			"a:1? 10.0.0.1=b:1?{ports=81}", nil,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var list []*discoveryv1.EndpointSlice
			for i, y := range c.slices {
				s := object[discoveryv1.EndpointSlice](t, y)
				s.Name = "s" + string(rune('0'+i))
				list = append([]*discoveryv1.EndpointSlice{s}, list...) // any order
			}
			endpoints, problems := convert.Slices(list, zones)
			equal(t, "endpoints", c.want, text(endpoints))
			equal(t, "problems", c.problems, lines(problems))
		})
	}
}
