package convert_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/yaml"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/convert"
)

// object reads a Kubernetes object from YAML.
func object[T any](t *testing.T, text string) *T {
	t.Helper()
	value := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), value); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return value
}

// lines gives the problems as a person reads them.
func lines(problems []convert.Problem) []string {
	var texts []string
	for _, p := range problems {
		texts = append(texts, p.String())
	}
	return texts
}

func equal(t *testing.T, what string, want, got any) {
	t.Helper()
	sameAddr := cmp.Comparer(func(a, b netip.Addr) bool { return a == b })
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), sameAddr); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// text gives endpoints in weir's text form.
func text(endpoints []topology.Endpoint) string {
	s := topology.NewSnapshot(nil, []*topology.Service{{Endpoints: endpoints}}, topology.Costs{})
	return topology.FormatEndpoints(s.Services[0].Endpoints)
}

func TestNode(t *testing.T) {
	const ready = "status: {allocatable: {cpu: 3920m}, conditions: [{type: MemoryPressure, status: 'False'}, {type: Ready, status: 'True'}]}"
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
			"service shop/web port=dns:53/UDP port=http:80+30080@http ip=10.96.0.1,fd00::1 internal=Local external=Local exposed", nil,
		},
		{"a headless one has no address", "{clusterIP: None, clusterIPs: [None], ports: [{port: 80}]}", "service shop/web headless", nil},
		{"an external IP exposes", "{externalIPs: [192.0.2.1], clusterIP: 10.96.0.1, ports: [{port: 80}]}", "service shop/web ip=10.96.0.1 exposed", nil},
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

func TestMode(t *testing.T) {
	const label, mode, old = "weir.dev/distribution", "service.kubernetes.io/topology-mode", "service.kubernetes.io/topology-aware-hints"
	for _, c := range []struct {
		name             string
		label, mode, old string // empty: not there
		field            string
		keepOut          bool // weir does not manage all
		want             topology.Mode
		problem          string // the field that is reported
	}{
		{name: "nothing is chosen", want: topology.ModeBalanced},
		{name: "the label wins", label: "Disabled", mode: "Auto", field: "PreferClose", want: topology.ModeDisabled},
		{
			name: "a bad label does not fall through to others", label: "disabled", mode: "Auto", want: topology.ModeBalanced,
			problem: "metadata.labels[" + label + "]",
		},
		{name: "Auto", mode: "Auto", want: topology.ModeAuto},
		{name: "auto", mode: "auto", want: topology.ModeAuto},
		{name: "AUTO means nothing", mode: "AUTO", want: topology.ModeBalanced, problem: "metadata.annotations[" + mode + "]"},
		{name: "the deprecated annotation", old: "auto", want: topology.ModeAuto},
		{
			name: "the deprecated annotation wins by being present", old: "Disabled", mode: "Auto",
			want: topology.ModeDisabled, problem: "metadata.annotations[" + mode + "]",
		},
		{name: "Auto wins over the field", mode: "Auto", field: "PreferSameNode", want: topology.ModeAuto},
		{name: "another annotation gives way to the field", mode: "Disabled", field: "PreferSameNode", want: topology.ModePreferSameNode},
		{name: "PreferClose", field: "PreferClose", want: topology.ModePreferClose},
		{name: "PreferSameZone", field: "PreferSameZone", want: topology.ModePreferSameZone},
		{name: "a bad field", field: "Auto", want: topology.ModeBalanced, problem: "spec.trafficDistribution"},
		{name: "Disabled is taken at its word", mode: "Disabled", want: topology.ModeDisabled},
		{name: "native choices are not weir's business", keepOut: true, mode: "Auto", field: "PreferClose", want: topology.ModeBalanced},
		{name: "the label always is", keepOut: true, label: "PreferSameZone", want: topology.ModePreferSameZone},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := object[corev1.Service](t, "metadata: {name: web}")
			s.Labels, s.Annotations = map[string]string{}, map[string]string{}
			set := func(m map[string]string, key, value string) {
				if value != "" {
					m[key] = value
				}
			}
			set(s.Labels, label, c.label)
			set(s.Annotations, mode, c.mode)
			set(s.Annotations, old, c.old)
			if c.field != "" {
				s.Spec.TrafficDistribution = &c.field
			}
			svc, problems := convert.Service(s, convert.Options{ManageAll: !c.keepOut})
			equal(t, "mode", c.want, svc.Mode)
			var fields []string
			for _, p := range problems {
				fields = append(fields, p.Field)
			}
			var want []string
			if c.problem != "" {
				want = []string{c.problem}
			}
			equal(t, "fields with problems", want, fields)
		})
	}
}

func TestAnnotationsOfWeir(t *testing.T) {
	for _, c := range []struct{ key, value, want string }{
		{"strategy", "hazl", "strategy=hazl"},
		{"strategy", "magic", ""},
		{"prefer", "cost", "prefer=cost"},
		{"prefer", "Cost", ""},
		{"overload", "shed", "shed"},
		{"overload", "queue", ""},
		{"drain-zone", "a=2026-11-20T12:00:00Z, b=2026-11-20T14:00:00+01:00", "drain=a@2026-11-20T12:00:00Z drain=b@2026-11-20T13:00:00Z"},
		{"drain-zone", "a=noon,b=2026-11-20T12:00:00Z", "drain=b@2026-11-20T12:00:00Z"},
		{"drain-zone", "", ""},
		{"overload-limit", "0.25", "overload-limit=0.25"},
		{"overload-limit", "20%", "overload-limit=0.2"},
		{"overload-limit", "0", ""},
		{"overload-limit", "-1", ""},
		{"overload-limit", "NaN", ""},
		{"overload-limit", "1100%", ""},
		{"demand", "b=0.3, a=0.7", "demand=a:0.7,b:0.3"},
		{"demand", "a=0.7,a=0.3", ""},
		{"demand", "a=0", ""},
		{"demand", "a=-1,b=1", ""},
		{"demand", "a", ""},
		{"demand", "/=1", ""},
	} {
		t.Run(c.key+" "+c.value, func(t *testing.T) {
			s := object[corev1.Service](t, "metadata: {name: web}\nspec: {ports: [{port: 80}]}")
			s.Annotations = map[string]string{"weir.dev/" + c.key: c.value}
			svc, problems := convert.Service(s, convert.Options{Strategies: []string{"Weir", "Hazl"}})
			svc.Mode = ""
			want := "service web"
			if c.want != "" {
				want += " " + c.want
			}
			equal(t, "service", want, topology.NewSnapshot(nil, []*topology.Service{svc}, topology.Costs{}).String())
			if c.want == "" && len(problems) != 1 {
				t.Errorf("want the bad value reported once, got %q", lines(problems))
			}
		})
	}
}

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
   hints: {forZones: [{name: b}, {name: a}, {name: ''}], forNodes: [{name: n1}]}}`},
			"-:1?>a,b,@n1{pod=shop/web-0}", nil,
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
				http + "addressType: IPv4\nendpoints: [{addresses: []}, {addresses: [web]}, {addresses: ['fd00::1']}, {addresses: [10.0.0.1]}]",
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
				http + "addressType: IPv4\nendpoints: [{addresses: [10.0.0.1], zone: b, conditions: {ready: true, terminating: true}}]",
				http + "addressType: IPv4\nendpoints: [{addresses: [10.0.0.1], zone: c, conditions: {ready: true}}]",
				http + "addressType: IPv4\nendpoints: [{addresses: [10.0.0.1], zone: d, conditions: {ready: true}}]",
			},
			"c:1(t??)", nil,
		},
		{
			"other ports of the same address stay an endpoint of their own",
			[]string{
				http + "addressType: IPv4\nendpoints: [{addresses: [10.0.0.1]}]",
				"{addressType: IPv4, ports: [{name: '', port: 81}, {name: admin, port: 82}], endpoints: [{addresses: [10.0.0.1]}]}",
			},
			"-:1? 10.0.0.1=-:1?{ports=admin:82}", nil,
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

func TestPods(t *testing.T) {
	const pod = "metadata: {namespace: shop, name: web-0, labels: {app: web}}\n"
	const container = "spec: {nodeName: n1, containers: [{ports: [{name: http, containerPort: 8080}, {name: dns, containerPort: 53, protocol: UDP}]}]}\n"
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
			"a target that no container has", "{selector: {app: web}, ports: [{port: 80, targetPort: dns}, {port: 81, name: x, targetPort: 82}]}",
			pod + container + "status: {podIP: 10.0.0.1}", "a:1!@n1{pod=shop/web-0,ports=x:82}",
			[]string{`Pod shop/web-0: spec.containers: no container has the port "dns" over TCP that Service web asks for`},
		},
		{
			"a sidecar's port", "{selector: {app: web}, ports: [{port: 80, targetPort: mesh}]}",
			pod + "spec: {containers: [{}], initContainers: [{restartPolicy: Always, ports: [{name: mesh, containerPort: 15001}]}]}\n" +
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
		{"a finished pod", "{selector: {app: web}, ports: [{port: 80}]}", pod + "status: {phase: Succeeded, podIP: 10.0.0.1}", "", nil},
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

func TestClusterTakesSlicesBeforePodsAndReportsStrays(t *testing.T) {
	slice := func(name, service string) *discoveryv1.EndpointSlice {
		return object[discoveryv1.EndpointSlice](t, "metadata: {name: "+name+", labels: {kubernetes.io/service-name: '"+service+"'}}\n"+
			"addressType: IPv4\nports: [{port: 80}]\nendpoints: [{addresses: [10.0.0.1]}]")
	}
	service := func(name string) *corev1.Service {
		return object[corev1.Service](t, "metadata: {name: "+name+"}\nspec: {selector: {app: x}, ports: [{port: 80}]}")
	}
	_, services, problems := convert.Cluster(convert.Objects{
		Services: []*corev1.Service{service("sliced"), service("plain")},
		Slices:   []*discoveryv1.EndpointSlice{slice("s", "sliced"), slice("lost", "gone"), slice("nameless", "")},
		Pods: []*corev1.Pod{object[corev1.Pod](t, "metadata: {name: p, labels: {app: x}}\n"+
			"status: {podIP: 10.0.0.2, conditions: [{type: Ready, status: 'True'}]}")},
	}, convert.Options{})
	equal(t, "snapshot", "service plain mode=Balanced\nendpoints 10.0.0.2=-:1{pod=default/p}\nservice sliced mode=Balanced\nendpoints -:1?",
		topology.NewSnapshot(nil, services, topology.Costs{}).String())
	equal(t, "problems", []string{
		"EndpointSlice default/lost: metadata.labels[kubernetes.io/service-name]: there is no Service default/gone: left out",
		"EndpointSlice default/nameless: metadata.labels: the slice names no Service, its label kubernetes.io/service-name is missing: left out",
	}, lines(problems))
}
