package reason

// Codes of package agent: what keeps a node from serving something as it was asked.
const (
	NodeGone            Code = "NodeGone"
	NodeWithoutZone     Code = "NodeWithoutZone"
	NoClusterIP         Code = "NoClusterIP"
	OtherProxy          Code = "OtherProxy"
	ProtocolNotServed   Code = "ProtocolNotServed"
	NoPorts             Code = "NoPorts"
	OutsideNotServed    Code = "OutsideNotServed"
	AddressTaken        Code = "AddressTaken"
	AddressNotBound     Code = "AddressNotBound"
	KernelUnavailable   Code = "KernelUnavailable"
	KernelIncomplete    Code = "KernelIncomplete"
	KernelFull          Code = "KernelFull"
	KernelNoAffinity    Code = "KernelNoAffinity"
	KernelNoAlgorithm   Code = "KernelNoAlgorithm"
	KernelNoClasses     Code = "KernelNoClasses"
	StrategyRefused     Code = "StrategyRefused"
	DrainOfNoZone       Code = "DrainOfNoZone"
	MappedServiceAbsent Code = "MappedServiceAbsent"
	MappedPortAbsent    Code = "MappedPortAbsent"
	ClusterStale        Code = "ClusterStale"

	// What load-balancing policies say and what has no effect, or not the one that was wanted.
	PolicyWithoutEffect Code = "PolicyWithoutEffect"
	HashNeedsHTTP       Code = "HashNeedsHTTP"
	HashRefused         Code = "HashRefused"
	FilterNotTrusted    Code = "FilterNotTrusted"
	PolicyNamesNoZone   Code = "PolicyNamesNoZone"
	PolicyNamesNoLabel  Code = "PolicyNamesNoLabel"
	PolicyForNoService  Code = "PolicyForNoService"
	PolicyForNoPort     Code = "PolicyForNoPort"
	PolicyRefused       Code = "PolicyRefused"
	PolicyLastGood      Code = "PolicyLastGood"
	WeightRefused       Code = "WeightRefused"

	// Why other endpoints are home than hints choose.
	HomeIsOwnZone  Code = "HomeIsOwnZone"
	HomeIsByPolicy Code = "HomeIsByPolicy"
)

func agentTexts() map[Code]string {
	return map[Code]string{
		NodeGone:          "the cluster no longer has this node: {objects}; its last zone stays in use",
		NodeWithoutZone:   "this node carries no zone label, so that no zone hint applies to it: {objects}",
		OtherProxy:        "{first} was given to the proxy {last} by the label service.kubernetes.io/service-proxy-name",
		NoClusterIP:       "no cluster IP and no address mapped to it: nothing to listen on for {objects}",
		ProtocolNotServed: "only TCP ports are served, not {objects}",
		NoPorts:           "the service has no ports: {objects}",
		OutsideNotServed: "{objects} was given to weir, which serves cluster IPs only: its node ports, external IPs and load balancer " +
			"addresses are served by nothing; for these make a second Service with the same selector and without the label " +
			"service.kubernetes.io/service-proxy-name",
		AddressTaken:        "another service port has this address already: {objects}",
		AddressNotBound:     "cannot listen, trying again in {retry}: {objects}",
		KernelUnavailable:   "the kernel cannot place connections, trying again in {retry}, the cluster's own proxy serves: {objects}",
		KernelIncomplete:    "this kernel lacks {objects}",
		KernelFull:          "a service port cannot be written to the kernel, the cluster's own proxy serves it: {objects}",
		KernelNoAffinity:    "the kernel data plane keeps no session affinity, the cluster's own proxy serves {objects}",
		KernelNoAlgorithm:   "the kernel places connections by share and weight, not by {objects}",
		KernelNoClasses:     "the kernel does not tell clients apart, what policies say of some clients has no effect on {objects}",
		StrategyRefused:     "the service's overflow settings are refused, the defaults are used: {objects}",
		DrainOfNoZone:       "a zone is to be drained that no node and no endpoint is in: {objects}",
		MappedServiceAbsent: "an address is mapped to a service that does not exist: {objects}",
		ClusterStale:        "the API server of another cluster does not answer, its last state is used: {objects}",
		MappedPortAbsent:    "an address is mapped to a port that the service does not have: {objects}",

		PolicyWithoutEffect: "a policy has settings without effect here: {objects}",
		HashNeedsHTTP:       "for TCP only source addresses and the filter state of connections are hashed: {objects}",
		FilterNotTrusted: "filter state that no filter may give, as the agent's --trusted-filter names none: requests are not hashed by {first} " +
			"on {last}",
		HashRefused:        "requests cannot be hashed as policies say, they are not hashed: {objects}",
		PolicyNamesNoZone:  "a policy names a zone that no node and no endpoint is in: {objects}",
		PolicyNamesNoLabel: "a policy uses a label that no node and no pod has: {objects}",
		PolicyForNoService: "a policy is for a service that does not exist: {objects}",
		PolicyForNoPort:    "a policy is for a port that the service does not have: {objects}",
		PolicyRefused:      "a policy is refused and has no earlier valid form, it is ignored: {objects}",
		PolicyLastGood:     "a policy is refused, its last valid form applies: {objects}",
		WeightRefused:      "the annotation weir.dev/weight of a pod is not a number from 1 to 1000, it counts as 1: {objects}",

		HomeIsOwnZone:  "no endpoint carries a hint: requests stay with those of {objects} while these cope",
		HomeIsByPolicy: "policies say which endpoints are near",
	}
}
