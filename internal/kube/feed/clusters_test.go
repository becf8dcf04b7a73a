package feed_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/convert"
	"github.com/weir-lb/weir/internal/kube/feed"
)

// imported makes a slice of the ServiceImport shop/web, as slice does.
func imported(name, cluster string, endpoints ...string) *discoveryv1.EndpointSlice {
	s := slice(name, "", endpoints...)
	s.Labels = map[string]string{api.LabelImportedName: "web", api.LabelSourceCluster: cluster}
	return s
}

func serviceImport(name, ip string) *corev1.Service {
	i := &convert.ServiceImport{}
	i.Namespace, i.Name, i.ResourceVersion = "shop", name, ip
	i.Spec.Type, i.Spec.IPs, i.Spec.Ports = "ClusterSetIP", []string{ip}, []convert.ServiceImportPort{{Port: 80}}
	return i.AsService()
}

func (w *fixture) endpoints(name string) string {
	w.t.Helper()
	r := w.record(name)
	if r == nil || r.Service == nil {
		return "none"
	}
	return strings.ReplaceAll(topology.FormatEndpoints(r.Service.Endpoints), "?", "")
}

func TestAnImportHasTheEndpointsOfAllClustersAndKnowsItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, feed.Options{Clusters: true}, node("n1", "a"))
		w.set(service("web"))
		w.set(slice("web-1", "web", "10.1.0.1@n1/a"))
		w.set(imported("import-own", "here", "10.1.0.1/a"))
		w.set(imported("import-west", "west", "10.2.0.1/a", "127.0.0.1/a", "10.0.0.1/a"))
		w.set(imported("import-east", "east", "10.3.0.1"))
		equal(t, "the import before it is there", "none", w.endpoints("web.clusterset"))
		w.feed.SetImports([]*corev1.Service{serviceImport("web", "10.0.9.9")})
		// The own endpoint is as the own slice says; 127.0.0.1 and 10.0.0.1, the cluster IP of shop/web, are refused.
		equal(t, "the import", "10.1.0.1=a:1@n1{ports=8080} 10.2.0.1=a:1{cluster=west,ports=8080} 10.3.0.1=-:1{cluster=east,ports=8080}", w.endpoints("web.clusterset"))
		equal(t, "the cluster's own Service", "10.1.0.1=a:1@n1{ports=8080}", w.endpoints("web"))
		r := w.record("web.clusterset")
		if r.Managed {
			t.Error("hints are written for an import")
		}
		var texts []string
		for _, p := range r.Problems {
			texts = append(texts, p.String())
		}
		equal(t, "problems", []string{
			"EndpointSlice shop/import-east: endpoints: no endpoint of cluster east names its zone: they count as one place",
			"EndpointSlice shop/import-west: endpoints[1].addresses[0]: 127.0.0.1 of cluster west is an address of this machine or its link: left out",
			"Service shop/web.clusterset: endpoints: 10.0.0.1 of cluster west is a cluster IP of this cluster: left out",
		}, texts)
		w.set(service("web", api.LabelGlobal+"=true"))
		equal(t, "a global Service", "10.1.0.1=a:1@n1{ports=8080} 10.2.0.1=a:1{cluster=west,ports=8080} 10.3.0.1=-:1{cluster=east,ports=8080}", w.endpoints("web"))
		w.feed.SetImports(nil)
		equal(t, "the import that is gone", "none", w.endpoints("web.clusterset"))
		w.drop(w.slices["shop/import-west"])
		equal(t, "the global Service after that", "10.1.0.1=a:1@n1{ports=8080} 10.3.0.1=-:1{cluster=east,ports=8080}", w.endpoints("web"))
	})
}

func TestWithoutClustersImportedSlicesAreLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, feed.Options{})
		w.set(service("web", api.LabelGlobal+"=true"))
		w.set(imported("import-west", "west", "10.2.0.1/a"))
		equal(t, "endpoints", "", w.endpoints("web"))
		equal(t, "records", "web", names(w.state()))
	})
}

func TestAGlobalServiceHasTheEndpointsOfFollowedClusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, feed.Options{Clusters: true}, node("n1", "a"))
		w.set(service("web", api.LabelGlobal+"=true"))
		w.set(slice("web-1", "web", "10.1.0.1/a"))
		w.set(service("other"))
		name := topology.ServiceName{Namespace: "shop", Name: "web"}
		there := []topology.Endpoint{
			{Addr: netip.MustParseAddr("10.1.0.1"), Zone: "a", Cluster: "west"}, // an own one's
			{Addr: netip.MustParseAddr("10.2.0.1"), Zone: "a", Cluster: "west"},
			{Addr: netip.MustParseAddr("192.0.2.1"), Zone: "a", Cluster: "west"},
		}
		west := feed.Cluster{
			Cluster: topology.Cluster{Name: "west", Region: "us"}, Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
			Services: map[topology.ServiceName][]topology.Endpoint{name: there, {Namespace: "shop", Name: "other"}: there},
		}
		w.feed.SetClusters([]feed.Cluster{west})
		equal(t, "joined", "10.1.0.1=a:1{ports=8080} 10.2.0.1=a:1{cluster=west,ports=-}", w.endpoints("web"))
		equal(t, "a Service that is not global", "", w.endpoints("other"))
		before := w.state()
		west.Stale = true
		w.feed.SetClusters([]feed.Cluster{west})
		now := w.state()
		equal(t, "clusters", []topology.Cluster{{Name: "west", Region: "us", Stale: true}}, now.Snapshot.Clusters)
		if !slices.Equal(before.Records, now.Records) {
			t.Error("records are new although only the state of a cluster is")
		}
		west.Gateway = []netip.Addr{netip.MustParseAddr("192.0.2.9")}
		w.feed.SetClusters([]feed.Cluster{west})
		equal(t, "behind a gateway", "10.1.0.1=a:1{ports=8080} 192.0.2.9=-:1{cluster=west}", w.endpoints("web"))
		s := service("late")
		s.Spec.ClusterIP = "192.0.2.9"
		w.set(s)
		equal(t, "with a cluster IP of this cluster", "10.1.0.1=a:1{ports=8080}", w.endpoints("web"))
		w.drop(s)
		equal(t, "without it", "10.1.0.1=a:1{ports=8080} 192.0.2.9=-:1{cluster=west}", w.endpoints("web"))
		w.feed.SetClusters(nil)
		equal(t, "alone", "10.1.0.1=a:1{ports=8080}", w.endpoints("web"))
	})
}
