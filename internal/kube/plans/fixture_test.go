package plans_test

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/convert"
	"github.com/weir-lb/weir/internal/kube/feed"
)

// cluster makes the states that a feed would, one service in slices at a time.
type cluster struct {
	nodes   []topology.Node
	costs   topology.Costs
	records map[string]*feed.Record
}

// newCluster makes a cluster of one node in each zone with the given CPU: zone-a, zone-b and so on.
func newCluster(cpu ...topology.MilliCPU) *cluster {
	c := &cluster{records: make(map[string]*feed.Record)}
	for z, m := range cpu {
		c.nodes = append(c.nodes, topology.Node{
			Name: fmt.Sprintf("n%d", z), Zone: zoneName(z), CPU: m, Ready: true,
		})
	}
	return c
}

func zoneName(z int) topology.Zone { return topology.Zone("zone-" + string(rune('a'+z))) }

// put sets a service of shop with its slices; an empty mode leaves it unmanaged.
func (c *cluster) put(name string, mode topology.Mode, list ...*discoveryv1.EndpointSlice) {
	object := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	object.Spec.ClusterIP = "10.96.0.1"
	object.Spec.Ports = []corev1.ServicePort{{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP}}
	if mode != topology.ModeUnset {
		object.Labels = map[string]string{api.LabelDistribution: string(mode)}
	}
	c.putObject(object, list...)
}

func (c *cluster) putObject(object *corev1.Service, list ...*discoveryv1.EndpointSlice) {
	r := &feed.Record{
		Name:   topology.ServiceName{Namespace: object.Namespace, Name: object.Name},
		Object: object, Slices: list,
	}
	r.Service, r.Problems = convert.Service(object, convert.Options{})
	r.Asked = convert.AskedBy(object, convert.Options{})
	r.Managed = r.Asked != convert.AskedByNothing
	r.Service.Endpoints, _ = convert.Slices(list, convert.ZonesOf(c.nodes))
	topology.NewSnapshot(nil, []*topology.Service{r.Service}, topology.Costs{}) // sorts
	c.records[object.Name] = r
}

func (c *cluster) state() *feed.State {
	s := new(feed.State)
	var services []*topology.Service
	for _, r := range c.records {
		s.Records = append(s.Records, r)
		services = append(services, r.Service)
	}
	slices.SortFunc(s.Records, func(a, b *feed.Record) int { return a.Name.Compare(b.Name) })
	s.Snapshot = topology.NewSnapshot(slices.Clone(c.nodes), services, c.costs)
	return s
}

// slice makes an EndpointSlice with count[z] ready endpoints in each zone z, without hints. The addresses of different
// numbers differ.
func slice(number int, count ...int) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}
	s.Namespace, s.Name = "shop", fmt.Sprintf("slice-%d", number)
	s.Ports = []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(8080))}}
	for z, n := range count {
		for range n {
			i := len(s.Endpoints)
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
				Addresses:  []string{fmt.Sprintf("10.%d.%d.%d", number, i/250, 1+i%250)},
				Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
				Zone:       new(string(zoneName(z))),
				NodeName:   new(fmt.Sprintf("n%d", z)),
			})
		}
	}
	return s
}

// clock is a clock that a test moves.
type clock struct{ time.Time }

func newClock() *clock { return &clock{time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time { return c.Time }

func (c *clock) pass(d time.Duration) { c.Time = c.Add(d) }

func names(short ...string) []topology.ServiceName {
	var list []topology.ServiceName
	for _, s := range short {
		list = append(list, topology.ServiceName{Namespace: "shop", Name: s})
	}
	return list
}
