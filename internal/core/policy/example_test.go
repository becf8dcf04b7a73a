package policy_test

import (
	"fmt"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/topology"
)

func ExampleSet_Resolve() {
	all := policy.Rule{
		Origin: policy.Origin{Dialect: policy.DialectCRD, Namespace: policy.RootNamespace, Name: "defaults"},
		Target: policy.Target{Kind: policy.TargetMesh},
		Conf:   policy.Conf{LoadBalancer: &policy.LoadBalancer{Type: policy.LeastRequest}},
	}
	ledger := policy.Rule{
		Origin: policy.Origin{Dialect: policy.DialectCRD, Namespace: "bank", Name: "ledger-local"},
		Target: policy.Target{Kind: policy.TargetService, Namespace: "bank", Name: "ledger"},
		Conf: policy.Conf{Locality: policy.Locality{
			Affinity: []policy.Affinity{{Key: "kubernetes.io/hostname"}},
			Failover: []policy.Failover{{To: policy.FailoverTo{Type: policy.FailoverNone}}},
		}},
	}
	set := policy.NewSet(policy.Set{Rules: []policy.Rule{all, ledger}})
	settings := set.Resolve(policy.Client{Zone: "a"}, policy.Destination{
		Service: topology.ServiceName{Namespace: "bank", Name: "ledger"},
	})
	for _, f := range settings.Fields {
		fmt.Printf("%s: %s, says %s\n", f.Path, f.Value, f.Origin)
	}
	client := policy.Spot{Zone: "a", NodeName: "n1"}
	for _, endpoint := range []policy.Spot{{Zone: "a", NodeName: "n1"}, {Zone: "a", NodeName: "n2"}, {Zone: "b"}} {
		fmt.Printf("%+v\n", settings.Place(client, endpoint))
	}
	// Output:
	// loadBalancer.type: LeastRequest, says LoadBalancingPolicy weir-system/defaults
	// locality.affinity: kubernetes.io/hostname, says LoadBalancingPolicy bank/ledger-local
	// locality.failover: to None, says LoadBalancingPolicy bank/ledger-local
	// {Home:true Tier:0 Affinity:kubernetes.io/hostname=n1 AffinityWeight:9 Excluded:false}
	// {Home:true Tier:0 Affinity: AffinityWeight:1 Excluded:false}
	// {Home:false Tier:0 Affinity: AffinityWeight:0 Excluded:true}
}
