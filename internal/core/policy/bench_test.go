package policy_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/topology"
)

const (
	manyServices = 10_000
	manyRules    = 1_000
)

// large is a set of manyRules rules, a tenth of them about everything for picked clients and the rest about services.
func large() policy.Set {
	var s policy.Set
	for i := range manyRules {
		r := aboutWeb("p"+strconv.Itoa(i), algorithm(policy.LeastRequest))
		r.Target.Name = "web-" + strconv.Itoa(i)
		r.Conf.Locality.Affinity = []policy.Affinity{{Key: "kubernetes.io/hostname"}, {Key: "rack"}}
		r.Conf.Locality.Failover = []policy.Failover{to(policy.FailoverOnly, "b"), to(policy.FailoverAnyExcept, "lab")}
		if i%10 == 0 {
			r.Origin.Namespace, r.Target = policy.RootNamespace, policy.Target{Kind: policy.TargetMesh}
			r.Clients.Pods = policy.Selector{{Key: "app", Operator: policy.In, Values: []string{strconv.Itoa(i)}}}
		}
		s.Rules = append(s.Rules, r)
	}
	for i := range manyServices {
		s.Pods = append(s.Pods, policy.Pod{
			Namespace: "shop", Name: fmt.Sprintf("pod-%05d", i), IPs: []string{fmt.Sprintf("10.%d.%d.1", i/256, i%256)},
			Labels: policy.Labels{"app": strconv.Itoa(i % manyRules)},
		})
	}
	return s
}

func BenchmarkNewSet(b *testing.B) {
	s := large()
	b.ReportAllocs()
	for b.Loop() {
		policy.NewSet(s)
	}
}

// BenchmarkResolve resolves all services for one client.
func BenchmarkResolve(b *testing.B) {
	s := policy.NewSet(large())
	c := policy.Client{Zone: "a", Namespace: "shop", Pod: policy.Labels{"app": "20"}}
	services := make([]policy.Destination, manyServices)
	for i := range services {
		services[i] = policy.Destination{Service: topology.ServiceName{Namespace: "shop", Name: "web-" + strconv.Itoa(i)}}
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, d := range services {
			s.Resolve(c, d)
		}
	}
}

func BenchmarkClassOf(b *testing.B) {
	s := policy.NewSet(large())
	c := policy.Client{Zone: "a", Namespace: "shop", Pod: policy.Labels{"app": "20"}}
	b.ReportAllocs()
	for b.Loop() {
		s.ClassOf(c, web)
	}
}

func BenchmarkPlace(b *testing.B) {
	s := settingsOf(large().Rules[1].Conf.Locality)
	client := policy.Spot{Zone: "a", NodeName: "n1", Node: policy.Labels{"rack": "r1"}}
	spots := []policy.Spot{
		{Zone: "a", NodeName: "n2", Node: policy.Labels{"rack": "r2"}}, {Zone: "a", NodeName: "n1"}, {Zone: "b"}, {Zone: "c"}, {Zone: "lab"},
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, spot := range spots {
			s.Place(client, spot)
		}
	}
}
