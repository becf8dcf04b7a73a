package kube

import (
	"maps"
	"net/netip"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	Cluster         *Cluster
	Namespace, Name string

	families []corev1.IPFamily

	mu   sync.Mutex
	pods map[string][]*pod // by zone, oldest first
	made int
}

// Deploy creates the namespace if need be, the Service, and its pods.
func (c *Cluster) Deploy(o AppOptions) *App {
	c.tb.Helper()
	c.Namespace(o.Namespace)
	a := &App{Namespace: o.Namespace, Name: o.Name, Cluster: c, families: o.Families, pods: make(map[string][]*pod)}
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

// Service reads the Service.
func (a *App) Service() *corev1.Service {
	a.Cluster.tb.Helper()
	return a.Cluster.Service(a.Namespace, a.Name)
}

// Addresses gives the cluster IPs of the Service, the first family's first, with the port that it serves.
func (a *App) Addresses() []netip.AddrPort {
	a.Cluster.tb.Helper()
	var found []netip.AddrPort
	for _, text := range a.Service().Spec.ClusterIPs {
		ip, err := netip.ParseAddr(text)
		if err != nil {
			a.Cluster.tb.Fatalf("the Service %s/%s: %v", a.Namespace, a.Name, err)
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

// Change reads the Service, changes it and writes it, again if another writer was first.
func (a *App) Change(change func(*corev1.Service)) {
	a.Cluster.tb.Helper()
	a.Cluster.Until("the Service "+a.Namespace+"/"+a.Name+" is changed", func() error {
		s := a.Service()
		change(s)
		_, err := a.Cluster.Client.CoreV1().Services(a.Namespace).Update(a.Cluster.tb.Context(), s, metav1.UpdateOptions{})
		if err != nil && !errors.IsConflict(err) {
			a.Cluster.tb.Fatalf("change the Service %s/%s: %v", a.Namespace, a.Name, err)
		}
		return err
	})
}
