package status_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/convert"
	"github.com/weir-lb/weir/internal/kube/events"
	"github.com/weir-lb/weir/internal/kube/feed"
	"github.com/weir-lb/weir/internal/kube/plans"
	"github.com/weir-lb/weir/internal/kube/status"
)

func equal(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// stage is one service of a cluster, the store that plans it and the reporter that tells of it.
type stage struct {
	t        *testing.T
	now      time.Time
	nodes    []topology.Node
	options  convert.Options
	service  *corev1.Service
	slices   []*discoveryv1.EndpointSlice
	store    *plans.Store
	client   *fake.Clientset
	registry *prometheus.Registry
	reporter *status.Reporter
	sent     []string
}

// newStage makes a service shop/web that asks for a mode (empty: it does not) with ready endpoints in zone-a, zone-b and
// so on, one equal node in each of three zones.
func newStage(t *testing.T, mode topology.Mode, ready ...int) *stage {
	t.Helper()
	s := &stage{t: t, now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	for _, z := range []topology.Zone{"zone-a", "zone-b", "zone-c"} {
		s.nodes = append(s.nodes, topology.Node{Name: "node-" + string(z), Zone: z, CPU: 4000, Ready: true})
	}
	s.service = &corev1.Service{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web", UID: "u1", Generation: 3, Annotations: map[string]string{},
		Labels: map[string]string{},
	}}
	s.service.Spec.ClusterIP, s.service.Spec.ClusterIPs = "10.96.0.1", []string{"10.96.0.1"}
	if mode != topology.ModeUnset {
		s.service.Labels[api.LabelDistribution] = string(mode)
	}
	s.slices = []*discoveryv1.EndpointSlice{slice(discoveryv1.AddressTypeIPv4, ready...)}
	s.client = fake.NewClientset(s.service)
	s.restart()
	return s
}

func slice(family discoveryv1.AddressType, ready ...int) *discoveryv1.EndpointSlice {
	made := &discoveryv1.EndpointSlice{AddressType: family}
	made.Namespace, made.Name = "shop", "web-"+strings.ToLower(string(family))
	made.Ports = []discoveryv1.EndpointPort{{Port: new(int32(8080))}}
	for z, n := range ready {
		for range n {
			addr := fmt.Sprintf("10.0.0.%d", len(made.Endpoints)+1)
			if family == discoveryv1.AddressTypeIPv6 {
				addr = fmt.Sprintf("fd00::%x", len(made.Endpoints)+1)
			}
			made.Endpoints = append(made.Endpoints, discoveryv1.Endpoint{
				Addresses:  []string{addr},
				Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
				Zone:       new("zone-" + string(rune('a'+z))), NodeName: new("node-zone-" + string(rune('a'+z))),
			})
		}
	}
	return made
}

// Send keeps an event as text.
func (s *stage) Send(e events.Event) {
	s.t.Helper()
	if r := e.Regarding; r.Kind != "Service" || r.Name != "web" || r.UID != s.service.UID || e.Action == "" || len(e.Action) > 128 {
		s.t.Errorf("event %s regards %v with action %q", e.Reason, r, e.Action)
	}
	s.sent = append(s.sent, e.Type+" "+e.Reason+" "+e.Note)
}

// restart is another process with the same objects: what was said is known from them alone.
func (s *stage) restart() {
	s.t.Helper()
	s.registry = prometheus.NewRegistry()
	s.store = plans.NewStore(func() time.Time { return s.now })
	var err error
	s.reporter, err = status.New(status.Options{
		Services: s.client.CoreV1(), Events: s, Decisions: s.store.All, Registerer: s.registry,
		Now: func() time.Time { return s.now },
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// decide reads the objects anew, as a feed would.
func (s *stage) decide() *plans.Decision {
	s.t.Helper()
	object := s.service.DeepCopy()
	r := &feed.Record{
		Name:   topology.ServiceName{Namespace: "shop", Name: "web"},
		Object: object, Slices: s.slices, Asked: convert.AskedBy(object, s.options),
	}
	r.Service, r.Problems = convert.Service(object, s.options)
	r.Managed = s.options.ManageAll || r.Asked != convert.AskedByNothing
	state := &feed.State{Records: []*feed.Record{r}}
	var services []*topology.Service
	if r.Service != nil {
		r.Service.Endpoints, _ = convert.Slices(s.slices, convert.ZonesOf(s.nodes))
		services = append(services, r.Service)
	}
	state.Snapshot = topology.NewSnapshot(s.nodes, services, topology.Costs{})
	s.store.Update(state, nil)
	d, ok := s.store.Lookup(r.Name)
	if !ok {
		s.t.Fatal("no decision")
	}
	return d
}

// report decides, reports and reads the service back, as watching it would. It gives the events that were sent.
func (s *stage) report(o status.Outcome) []string {
	s.t.Helper()
	if err := s.reporter.Report(context.Background(), s.decide(), o); err != nil {
		s.t.Fatal(err)
	}
	s.watch()
	sent := s.sent
	s.sent = nil
	return sent
}

func (s *stage) watch() {
	s.t.Helper()
	stored, err := s.client.CoreV1().Services("shop").Get(context.Background(), "web", metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	s.service.Status = stored.Status
	s.service.ResourceVersion = fmt.Sprint(s.applies())
}

// applies counts the writes of conditions.
func (s *stage) applies() int {
	n := 0
	for _, a := range s.client.Actions() {
		if a.Matches("patch", "services") && a.GetSubresource() == "status" {
			n++
		}
	}
	return n
}

// refuse has the API server refuse writes of conditions until relent is called.
func (s *stage) refuse(err error) (relent func()) {
	chain := s.client.ReactionChain
	s.client.PrependReactor("patch", "services", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, err
	})
	return func() { s.client.ReactionChain = chain }
}

// conditions gives the conditions of the service in a line each.
func (s *stage) conditions() []string {
	var lines []string
	for _, c := range s.service.Status.Conditions {
		lines = append(lines, fmt.Sprintf("%s=%s %s: %s", strings.TrimPrefix(c.Type, "weir.dev/TrafficDistribution"), c.Status, c.Reason, c.Message))
	}
	return lines
}

// short is conditions without messages.
func (s *stage) short() []string {
	var lines []string
	for _, line := range s.conditions() {
		head, _, _ := strings.Cut(line, ":")
		lines = append(lines, head)
	}
	return lines
}
