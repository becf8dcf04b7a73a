package kube

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Slices reads the EndpointSlices of the Service, whoever manages them, sorted by name.
func (a *App) Slices() []*discoveryv1.EndpointSlice {
	a.Cluster.tb.Helper()
	list, err := a.Cluster.Client.DiscoveryV1().EndpointSlices(a.Namespace).
		List(a.Cluster.tb.Context(), metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + a.Name})
	if err != nil {
		a.Cluster.tb.Fatalf("list the EndpointSlices of %s/%s: %v", a.Namespace, a.Name, err)
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
	a.Cluster.tb.Helper()
	var found []Endpoint
	for _, s := range a.Slices() {
		for i := range s.Endpoints {
			e, err := endpoint(&s.Endpoints[i])
			if err != nil {
				a.Cluster.tb.Fatalf("EndpointSlice %s/%s: %v", s.Namespace, s.Name, err)
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

// AwaitSlices waits until the slices list just the pods that the app has, ready or not, whatever their hints.
//
// Pods that are not ready count as well: Kubernetes deletes a pod in two steps, also without a grace period, and lists it as
// terminating between them, which clients may use when no other endpoint is ready.
func (a *App) AwaitSlices() {
	a.Cluster.tb.Helper()
	want := a.listed()
	a.Cluster.Until(fmt.Sprintf("the EndpointSlices of %s/%s list its %d addresses", a.Namespace, a.Name, len(want)), func() error {
		found := make(map[netip.Addr]bool)
		for _, e := range a.Endpoints() {
			found[e.Address] = e.Ready
		}
		if !maps.Equal(want, found) {
			return fmt.Errorf("they list (true: ready) %v, not %v", found, want)
		}
		return nil
	})
}

// listed gives the addresses of the pods, of the Service's families, and whether each is ready.
func (a *App) listed() map[netip.Addr]bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	addresses := make(map[netip.Addr]bool)
	for _, list := range a.pods {
		for _, p := range list {
			for _, family := range a.families {
				addresses[podAddress(family, p.number)] = p.ready
			}
		}
	}
	return addresses
}
