package kube

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// region is the region of every node.
const region = "eu"

// nodes remembers which nodes are in which zone, so that pods get one.
type nodes struct {
	mu     sync.Mutex
	byZone map[string][]string
	next   map[string]int // the index of the next node in each zone
	count  uint32
}

// Nodes adds ready nodes with 4 CPUs to each of these zones, count to each, and gives their names, zone by zone. Node i of
// a zone is called ZONE-i, counted on from those the zone has.
func (c *Cluster) Nodes(count int, zones ...string) []string {
	c.tb.Helper()
	var names []string
	for _, zone := range zones {
		for range count {
			names = append(names, c.Node(zone, "4"))
		}
	}
	return names
}

// Node adds a ready node with so much CPU to a zone and gives its name.
func (c *Cluster) Node(zone, cpu string) string {
	c.tb.Helper()
	name, number := c.nodes.add(zone)
	if _, err := c.Client.CoreV1().Nodes().Create(c.tb.Context(), NewNode(name, zone, cpu, number), metav1.CreateOptions{}); err != nil {
		c.tb.Fatalf("create node %s: %v", name, err)
	}
	return name
}

// NewNode is a ready node, as its kubelet would register it. The zone may be empty; its addresses follow from number.
func NewNode(name, zone, cpu string, number uint32) *corev1.Node {
	labels := map[string]string{
		corev1.LabelHostname: name, corev1.LabelTopologyRegion: region,
		corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
	}
	if zone != "" {
		labels[corev1.LabelTopologyZone] = zone
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Status:     nodeStatus(number, cpu),
	}
}

// nodeAddresses are those of the node with this number, outside the ranges of pods and services.
func nodeAddresses(number uint32) (ipv4, ipv6 netip.Addr) {
	return numbered(nodeRange4, number), numbered(nodeRange6, number)
}

func nodeStatus(number uint32, cpu string) corev1.NodeStatus {
	ipv4, ipv6 := nodeAddresses(number)
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("16Gi"),
		corev1.ResourcePods: resource.MustParse("110"),
	}
	return corev1.NodeStatus{
		Capacity: room, Allocatable: room,
		Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: ipv4.String()}, {Type: corev1.NodeInternalIP, Address: ipv6.String()}},
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Test"}},
	}
}

// add gives the next node of a zone and its number among all, which counts from 1.
func (n *nodes) add(zone string) (name string, number uint32) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.byZone == nil {
		n.byZone, n.next = make(map[string][]string), make(map[string]int)
	}
	n.count++
	name = fmt.Sprintf("%s-%d", zone, len(n.byZone[zone]))
	if zone == "" {
		name = fmt.Sprintf("nowhere-%d", len(n.byZone[zone]))
	}
	n.byZone[zone] = append(n.byZone[zone], name)
	return name, n.count
}

// pick returns the nodes of a zone one after the other.
func (n *nodes) pick(zone string) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	list := n.byZone[zone]
	if len(list) == 0 {
		return "", fmt.Errorf("there is no node in zone %q", zone)
	}
	n.next[zone]++
	return list[(n.next[zone]-1)%len(list)], nil
}

// NodeReady sets whether a node is ready.
func (c *Cluster) NodeReady(name string, ready corev1.ConditionStatus) {
	c.tb.Helper()
	patch, err := json.Marshal(map[string]any{"status": corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, Reason: "Test"}},
	}})
	if err != nil {
		c.tb.Fatal(err)
	}
	if _, err := c.Client.CoreV1().Nodes().Patch(c.tb.Context(), name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		c.tb.Fatalf("set whether node %s is ready: %v", name, err)
	}
}

// addressesOf reads the addresses of a node.
func (c *Cluster) addressesOf(name string) ([]netip.Addr, error) {
	node, err := c.Client.CoreV1().Nodes().Get(c.tb.Context(), name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	var found []netip.Addr
	for _, a := range node.Status.Addresses {
		address, err := netip.ParseAddr(a.Address)
		if err != nil {
			return nil, fmt.Errorf("node %s: %w", name, err)
		}
		found = append(found, address)
	}
	return found, nil
}
