package plan_test

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/endpointslice/topologycache"
	"k8s.io/endpointslice/trafficdist"
	"k8s.io/klog/v2"

	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// answer is what two deciders can be compared by.
type answer struct {
	hinted bool
	kind   string         // of the reason, in upstream's words
	counts map[string]int // ready endpoints by the zone they are hinted to
}

func (a answer) String() string {
	if !a.hinted {
		return "none: " + a.kind
	}
	var parts []string
	for zone, n := range a.counts {
		parts = append(parts, fmt.Sprintf("%s %d", zone, n))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

func (a answer) same(b answer) bool { return a.String() == b.String() }

func computeVector(v vector) plan.Plan { return plan.Compute(v.input()) }

// weirAnswer asks weir.
func weirAnswer(v vector) answer {
	p := computeVector(v)
	a := answer{hinted: p.Hinted, counts: make(map[string]int)}
	for i := range p.Endpoints {
		if p.Endpoints[i].IsReady() {
			for _, z := range p.Endpoints[i].Hints.Zones {
				a.counts[string(z)]++
			}
		}
	}
	for _, r := range p.Reasons {
		if kind, ok := kindOf(r.Code); ok {
			a.kind = kind
			break
		}
	}
	return a
}

// kindOf gives upstream's words for a code; a code that is no reason for or against hints has none.
func kindOf(code reason.Code) (string, bool) {
	kinds := map[reason.Code]string{
		reason.PolicyIsLocal:        "policy Local",
		reason.NoEndpoints:          topologycache.InsufficientNumberOfEndpoints,
		reason.NodesWithoutZone:     topologycache.InsufficientNodeInfo,
		reason.NodesWithoutCPU:      topologycache.InsufficientNodeInfo,
		reason.TooFewZones:          topologycache.NodesReadyInOneZoneOnly,
		reason.TooFewEndpoints:      topologycache.InsufficientNumberOfEndpoints,
		reason.OverloadTooHigh:      topologycache.MinAllocationExceedsOverloadThreshold,
		reason.EndpointsWithoutZone: topologycache.NoZoneSpecified,
		reason.HintsByShare:         topologycache.TopologyAwareHintsEnabled,
	}
	kind, ok := kinds[code]
	return kind, ok
}

// upstreamAnswer asks the controller's own code, once. Where its answer depends on the order of a map so does this.
func upstreamAnswer(v vector) answer {
	fresh, unchanged := upstreamSlices(v)
	if v.Mode != string(topology.ModeAuto) {
		fresh, updated, unchanged := trafficdist.ReconcileHints(&v.Mode, fresh, nil, unchanged)
		return countUpstream(slices.Concat(fresh, updated, unchanged))
	}
	cache := topologycache.NewTopologyCache()
	cache.SetNodes(klog.Logger{}, upstreamNodes(v))
	info := &topologycache.SliceInfo{
		ServiceKey: "default/web", AddressType: discoveryv1.AddressTypeIPv4, ToCreate: fresh, Unchanged: unchanged,
	}
	created, updated, events := cache.AddHints(klog.Logger{}, info)
	a := countUpstream(slices.Concat(created, updated, info.Unchanged))
	for _, e := range events {
		a.kind, _, _ = strings.Cut(e.Message, ", addressType")
		a.kind, _, _ = strings.Cut(a.kind, " (")
	}
	return a
}

func countUpstream(all []*discoveryv1.EndpointSlice) answer {
	a := answer{counts: make(map[string]int)}
	for _, slice := range all {
		for _, e := range slice.Endpoints {
			if e.Hints == nil || e.Conditions.Ready == nil || !*e.Conditions.Ready {
				continue
			}
			a.hinted = true
			for _, z := range e.Hints.ForZones {
				a.counts[z.Name]++
			}
		}
	}
	return a
}

func upstreamNodes(v vector) []*corev1.Node {
	var nodes []*corev1.Node
	for _, n := range v.Nodes {
		labels := map[string]string{}
		if n.Zone != "" {
			labels[corev1.LabelTopologyZone] = n.Zone
		}
		if n.ControlPlane {
			labels["node-role.kubernetes.io/control-plane"] = ""
		}
		status := corev1.ConditionFalse
		if n.Ready {
			status = corev1.ConditionTrue
		}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: labels}}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}
		if n.CPU > 0 {
			node.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(n.CPU, resource.DecimalSI)}
		}
		nodes = append(nodes, node)
	}
	return nodes
}

func upstreamSlices(v vector) (fresh, unchanged []*discoveryv1.EndpointSlice) {
	bySlice := map[int]*discoveryv1.EndpointSlice{}
	var order []int
	for _, e := range v.Endpoints {
		if bySlice[e.Slice] == nil {
			order = append(order, e.Slice)
			bySlice[e.Slice] = &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}
		}
		bySlice[e.Slice].Endpoints = append(bySlice[e.Slice].Endpoints, upstreamEndpoint(e))
	}
	slices.Sort(order)
	for _, n := range order {
		if slices.Contains(v.Unchanged, n) {
			unchanged = append(unchanged, bySlice[n])
			continue
		}
		fresh = append(fresh, bySlice[n])
	}
	return fresh, unchanged
}

func upstreamEndpoint(e vectorEndpoint) discoveryv1.Endpoint {
	u := discoveryv1.Endpoint{
		Addresses: []string{e.IP}, Conditions: discoveryv1.EndpointConditions{Ready: e.Ready}, NodeName: &e.Node,
	}
	if e.Zone != "" {
		u.Zone = &e.Zone
	}
	if len(e.ForZones)+len(e.ForNodes) > 0 {
		u.Hints = &discoveryv1.EndpointHints{}
	}
	for _, z := range e.ForZones {
		u.Hints.ForZones = append(u.Hints.ForZones, discoveryv1.ForZone{Name: z})
	}
	for _, n := range e.ForNodes {
		u.Hints.ForNodes = append(u.Hints.ForNodes, discoveryv1.ForNode{Name: n})
	}
	return u
}
