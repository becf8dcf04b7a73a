//go:build e2e

package kube_test

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/convert"
	"github.com/weir-lb/weir/test/kube"
)

// connections is how many connections find every one of nine endpoints: they leave one out once in five million runs.
const connections = 150

// chosen is what weir says that a client on a node uses of a Service, from the hints that the API server holds now.
func chosen(t *testing.T, a *kube.App, address netip.AddrPort, node string) []netip.AddrPort {
	t.Helper()
	list, err := a.Cluster.Client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	objects := convert.Objects{Services: []*corev1.Service{a.Service()}, Slices: a.Slices()}
	client := plan.Client{Node: node}
	for i := range list.Items {
		objects.Nodes = append(objects.Nodes, &list.Items[i])
	}
	nodes, services, problems := convert.Cluster(objects, convert.Options{ManageAll: true})
	if len(services) != 1 {
		t.Fatalf("converted %d Services of 1: %v", len(services), problems)
	}
	for _, n := range nodes {
		if n.Name == node {
			client.Zone = n.Zone
		}
	}
	svc := services[0]
	endpoints := slices.DeleteFunc(slices.Clone(svc.Endpoints), func(e topology.Endpoint) bool {
		return e.Family() != topology.FamilyOf(address.Addr())
	})
	choice := plan.Choose(svc, endpoints, svc.Ports[0], client)
	inside, _ := choice.Inside(svc)
	var found []netip.AddrPort
	for _, i := range inside {
		found = append(found, netip.AddrPortFrom(endpoints[i].Addr, kube.PodPort))
	}
	slices.SortFunc(found, netip.AddrPort.Compare)
	return found
}

// agrees waits until kube-proxy has programmed what weir chooses, for each family, and checks that connections reach just
// that, and that both stay as they are meanwhile. It returns the number of endpoints in each family.
func agrees(t *testing.T, a *kube.App, p *kube.Proxy) []int {
	t.Helper()
	var counts []int
	for _, address := range a.Addresses() {
		var want []netip.AddrPort
		agree := func() error {
			want = chosen(t, a, address, p.Node)
			got, err := p.Programmed(address)
			if err == nil && !slices.Equal(want, got) {
				err = fmt.Errorf("weir chooses %v, kube-proxy has programmed %v", want, got)
			}
			return err
		}
		a.Cluster.Until(fmt.Sprintf("kube-proxy on %s has programmed what weir chooses for %s at %s", p.Node, a.Name, address), agree)
		before := want
		defer func() {
			if err := agree(); err != nil || !slices.Equal(before, want) {
				t.Errorf("%s on %s: %v were chosen for %s, and %v (%v) after connections", a.Name, p.Node, before, address, want, err)
			}
		}()
		counts = append(counts, len(want))
		reached, err := p.Connect(address, connections)
		if len(want) == 0 {
			if err == nil {
				t.Errorf("%s on %s: connections to nothing reach %v", a.Name, p.Node, reached)
			}
			continue
		}
		if err != nil || !slices.Equal(want, reached) {
			t.Errorf("%s on %s: connections to %s reach %v, %v; want %v", a.Name, p.Node, address, reached, err, want)
		}
	}
	return counts
}

// settledHints waits until the pods are listed and as many endpoints of both families together carry hints.
func settledHints(t *testing.T, a *kube.App, hinted int) {
	t.Helper()
	a.AwaitSlices()
	a.Cluster.Until(fmt.Sprintf("%d endpoints of %s are hinted", hinted, a.Name), func() error {
		got := 0
		for _, e := range a.Endpoints() {
			if e.Hinted() {
				got++
			}
		}
		if got != hinted {
			return fmt.Errorf("%d are", got)
		}
		return nil
	})
}

func kubeProxyProgramsWhatWeirChooses(s subtest) {
	t, c := s.T, s.c
	var proxies []*kube.Proxy
	for _, node := range []string{"zone-a-0", "zone-b-0", "zone-c-1"} {
		proxies = append(proxies, c.Proxy(node))
	}
	annotated := map[string]string{corev1.AnnotationTopologyMode: "Auto"}
	even, lopsided := map[string]int{"zone-a": 3, "zone-b": 3, "zone-c": 3}, map[string]int{"zone-a": 5, "zone-b": 1}
	cases := []struct {
		name, distribution string
		annotations        map[string]string
		pods               map[string]int
		hinted             int // endpoints of one family
		want               [3]int
	}{
		{"auto", "", annotated, even, 9, [3]int{3, 3, 3}},
		// Two of zone-a and zone-b's only one stay, and two are lent to zone-c; which ones is up to a map's order.
		{"auto-lopsided", "", annotated, lopsided, 6, [3]int{2, 2, 2}},
		{"auto-infeasible", "", annotated, map[string]int{"zone-a": 2, "zone-b": 2}, 0, [3]int{4, 4, 4}},
		{"zone", corev1.ServiceTrafficDistributionPreferSameZone, nil, lopsided, 6, [3]int{5, 1, 6}},
		{"close", corev1.ServiceTrafficDistributionPreferClose, nil, even, 9, [3]int{3, 3, 3}},
		// Pods alternate between the two nodes of a zone.
		{"node", corev1.ServiceTrafficDistributionPreferSameNode, nil, map[string]int{"zone-a": 4, "zone-b": 2}, 6, [3]int{2, 1, 6}},
		{"none", "", nil, even, 0, [3]int{9, 9, 9}},
		{"empty", corev1.ServiceTrafficDistributionPreferSameZone, nil, nil, 0, [3]int{0, 0, 0}},
	}
	for _, k := range cases {
		t.Run(k.name, func(t *testing.T) {
			app := c.For(t).Deploy(kube.AppOptions{
				Namespace: "built-in", Name: k.name, Distribution: k.distribution, Annotations: k.annotations, Pods: k.pods,
				Families: []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol},
			})
			settledHints(t, app, 2*k.hinted)
			for i, p := range proxies {
				if got := agrees(t, app, p); !slices.Equal(got, []int{k.want[i], k.want[i]}) {
					t.Errorf("a client on %s has %v endpoints of the families, want %d of each", p.Node, got, k.want[i])
				}
			}
		})
	}
}

func kubeProxyFollowsReadinessAsWeirDoes(s subtest) {
	t, c := s.T, s.c
	p := c.Proxy("zone-a-0")
	app := c.Deploy(kube.AppOptions{
		Namespace: "readiness", Name: "web", Distribution: corev1.ServiceTrafficDistributionPreferSameZone,
		Pods: map[string]int{"zone-a": 2, "zone-b": 2},
	})
	step := func(what string, want int) {
		t.Helper()
		app.AwaitSlices()
		if got := agrees(t, app, p); !slices.Equal(got, []int{want}) {
			t.Errorf("%s: a client in zone-a has %v endpoints, want %d", what, got, want)
		}
	}
	step("all ready", 2)
	inA := app.Pods("zone-a")
	app.SetReady(inA[0], corev1.ConditionFalse)
	step("one of two in the zone not ready", 1)
	app.SetReady(inA[1], corev1.ConditionFalse)
	step("none in the zone ready", 2)
	app.Scale("zone-b", 0)
	step("nothing ready anywhere", 0)
	app.SetReady(inA[1], corev1.ConditionTrue)
	step("one ready again", 1)
}

func nodesAddressesCanBeUsedAtOnce(s subtest) {
	t, c := s.T, s.c
	node := c.Bare("zone-a-0")
	for _, service := range []string{"10.96.0.1:80", "[fd00:10:96::1]:80"} {
		var conn net.Conn
		err := node.Do(func() (err error) {
			conn, err = net.Dial("udp", service) // chooses the source address and sends nothing
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		from := netip.MustParseAddrPort(conn.LocalAddr().String()).Addr()
		if _ = conn.Close(); !slices.Contains(node.Addresses(), from) {
			t.Errorf("a connection to %s comes from %s, want one of the node's addresses %s", service, from, node.Addresses())
		}
	}
}

func kubeProxyUsesForeignHints(s subtest) {
	t, c := s.T, s.c
	p := c.Proxy("zone-a-0")
	app := c.Deploy(kube.AppOptions{
		Namespace: "foreign", Name: "web",
		// Without a selector the built-in controller leaves the Service's slices to others.
		Change: func(s *corev1.Service) { s.Spec.Selector = nil },
	})
	yes, tcp, port, name := true, corev1.ProtocolTCP, int32(kube.PodPort), "http"
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "web-elsewhere", Labels: map[string]string{discoveryv1.LabelServiceName: "web", discoveryv1.LabelManagedBy: "test"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &name, Port: &port, Protocol: &tcp}},
	}
	// Each endpoint is hinted to the other zone.
	for i, zones := range [][2]string{{"zone-a", "zone-b"}, {"zone-b", "zone-a"}} {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{fmt.Sprintf("10.244.77.%d", i+1)}, Zone: &zones[0],
			Conditions: discoveryv1.EndpointConditions{Ready: &yes},
			Hints:      &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: zones[1]}}},
		})
	}
	if _, err := c.Client.DiscoveryV1().EndpointSlices("foreign").Create(t.Context(), slice, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := agrees(t, app, p); !slices.Equal(got, []int{1}) {
		t.Errorf("a client in zone-a has %v endpoints, want 1", got)
	}
	if got, err := p.Connect(app.Addresses()[0], 1); err != nil || got[0].Addr() != netip.MustParseAddr("10.244.77.2") {
		t.Errorf("a client in zone-a reaches %v, %v; want zone-b's endpoint, which is hinted to it", got, err)
	}
}

func weirRunsOnANode(s subtest) {
	t, c := s.T, s.c
	p := c.Proxy("zone-a-0")
	weir := p.Weir("weir", "version")
	<-weir.Done()
	if !strings.Contains(weir.Log(), "weir") {
		t.Errorf("weir version printed %q", weir.Log())
	}
	var conn net.Conn
	err := p.Do(func() (err error) {
		conn, err = net.Dial("tcp", strings.TrimPrefix(c.URL(), "https://"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := tls.Client(conn, &tls.Config{InsecureSkipVerify: true}).HandshakeContext(t.Context()); err != nil {
		t.Errorf("the API server does not answer on the node: %v", err)
	}
}
