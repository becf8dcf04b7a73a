// Package api is the surface that weir promises to keep: the label and annotation keys that users write, and their
// values.
//
// Nothing else of weir is promised. The package decides nothing and reads nothing.
package api

// Keys that users write for weir, on a Service unless it says otherwise.
const (
	// LabelDistribution chooses the distribution mode: Auto, Balanced, Disabled, PreferSameZone (or PreferClose, its
	// deprecated name) or PreferSameNode. It is a label, because the built-in controller copies labels of a Service to
	// its EndpointSlices, so that a webhook can select them.
	LabelDistribution = "weir.dev/distribution"

	// LabelGlobal, with the value true, joins a Service with those of the same namespace and name in other clusters that carry it,
	// too. It is a label, because the built-in controller copies it to the EndpointSlices, so that weir need not read another
	// cluster's Services, and reads of its EndpointSlices only these.
	LabelGlobal = "weir.dev/global"

	// LabelCluster, on a Secret in weir's own namespace, is the name of a further cluster to follow. SecretKubeconfig, SecretGateway
	// and SecretNetworks are the keys of its data, AnnotationRegion says where the cluster is.
	LabelCluster     = "weir.dev/cluster"
	SecretKubeconfig = "kubeconfig"
	// SecretGateway holds IP addresses, separated by commas, that stand for the endpoints of that cluster: its pods cannot be
	// reached then.
	SecretGateway = "gateway"
	// SecretNetworks holds the networks, separated by commas, that endpoints of that cluster are in. Others are refused.
	SecretNetworks = "networks"

	// LabelDataPlane has the agents of nodes carry the Service's traffic beside the cluster's own proxy, which goes on serving what
	// they do not: DataPlaneKernel.
	LabelDataPlane = "weir.dev/data-plane"

	// AnnotationStrategy names the overflow strategy: Weir (the default), Hazl, Static or Random.
	AnnotationStrategy = "weir.dev/strategy"

	// AnnotationPrefer says what to weigh when traffic leaves its zone: PreferCost, PreferBalanced (the default) or
	// PreferLatency.
	AnnotationPrefer = "weir.dev/prefer"

	// AnnotationOverload says what happens to what no zone can take: nothing by default, or OverloadShed.
	AnnotationOverload = "weir.dev/overload"

	// AnnotationDrainZone takes zones out of use until a moment: zone-a=2026-11-20T12:00:00Z[,zone-b=…].
	AnnotationDrainZone = "weir.dev/drain-zone"

	// AnnotationOverloadLimit bounds how far above its fair part an endpoint may be planned: a ratio, 0.2, or a
	// percentage, 20%. The default is that of KEP-2433.
	AnnotationOverloadLimit = "weir.dev/overload-limit"

	// AnnotationDemand says where the traffic starts, as shares by zone: zone-a=0.7,zone-b=0.3. By default it is taken
	// to follow the CPU of the nodes.
	AnnotationDemand = "weir.dev/demand"

	// AnnotationWeight, on a Pod, is its weight among the endpoints of a service, 1 to 1000, for the algorithms that know
	// weights. The default is 1.
	AnnotationWeight = "weir.dev/weight"
)

// What weir writes to a cluster.
const (
	// AnnotationHints is on an EndpointSlice whose hints weir wrote; its value is the mode. It tells people who did, and
	// weir what is left to take back.
	AnnotationHints = "weir.dev/hints"

	// ConditionAccepted and ConditionProgrammed are conditions of a Service that asks for a distribution: whether what it
	// asks for is understood, and whether its EndpointSlices say so (KEP-2433 names such conditions as a possible future
	// expansion and asks that others prefix theirs with a domain).
	ConditionAccepted   = "weir.dev/TrafficDistributionAccepted"
	ConditionProgrammed = "weir.dev/TrafficDistributionProgrammed"

	// ConditionPolicyAffected is a condition of a Service that load-balancing policies are attached to; its message names
	// them. A Service that none is attached to does not have it.
	ConditionPolicyAffected = "weir.dev/LoadBalancingPolicyAffected"

	// ControllerName names weir in the status of a policy.
	ControllerName = "weir.dev/controller"

	// FieldManager is the name that weir's writes carry.
	FieldManager = "weir"
)

// DataPlaneKernel is the value of LabelDataPlane that has the kernel of each node place connections and UDP flows of its pods on
// endpoints when they are made.
const DataPlaneKernel = "kernel"

// Values of AnnotationPrefer and AnnotationOverload.
const (
	PreferCost     = "cost"
	PreferBalanced = "balanced"
	PreferLatency  = "latency"

	OverloadShed = "shed"
)

// Keys that Kubernetes defines and weir reads.
const (
	// AnnotationTopologyMode asks for KEP-2433 hints, with the values Auto and auto.
	AnnotationTopologyMode = "service.kubernetes.io/topology-mode"

	// AnnotationTopologyAwareHints is the deprecated name of AnnotationTopologyMode; where it is present it wins.
	AnnotationTopologyAwareHints = "service.kubernetes.io/topology-aware-hints"

	// LabelServiceProxyName gives a Service to a proxy other than kube-proxy; weir's is ServiceProxyName.
	LabelServiceProxyName = "service.kubernetes.io/service-proxy-name"

	// LabelServiceName ties an EndpointSlice to its Service.
	LabelServiceName = "kubernetes.io/service-name"

	// LabelZone and LabelRegion say where a Node is.
	LabelZone   = "topology.kubernetes.io/zone"
	LabelRegion = "topology.kubernetes.io/region"

	// LabelImportedName and LabelSourceCluster are on EndpointSlices of the Multi-Cluster Services API: the ServiceImport that they
	// belong to, and the cluster that their endpoints are in.
	LabelImportedName  = "multicluster.kubernetes.io/service-name"
	LabelSourceCluster = "multicluster.kubernetes.io/source-cluster"

	// LabelControlPlane and LabelMaster, with any value, mark a Node that runs the control plane.
	LabelControlPlane = "node-role.kubernetes.io/control-plane"
	LabelMaster       = "node-role.kubernetes.io/master"
)

// ServiceProxyName is the value of LabelServiceProxyName that chooses weir.
const ServiceProxyName = "weir"
