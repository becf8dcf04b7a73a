package kube

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Ports of every app.
const (
	ServicePort = 80   // of the Service, called http
	PodPort     = 8080 // of its pods
)

// AppOptions says what an app is like; Namespace and Name are needed.
type AppOptions struct {
	Namespace, Name     string
	Labels, Annotations map[string]string // of the Service
	Distribution        string            // spec.trafficDistribution; empty: not set
	Families            []corev1.IPFamily // nil: IPv4 only
	Pods                map[string]int    // how many ready pods in each zone
	// Change has the last word about the Service before it is created. Nil: nothing to change.
	Change func(*corev1.Service)
}

// An App is a Service and the pods behind it, whose EndpointSlices kube-controller-manager writes.
//
// Pods are called NAME-NUMBER, counted in the order of their creation.
type App struct {
	Namespace, Name string

	cluster  *Cluster
	families []corev1.IPFamily

	mu   sync.Mutex
	pods map[string][]*pod // by zone, oldest first
	made int
}

type pod struct {
	name   string
	number uint32
	ready  bool
}

// Deploy creates the namespace if need be, the Service, and its pods.
func (c *Cluster) Deploy(o AppOptions) *App {
	c.tb.Helper()
	c.Namespace(o.Namespace)
	a := &App{Namespace: o.Namespace, Name: o.Name, cluster: c, families: o.Families, pods: make(map[string][]*pod)}
	if a.families == nil {
		a.families = []corev1.IPFamily{corev1.IPv4Protocol}
	}
	if _, err := c.Client.CoreV1().Services(o.Namespace).Create(c.tb.Context(), a.service(o), metav1.CreateOptions{}); err != nil {
		c.tb.Fatalf("create the Service %s/%s: %v", o.Namespace, o.Name, err)
	}
	for _, zone := range slices.Sorted(maps.Keys(o.Pods)) {
		a.Scale(zone, o.Pods[zone])
	}
	return a
}

// Namespace makes sure that a namespace exists.
func (c *Cluster) Namespace(name string) {
	c.tb.Helper()
	_, err := c.Client.CoreV1().Namespaces().Create(c.tb.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil && !errors.IsAlreadyExists(err) {
		c.tb.Fatalf("create namespace %s: %v", name, err)
	}
}

func (a *App) service(o AppOptions) *corev1.Service {
	policy := corev1.IPFamilyPolicySingleStack
	if len(a.families) > 1 {
		policy = corev1.IPFamilyPolicyRequireDualStack
	}
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: o.Name, Namespace: o.Namespace, Labels: o.Labels, Annotations: o.Annotations},
		Spec: corev1.ServiceSpec{
			Selector:   a.labels(),
			IPFamilies: a.families, IPFamilyPolicy: &policy,
			Ports: []corev1.ServicePort{{Name: "http", Port: ServicePort, TargetPort: intstr.FromInt32(PodPort)}},
		},
	}
	if o.Distribution != "" {
		s.Spec.TrafficDistribution = &o.Distribution
	}
	if o.Change != nil {
		o.Change(s)
	}
	return s
}

func (a *App) labels() map[string]string { return map[string]string{"app": a.Name} }

// Scale adds ready pods to a zone or removes its oldest ones until it has count.
func (a *App) Scale(zone string, count int) {
	a.cluster.tb.Helper()
	for a.Count(zone) > count {
		if err := a.remove(a.cluster.tb.Context(), zone); err != nil {
			a.cluster.tb.Fatal(err)
		}
	}
	for a.Count(zone) < count {
		if err := a.add(a.cluster.tb.Context(), zone); err != nil {
			a.cluster.tb.Fatal(err)
		}
	}
}

// Count is how many pods a zone has.
func (a *App) Count(zone string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.pods[zone])
}

// Pods lists the names of a zone's pods, oldest first.
func (a *App) Pods(zone string) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var names []string
	for _, p := range a.pods[zone] {
		names = append(names, p.name)
	}
	return names
}

// add creates a pod on a node of the zone and says that it runs and is ready.
func (a *App) add(ctx context.Context, zone string) error {
	c := a.cluster
	node, err := c.nodes.pick(zone)
	if err != nil {
		return err
	}
	a.mu.Lock()
	name := fmt.Sprintf("%s-%d", a.Name, a.made)
	a.made++
	a.mu.Unlock()
	client := c.Client.CoreV1().Pods(a.Namespace)
	created, err := client.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: a.labels()},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{
			Name: "main", Image: "test.invalid/none", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: PodPort}},
		}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create pod %s/%s: %w", a.Namespace, name, err)
	}
	number := c.podNumber.Add(1)
	created.Status = podStatus(number)
	if _, err := client.UpdateStatus(ctx, created, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("set the status of pod %s/%s: %w", a.Namespace, name, err)
	}
	a.mu.Lock()
	a.pods[zone] = append(a.pods[zone], &pod{name, number, true})
	a.mu.Unlock()
	return nil
}

// podStatus is that of the running and ready pod with this number, which no other pod of the cluster has or had.
func podStatus(number uint32) corev1.PodStatus {
	ipv4, ipv6 := podAddress(corev1.IPv4Protocol, number).String(), podAddress(corev1.IPv6Protocol, number).String()
	return corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: ipv4, PodIPs: []corev1.PodIP{{IP: ipv4}, {IP: ipv6}},
		Conditions: podReady(corev1.ConditionTrue),
	}
}

func podAddress(family corev1.IPFamily, number uint32) netip.Addr {
	if family == corev1.IPv6Protocol {
		return numbered(podRange6, number)
	}
	return numbered(podRange4, number)
}

// numbered is the address with this number in a range.
func numbered(prefix string, number uint32) netip.Addr {
	bytes := netip.MustParsePrefix(prefix).Addr().AsSlice()
	tail := bytes[len(bytes)-4:]
	binary.BigEndian.PutUint32(tail, binary.BigEndian.Uint32(tail)+number)
	address, _ := netip.AddrFromSlice(bytes) // of the same length
	return address
}

func podReady(ready corev1.ConditionStatus) []corev1.PodCondition {
	return []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}, {Type: corev1.ContainersReady, Status: ready}}
}

// remove deletes the zone's oldest pod at once, as there is no kubelet to let it end.
func (a *App) remove(ctx context.Context, zone string) error {
	a.mu.Lock()
	if len(a.pods[zone]) == 0 {
		a.mu.Unlock()
		return nil
	}
	name := a.pods[zone][0].name
	a.pods[zone] = a.pods[zone][1:]
	a.mu.Unlock()
	if err := a.cluster.Client.CoreV1().Pods(a.Namespace).Delete(ctx, name, *metav1.NewDeleteOptions(0)); err != nil {
		return fmt.Errorf("delete pod %s/%s: %w", a.Namespace, name, err)
	}
	return nil
}

// SetReady says of a pod whether it is ready.
func (a *App) SetReady(name string, ready corev1.ConditionStatus) {
	a.cluster.tb.Helper()
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":%q},{"type":"ContainersReady","status":%[1]q}]}}`, ready)
	_, err := a.cluster.Client.CoreV1().Pods(a.Namespace).
		Patch(a.cluster.tb.Context(), name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	if err != nil {
		a.cluster.tb.Fatalf("set whether pod %s/%s is ready: %v", a.Namespace, name, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, list := range a.pods {
		for _, p := range list {
			if p.name == name {
				p.ready = ready == corev1.ConditionTrue
			}
		}
	}
}

// Service reads the Service.
func (a *App) Service() *corev1.Service {
	a.cluster.tb.Helper()
	return a.cluster.Service(a.Namespace, a.Name)
}

// Addresses gives the cluster IPs of the Service, the first family's first, with the port that it serves.
func (a *App) Addresses() []netip.AddrPort {
	a.cluster.tb.Helper()
	var found []netip.AddrPort
	for _, text := range a.Service().Spec.ClusterIPs {
		ip, err := netip.ParseAddr(text)
		if err != nil {
			a.cluster.tb.Fatalf("the Service %s/%s: %v", a.Namespace, a.Name, err)
		}
		found = append(found, netip.AddrPortFrom(ip, ServicePort))
	}
	return found
}

// Service reads a Service.
func (c *Cluster) Service(namespace, name string) *corev1.Service {
	c.tb.Helper()
	s, err := c.Client.CoreV1().Services(namespace).Get(c.tb.Context(), name, metav1.GetOptions{})
	if err != nil {
		c.tb.Fatalf("read the Service %s/%s: %v", namespace, name, err)
	}
	return s
}

// Change reads the Service, changes it and writes it, again if somebody else wrote meanwhile.
func (a *App) Change(change func(*corev1.Service)) {
	a.cluster.tb.Helper()
	a.cluster.Until("the Service "+a.Namespace+"/"+a.Name+" is changed", func() error {
		s := a.Service()
		change(s)
		_, err := a.cluster.Client.CoreV1().Services(a.Namespace).Update(a.cluster.tb.Context(), s, metav1.UpdateOptions{})
		if err != nil && !errors.IsConflict(err) {
			a.cluster.tb.Fatalf("change the Service %s/%s: %v", a.Namespace, a.Name, err)
		}
		return err
	})
}

// Slices reads the EndpointSlices of the Service, whoever manages them, sorted by name.
func (a *App) Slices() []*discoveryv1.EndpointSlice {
	a.cluster.tb.Helper()
	list, err := a.cluster.Client.DiscoveryV1().EndpointSlices(a.Namespace).
		List(a.cluster.tb.Context(), metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + a.Name})
	if err != nil {
		a.cluster.tb.Fatalf("list the EndpointSlices of %s/%s: %v", a.Namespace, a.Name, err)
	}
	var found []*discoveryv1.EndpointSlice
	for i := range list.Items {
		found = append(found, &list.Items[i])
	}
	slices.SortFunc(found, func(x, y *discoveryv1.EndpointSlice) int { return cmp.Compare(x.Name, y.Name) })
	return found
}

// An Endpoint is what the slices of an app say of one address.
type Endpoint struct {
	Address  netip.Addr
	Node     string
	Zone     string
	Ready    bool     // said so; a missing condition is not ready
	ForZones []string // hints, sorted
	ForNodes []string
}

// Hinted tells whether the endpoint carries a hint.
func (e *Endpoint) Hinted() bool { return len(e.ForZones)+len(e.ForNodes) > 0 }

// String is one line: the address, where it is, and what its hints say.
func (e *Endpoint) String() string {
	text := fmt.Sprintf("%s on %s in %s", e.Address, e.Node, e.Zone)
	if !e.Ready {
		text += ", not ready"
	}
	if len(e.ForZones) > 0 {
		text += ", for zones " + strings.Join(e.ForZones, " ")
	}
	if len(e.ForNodes) > 0 {
		text += ", for nodes " + strings.Join(e.ForNodes, " ")
	}
	return text
}

// Endpoints reads what the slices say, both families together, sorted by address.
func (a *App) Endpoints() []Endpoint {
	a.cluster.tb.Helper()
	var found []Endpoint
	for _, s := range a.Slices() {
		for i := range s.Endpoints {
			e, err := endpoint(&s.Endpoints[i])
			if err != nil {
				a.cluster.tb.Fatalf("EndpointSlice %s/%s: %v", s.Namespace, s.Name, err)
			}
			found = append(found, e)
		}
	}
	slices.SortFunc(found, func(x, y Endpoint) int { return x.Address.Compare(y.Address) })
	return found
}

func endpoint(from *discoveryv1.Endpoint) (Endpoint, error) {
	address, err := netip.ParseAddr(from.Addresses[0])
	if err != nil {
		return Endpoint{}, err
	}
	e := Endpoint{Address: address, Ready: from.Conditions.Ready != nil && *from.Conditions.Ready}
	if from.NodeName != nil {
		e.Node = *from.NodeName
	}
	if from.Zone != nil {
		e.Zone = *from.Zone
	}
	if from.Hints != nil {
		for _, h := range from.Hints.ForZones {
			e.ForZones = append(e.ForZones, h.Name)
		}
		for _, h := range from.Hints.ForNodes {
			e.ForNodes = append(e.ForNodes, h.Name)
		}
	}
	slices.Sort(e.ForZones)
	slices.Sort(e.ForNodes)
	return e, nil
}

// Settled waits until the slices list as ready just the pods that are, whatever their hints.
func (a *App) Settled() {
	a.cluster.tb.Helper()
	want := a.ready()
	a.cluster.Until(fmt.Sprintf("the EndpointSlices of %s/%s list its %d ready addresses", a.Namespace, a.Name, len(want)), func() error {
		var found []netip.Addr
		for _, e := range a.Endpoints() {
			if e.Ready {
				found = append(found, e.Address)
			}
		}
		if !slices.Equal(want, found) {
			return fmt.Errorf("they list %v, not %v", found, want)
		}
		return nil
	})
}

// ready lists the addresses of the ready pods, of the Service's families, sorted.
func (a *App) ready() []netip.Addr {
	a.mu.Lock()
	defer a.mu.Unlock()
	var addresses []netip.Addr
	for _, list := range a.pods {
		for _, p := range list {
			for _, family := range a.families {
				if p.ready {
					addresses = append(addresses, podAddress(family, p.number))
				}
			}
		}
	}
	slices.SortFunc(addresses, netip.Addr.Compare)
	return addresses
}
