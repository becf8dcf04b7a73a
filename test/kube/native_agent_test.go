//go:build e2e

package kube_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/weir-lb/weir/test/kube"
)

const (
	randomServices = 200
	randomSeed     = 1136
	adminPort      = 81 // of a second port that some services have
	podAdminPort   = 9090
)

// TestAnAgentAndAKubeProxyReadTheBuiltInHintsAlike compares the two on random services whose hints kube-controller-manager
// wrote, as the services came up and after random changes.
func TestAnAgentAndAKubeProxyReadTheBuiltInHintsAlike(t *testing.T) {
	t.Parallel()
	c := kube.Start(t, kube.Options{})
	c.Nodes(2, "zone-a", "zone-b", "zone-c")
	// Kubernetes hints nothing in mode Auto while a ready node has no zone.
	c.NodeReady(c.Node("", "4"), corev1.ConditionFalse)
	cluster := newRandomCluster(t, c)
	for _, node := range []string{"zone-a-0", "zone-b-0", "zone-c-1", "nowhere-0"} {
		cluster.proxies = append(cluster.proxies, c.Proxy(node))
	}

	for range randomServices {
		cluster.deploy()
	}
	cluster.compare("as they came up")
	for _, app := range cluster.apps {
		cluster.change(app)
	}
	cluster.compare("after changes")
	cluster.wantReasons(
		"every ready endpoint names its nodes", "every ready endpoint names its zones", "no endpoint carries a hint",
		"hints are ignored while a ready endpoint has none", "do not help a client whose zone is not known",
		"every ready endpoint is used", "no endpoint is ready: those that terminate", "the service has no ready endpoint",
		"ready endpoints live on", "terminate but still serve", "no usable endpoint lives on",
	)
}

// randomCluster is a cluster with random services, and a kube-proxy on some nodes.
type randomCluster struct {
	t          *testing.T
	c          *kube.Cluster
	random     *rand.Rand
	kubeconfig string // of the agent
	proxies    []*kube.Proxy
	apps       []*kube.App
	places     map[netip.AddrPort]string // what is served: cluster IP and port, and the service's name
	reasons    map[string]int            // why endpoints were chosen, and how often
}

func newRandomCluster(t *testing.T, c *kube.Cluster) *randomCluster {
	t.Helper()
	return &randomCluster{
		t: t, c: c, random: rand.New(rand.NewPCG(randomSeed, 0)), kubeconfig: agentKubeconfig(c),
		places: make(map[netip.AddrPort]string), reasons: make(map[string]int),
	}
}

// agentKubeconfig installs the agent's role, and gives the file of a client that has just this.
func agentKubeconfig(c *kube.Cluster) string {
	c.Apply(filepath.Join(manifests, "optional", "agent.yaml"))
	return c.ServiceAccountKubeconfig(namespace, "weir-agent")
}

func (r *randomCluster) oneIn(n int) bool { return r.random.IntN(n) == 0 }

// zones are where pods are, the empty one that of the node without.
func (r *randomCluster) zones() []string { return []string{"", "zone-a", "zone-b", "zone-c"} }

// deploy makes a random service with random pods.
func (r *randomCluster) deploy() {
	r.t.Helper()
	o := kube.AppOptions{Namespace: "random", Name: fmt.Sprintf("svc-%d", len(r.apps)), Pods: make(map[string]int)}
	for _, zone := range r.zones() {
		switch {
		case zone != "":
			o.Pods[zone] = []int{0, 0, 1, 1, 1, 2, 3, 4}[r.random.IntN(8)]
		case r.oneIn(12):
			o.Pods[zone] = 1
		}
	}
	r.distribute(&o.Distribution, &o.Annotations)
	families := [][]corev1.IPFamily{
		{corev1.IPv4Protocol},
		{corev1.IPv6Protocol},
		{corev1.IPv4Protocol, corev1.IPv6Protocol},
		{corev1.IPv6Protocol, corev1.IPv4Protocol},
	}
	o.Families = families[r.random.IntN(len(families))]
	isLocal, isOutside, hasTwoPorts := r.oneIn(6), r.oneIn(6), r.oneIn(3)
	o.Change = func(s *corev1.Service) {
		if isLocal {
			s.Spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyLocal)
		}
		if isOutside {
			s.Spec.Type, s.Spec.ExternalTrafficPolicy = corev1.ServiceTypeNodePort, corev1.ServiceExternalTrafficPolicyLocal
		}
		if hasTwoPorts {
			s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "admin", Port: adminPort, TargetPort: intstr.FromInt32(podAdminPort)})
		}
	}
	app := r.c.Deploy(o)
	r.apps = append(r.apps, app)
	for _, address := range app.Addresses() {
		r.places[address] = o.Name
		if hasTwoPorts {
			r.places[netip.AddrPortFrom(address.Addr(), adminPort)] = o.Name + " admin"
		}
	}
	r.disturb(app)
}

// distribute chooses how kube-controller-manager is to hint.
func (r *randomCluster) distribute(field *string, annotations *map[string]string) {
	settings := []string{
		"", "Auto", "Auto", corev1.ServiceTrafficDistributionPreferClose,
		corev1.ServiceTrafficDistributionPreferSameZone, corev1.ServiceTrafficDistributionPreferSameNode,
	}
	switch setting := settings[r.random.IntN(len(settings))]; setting {
	case "Auto":
		*annotations = map[string]string{corev1.AnnotationTopologyMode: setting}
	default:
		*field = setting
	}
}

// disturb makes some pods unready and lets some end; of a few services all.
func (r *randomCluster) disturb(app *kube.App) {
	r.t.Helper()
	unready, ending := r.oneIn(15), r.oneIn(15)
	for _, zone := range r.zones() {
		for _, pod := range app.Pods(zone) {
			if unready || r.oneIn(10) {
				app.SetReady(pod, corev1.ConditionFalse)
			}
			if ending || r.oneIn(15) {
				app.Terminate(pod)
			}
		}
	}
}

// change changes an app at random; most a little.
func (r *randomCluster) change(app *kube.App) {
	r.t.Helper()
	switch r.random.IntN(5) {
	case 0:
		zone := r.zones()[1+r.random.IntN(3)]
		app.Scale(zone, app.Count(zone)+1+r.random.IntN(3))
	case 1:
		for _, zone := range r.zones()[1:] {
			app.Scale(zone, app.Count(zone)/2)
		}
	case 2:
		r.disturb(app)
	case 3:
		var field string
		var annotations map[string]string
		r.distribute(&field, &annotations)
		app.Change(func(s *corev1.Service) {
			s.Annotations, s.Spec.TrafficDistribution = annotations, nil
			if field != "" {
				s.Spec.TrafficDistribution = &field
			}
		})
	}
}

// compare waits until kube-controller-manager has nothing more to write, and until the agent and kube-proxy say the same of
// each port of each service on each node.
func (r *randomCluster) compare(when string) {
	r.t.Helper()
	started := time.Now()
	for _, app := range r.apps {
		app.AwaitSlices()
	}
	var differences []string
	compared := 0
	r.c.UntilWithin(3*kube.Limit, "the agent and kube-proxy agree "+when, func() error {
		before := r.versions()
		differences, compared = nil, 0
		reasons := make(map[string]int)
		for _, p := range r.proxies {
			theirs, err := p.ProgrammedAll()
			if err != nil {
				return err
			}
			for _, nodes := range []string{"own", "all"} {
				ours, err := r.asked(p.Node, nodes)
				if err != nil {
					r.t.Fatal(err)
				}
				compared += len(r.places)
				differences = append(differences, r.differ(p.Node, ours, theirs)...)
				for _, o := range ours {
					reasons[o.Reason]++
				}
			}
		}
		if !maps.Equal(before, r.versions()) {
			return errors.New("the EndpointSlices are still being written")
		}
		if len(differences) > 0 {
			return fmt.Errorf("%d differences, as %s", len(differences), differences[0])
		}
		for why, count := range reasons {
			r.reasons[why] += count
		}
		return nil
	})
	r.t.Logf("measured: %d services, %d ports of cluster IPs, %d nodes, %s: %d answers of the agent compared with kube-proxy's, %d differences, %.1f s",
		len(r.apps), len(r.places), len(r.proxies), when, compared, len(differences), time.Since(started).Seconds())
}

// versions are those of all slices.
func (r *randomCluster) versions() map[string]string {
	r.t.Helper()
	list, err := r.c.Client.DiscoveryV1().EndpointSlices("random").List(r.t.Context(), metav1.ListOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	versions := make(map[string]string, len(list.Items))
	for i := range list.Items {
		versions[list.Items[i].Name] = list.Items[i].ResourceVersion
	}
	return versions
}

// served is what an agent says of a port.
type served struct {
	Chosen []netip.AddrPort
	Reason string
}

// asked asks the agent for its answers on a node, by cluster IP and port.
func (r *randomCluster) asked(node, nodes string) (map[netip.AddrPort]served, error) {
	agent := exec.CommandContext(r.t.Context(), r.c.WeirProgram(), "agent", "--dry-run", "--output=json", "--node="+node,
		"--hints=native", "--serve=all", "--nodes="+nodes, "--kubeconfig="+r.kubeconfig, "--log-level=error")
	var problems strings.Builder
	agent.Stderr = &problems
	out, err := agent.Output()
	if err != nil {
		return nil, fmt.Errorf("weir agent on %s: %w\n%s", node, err, problems.String())
	}
	return answersOf(out)
}

// answersOf reads the page /services, or what --dry-run prints.
func answersOf(text []byte) (map[netip.AddrPort]served, error) {
	var status struct {
		Services []struct {
			Ports []struct {
				served
				Addresses []struct{ Address netip.AddrPort }
			}
		}
	}
	if err := json.Unmarshal(text, &status); err != nil {
		return nil, err
	}
	found := make(map[netip.AddrPort]served)
	for _, s := range status.Services {
		for _, p := range s.Ports {
			for _, a := range p.Addresses {
				found[a.Address] = p.served
			}
		}
	}
	return found, nil
}

// differ lists where the answers for a node differ.
func (r *randomCluster) differ(node string, ours map[netip.AddrPort]served, theirs map[netip.AddrPort][]netip.AddrPort) []string {
	var found []string
	for place, name := range r.places {
		our, weServe := ours[place]
		their, theyServe := theirs[place]
		if !weServe || !theyServe || !slices.Equal(our.Chosen, their) {
			found = append(found, fmt.Sprintf("on %s for %s at %s: weir (serves it: %t) %v, because %s; kube-proxy (%t) %v",
				node, name, place, weServe, our.Chosen, our.Reason, theyServe, their))
		}
	}
	slices.Sort(found)
	return found
}

// wantReasons sees that the services were such that every row of the rules decided.
func (r *randomCluster) wantReasons(parts ...string) {
	r.t.Helper()
	for _, part := range parts {
		count := 0
		for why, n := range r.reasons {
			if strings.Contains(why, part) {
				count += n
			}
		}
		r.t.Logf("measured: %d answers because %q", count, part)
		if count == 0 {
			r.t.Errorf("no service was decided by %q: the services do not try all rules", part)
		}
	}
}
