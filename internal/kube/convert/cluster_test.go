package convert_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/convert"
)

func TestClusterTakesSlicesBeforePodsAndReportsStrays(t *testing.T) {
	slice := func(name, service string) *discoveryv1.EndpointSlice {
		return object[discoveryv1.EndpointSlice](t, ""+
			"metadata: {name: "+name+", labels: {kubernetes.io/service-name: '"+service+"'}}\n"+
			"addressType: IPv4\nports: [{port: 80}]\nendpoints: [{addresses: [10.0.0.1]}]")
	}
	service := func(name string) *corev1.Service {
		return object[corev1.Service](t, "metadata: {name: "+name+"}\nspec: {selector: {app: x}, ports: [{port: 80}]}")
	}
	_, services, problems := convert.Cluster(convert.Objects{
		Services: []*corev1.Service{service("sliced"), service("plain")},
		Slices:   []*discoveryv1.EndpointSlice{slice("s", "sliced"), slice("lost", "gone"), slice("nameless", "")},
		Pods: []*corev1.Pod{object[corev1.Pod](t, "metadata: {name: p, labels: {app: x}}\n"+
			"status: {podIP: 10.0.0.2, conditions: [{type: Ready, status: 'True'}]}")},
	}, convert.Options{})
	equal(t, "snapshot", "service plain mode=Balanced\nendpoints 10.0.0.2=-:1{pod=default/p}\n"+
		"service sliced mode=Balanced\nendpoints -:1?",
		topology.NewSnapshot(nil, services, topology.Costs{}).String())
	equal(t, "problems", []string{
		"EndpointSlice default/lost: metadata.labels[kubernetes.io/service-name]: there is no Service default/gone: left out",
		"EndpointSlice default/nameless: metadata.labels: " +
			"the slice names no Service, its label kubernetes.io/service-name is missing: left out",
	}, lines(problems))
}
