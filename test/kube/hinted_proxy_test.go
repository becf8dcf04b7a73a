//go:build e2e

package kube_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/test/kube"
)

// hintedCluster is a cluster with weir's controller and its webhook beside kube-controller-manager, and with a kube-proxy in
// each of three zones.
type hintedCluster struct {
	t       *testing.T
	c       *kube.Cluster
	proxies []*kube.Proxy
	admin   string // the controller's pages

	compared, connected int
}

func newHintedCluster(t *testing.T) *hintedCluster {
	t.Helper()
	c := kube.Start(t, kube.Options{})
	c.Nodes(2, "zone-a", "zone-b", "zone-c")
	h := &hintedCluster{t: t, c: c}
	h.startController()
	for _, node := range []string{"zone-a-0", "zone-b-0", "zone-c-1"} {
		h.proxies = append(h.proxies, c.Proxy(node))
	}
	return h
}

// startController installs weir as docs/guide/install.md says and runs its controller with just the rights of that.
func (h *hintedCluster) startController() {
	h.t.Helper()
	c := h.c
	c.Apply(manifests)
	address := func() string { return fmt.Sprintf("127.0.0.1:%d", c.Port()) }
	webhook, health, admin := address(), address(), address()
	h.admin = "http://" + admin
	controller := c.Weir("controller", "controller", "--kubeconfig="+c.ServiceAccountKubeconfig(namespace, "weir-controller"),
		"--webhook-bind-address="+webhook, "--metrics-bind-address="+address(),
		"--health-probe-bind-address="+health, "--admin-bind-address="+admin)
	c.Until("the controller is ready, and its webhook known", func() error {
		if err := controller.Running(); err != nil {
			h.t.Fatal(err)
		}
		if _, err := c.Fetch("http://"+health+"/readyz", ""); err != nil {
			return err
		}
		configuration, err := c.Client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(h.t.Context(), "weir-hints", metav1.GetOptions{})
		if err == nil && len(configuration.Webhooks[0].ClientConfig.CABundle) == 0 {
			err = errors.New("the webhook has no certificate authority yet")
		}
		return err
	})
	c.Route(namespace, "weir-webhook", 443, webhook)
}

// plannedService is what the controller's page /plans says of a service in one family.
type plannedService struct {
	Service   string
	Family    string
	Hinted    bool
	Endpoints []struct {
		Address            netip.Addr
		Zone, Node         string
		Ready              bool
		ForZones, ForNodes []string
	}
}

// endpoints gives what the plan says in the words of the slices.
func (p *plannedService) endpoints() []kube.Endpoint {
	var found []kube.Endpoint
	for _, e := range p.Endpoints {
		slices.Sort(e.ForZones)
		slices.Sort(e.ForNodes)
		found = append(found, kube.Endpoint{
			Address: e.Address, Zone: e.Zone, Node: e.Node, Ready: e.Ready, ForZones: e.ForZones, ForNodes: e.ForNodes,
		})
	}
	return found
}

// planned reads the controller's plan of an app: the endpoints of both families with the hints that each should carry,
// sorted by address.
func (h *hintedCluster) planned(app *kube.App) ([]kube.Endpoint, error) {
	text, err := h.c.Fetch(h.admin+"/plans", "")
	if err != nil {
		return nil, err
	}
	var all []plannedService
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, err
	}
	var found []kube.Endpoint
	for i := range all {
		if all[i].Service == app.Namespace+"/"+app.Name {
			found = append(found, all[i].endpoints()...)
		}
	}
	slices.SortFunc(found, func(a, b kube.Endpoint) int { return a.Address.Compare(b.Address) })
	return found, nil
}

// written waits until the slices say what the controller has planned for the pods as they are, and gives that.
func (h *hintedCluster) written(app *kube.App) []kube.Endpoint {
	h.t.Helper()
	app.AwaitSlices()
	var want []kube.Endpoint
	h.c.Until("the plan of "+app.Name+" is written", func() error {
		var err error
		if want, err = h.planned(app); err != nil {
			return err
		}
		same := cmp.Comparer(func(a, b netip.Addr) bool { return a == b })
		if diff := cmp.Diff(want, app.Endpoints(), same); diff != "" {
			return fmt.Errorf("planned and written (-want +got)\n%s", diff)
		}
		return nil
	})
	return want
}

// place is where a client is, as the API server has it.
func (h *hintedCluster) place(node string) plan.Client {
	h.t.Helper()
	found, err := h.c.Client.CoreV1().Nodes().Get(h.t.Context(), node, metav1.GetOptions{})
	if err != nil {
		h.t.Fatal(err)
	}
	return plan.Client{Node: node, Zone: topology.Zone(found.Labels[corev1.LabelTopologyZone])}
}

// choose is what a plan gives a client, of the endpoints of an address's family.
func choose(planned []kube.Endpoint, address netip.AddrPort, client plan.Client) []netip.AddrPort {
	service := topology.Port{Name: "http", Protocol: topology.TCP, Port: kube.ServicePort}
	answering := []topology.EndpointPort{{Name: service.Name, Protocol: service.Protocol, Port: kube.PodPort}}
	var endpoints []topology.Endpoint
	for i := range planned {
		e := &planned[i]
		if e.Address.Is4() != address.Addr().Is4() {
			continue
		}
		one := topology.Endpoint{Addr: e.Address, Ports: answering, Conditions: topology.Conditions{Ready: topology.False, Serving: topology.False}}
		if e.Ready {
			one.Conditions = topology.Conditions{Ready: topology.True, Serving: topology.True}
		}
		for _, z := range e.ForZones {
			one.Hints.Zones = append(one.Hints.Zones, topology.Zone(z))
		}
		one.Hints.Nodes = e.ForNodes
		endpoints = append(endpoints, one)
	}
	choice := plan.Choose(&topology.Service{InternalPolicy: topology.PolicyCluster}, endpoints, service, client)
	var found []netip.AddrPort
	for _, i := range choice.Cluster {
		found = append(found, netip.AddrPortFrom(endpoints[i].Addr, kube.PodPort))
	}
	slices.SortFunc(found, netip.AddrPort.Compare)
	return found
}

// naive is what a mode promises a client without any plan; nil for the modes that count.
func naive(mode topology.Mode, planned []kube.Endpoint, address netip.AddrPort, client plan.Client) []netip.AddrPort {
	pick := func(accept func(*kube.Endpoint) bool) []netip.AddrPort {
		var found []netip.AddrPort
		for i := range planned {
			e := &planned[i]
			if e.Ready && e.Address.Is4() == address.Addr().Is4() && accept(e) {
				found = append(found, netip.AddrPortFrom(e.Address, kube.PodPort))
			}
		}
		return found
	}
	ofNode := pick(func(e *kube.Endpoint) bool { return e.Node == client.Node })
	ofZone := pick(func(e *kube.Endpoint) bool { return e.Zone == string(client.Zone) })
	anywhere := pick(func(*kube.Endpoint) bool { return true })
	for _, found := range map[topology.Mode][][]netip.AddrPort{ // best first
		topology.ModePreferSameNode: {ofNode, ofZone, anywhere},
		topology.ModePreferSameZone: {ofZone, anywhere},
		topology.ModeDisabled:       {anywhere},
	}[mode] {
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

// explained is what weir explain says that a node may use, of the families that the addresses have.
func (h *hintedCluster) explained(app *kube.App, node string) []netip.AddrPort {
	h.t.Helper()
	out, err := h.c.RunWeir("explain", app.Namespace+"/"+app.Name, "--node", node, "-o", "json", "--kubeconfig", h.c.AdminKubeconfig())
	if err != nil {
		h.t.Fatal(err)
	}
	var told struct {
		Services []struct { // one for each family
			Node struct {
				Ports []struct{ MayUse []netip.Addr }
			}
		}
	}
	decode(h.t, out, &told)
	var found []netip.AddrPort
	for _, f := range told.Services {
		for _, p := range f.Node.Ports {
			for _, a := range p.MayUse {
				found = append(found, netip.AddrPortFrom(a, kube.PodPort))
			}
		}
	}
	slices.SortFunc(found, netip.AddrPort.Compare)
	return found
}

// check compares what each kube-proxy has programmed with the plan, and with what connections reach.
func (h *hintedCluster) check(app *kube.App, mode topology.Mode, when string) {
	h.t.Helper()
	planned := h.written(app)
	for _, p := range h.proxies {
		client := h.place(p.Node)
		var all []netip.AddrPort
		for _, address := range app.Addresses() {
			want := choose(planned, address, client)
			if promised := naive(mode, planned, address, client); promised != nil && !slices.Equal(promised, want) {
				h.t.Errorf("%s %s: the plan gives %s %v, its mode promises %v", app.Name, when, p.Node, want, promised)
			}
			h.programmed(app, p, address, want)
			h.connect(app, p, address, want)
			all = append(all, want...)
		}
		slices.SortFunc(all, netip.AddrPort.Compare)
		if told := h.explained(app, p.Node); !slices.Equal(all, told) {
			h.t.Errorf("%s %s: weir explain gives %s %v, the controller's plan %v", app.Name, when, p.Node, told, all)
		}
	}
}

// programmed waits until kube-proxy has programmed just these endpoints.
func (h *hintedCluster) programmed(app *kube.App, p *kube.Proxy, address netip.AddrPort, want []netip.AddrPort) {
	h.t.Helper()
	h.c.Until(fmt.Sprintf("kube-proxy on %s has programmed the plan for %s at %s", p.Node, app.Name, address), func() error {
		got, err := p.Programmed(address)
		if err == nil && !slices.Equal(want, got) {
			err = fmt.Errorf("the plan gives %v, kube-proxy has programmed %v", want, got)
		}
		return err
	})
	h.compared++
}

// connectionsPerEndpoint leave one of a dozen endpoints out once in two million runs.
const connectionsPerEndpoint = 17

// connect sees that connections reach just these endpoints.
func (h *hintedCluster) connect(app *kube.App, p *kube.Proxy, address netip.AddrPort, want []netip.AddrPort) {
	h.t.Helper()
	count := connectionsPerEndpoint * max(1, len(want))
	reached, err := p.Connect(address, count)
	h.connected += count
	if len(want) == 0 {
		if err == nil {
			h.t.Errorf("%s on %s: connections to nothing reach %v", app.Name, p.Node, reached)
		}
		return
	}
	if err != nil || !slices.Equal(want, reached) {
		h.t.Errorf("%s on %s: connections to %s reach %v, %v; want %v", app.Name, p.Node, address, reached, err, want)
	}
}

// label sets the zone of a node and waits until the controller's plans count its nodes so.
func (h *hintedCluster) label(node, zone string) {
	h.t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, corev1.LabelTopologyZone, zone)
	if _, err := h.c.Client.CoreV1().Nodes().Patch(h.t.Context(), node, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		h.t.Fatal(err)
	}
	list, err := h.c.Client.CoreV1().Nodes().List(h.t.Context(), metav1.ListOptions{})
	if err != nil {
		h.t.Fatal(err)
	}
	want := make(map[string]int)
	for i := range list.Items {
		want[list.Items[i].Labels[corev1.LabelTopologyZone]]++
	}
	h.c.Until(fmt.Sprintf("the plans are made for nodes %v", want), func() error {
		text, err := h.c.Fetch(h.admin+"/plans", "")
		if err != nil {
			return err
		}
		var all []struct {
			Zones []struct {
				Zone  string
				Nodes int
			}
		}
		if err := json.Unmarshal([]byte(text), &all); err != nil {
			return err
		}
		for _, p := range all {
			got := make(map[string]int)
			for _, z := range p.Zones {
				got[z.Zone] = z.Nodes
			}
			if !maps.Equal(want, got) {
				return fmt.Errorf("a plan is for nodes %v", got)
			}
		}
		return nil
	})
}

// modes are those that weir knows.
func modes() []topology.Mode {
	return []topology.Mode{
		topology.ModeAuto, topology.ModeBalanced, topology.ModePreferSameZone, topology.ModePreferSameNode, topology.ModeDisabled,
	}
}

// deploy makes a dual-stack app with pods in the three zones.
func (h *hintedCluster) deploy(mode topology.Mode, shape [3]int) *kube.App {
	h.t.Helper()
	return h.c.Deploy(kube.AppOptions{
		Namespace: "shop", Name: fmt.Sprintf("m%d-%d-%d-%d", slices.Index(modes(), mode), shape[0], shape[1], shape[2]),
		Labels:   map[string]string{api.LabelDistribution: string(mode)},
		Families: []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol},
		Pods:     map[string]int{"zone-a": shape[0], "zone-b": shape[1], "zone-c": shape[2]},
	})
}

func TestKubeProxiesProgramWhatWeirPlans(t *testing.T) {
	t.Parallel()
	h := newHintedCluster(t)
	started := time.Now()
	apps := make(map[topology.Mode]*kube.App)
	for _, mode := range modes() {
		for _, shape := range [][3]int{{5, 1, 1}, {1, 1, 2}, {0, 2, 2}, {1, 1, 1}, {4, 4, 3}} {
			apps[mode] = h.deploy(mode, shape)
			h.check(apps[mode], mode, fmt.Sprint(shape))
		}
	}
	t.Logf("measured: %d modes × 5 shapes on 3 nodes: %d plans compared with kube-proxy's rules, %d connections, %.1f s",
		len(apps), h.compared, h.connected, time.Since(started).Seconds())

	h.compared, h.connected, started = 0, 0, time.Now()
	for _, mode := range modes() {
		app := apps[mode]
		app.Scale("zone-a", 6)
		h.check(app, mode, "scaled up")
		app.Scale("zone-b", 1)
		h.check(app, mode, "scaled down")
		app.SetReady(app.Pods("zone-c")[0], corev1.ConditionFalse)
		h.check(app, mode, "with a pod that is not ready")
	}
	h.label("zone-b-0", "zone-a")
	for _, mode := range modes() {
		h.check(apps[mode], mode, "with a node in another zone")
	}
	t.Logf("measured: after pods came, went and became unready, and a node changed its zone: %d plans compared, %d connections, %.1f s",
		h.compared, h.connected, time.Since(started).Seconds())
}
