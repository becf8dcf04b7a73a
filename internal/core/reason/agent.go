package reason

// Codes of package agent: what keeps a node from serving something as it was asked.
const (
	NodeGone            Code = "NodeGone"
	NodeWithoutZone     Code = "NodeWithoutZone"
	NoClusterIP         Code = "NoClusterIP"
	OtherProxy          Code = "OtherProxy"
	ProtocolNotServed   Code = "ProtocolNotServed"
	NoPorts             Code = "NoPorts"
	AddressTaken        Code = "AddressTaken"
	AddressNotBound     Code = "AddressNotBound"
	StrategyRefused     Code = "StrategyRefused"
	DrainOfNoZone       Code = "DrainOfNoZone"
	MappedServiceAbsent Code = "MappedServiceAbsent"
	MappedPortAbsent    Code = "MappedPortAbsent"
)

func agentTexts() map[Code]string {
	return map[Code]string{
		NodeGone:            "the cluster no longer has this node: {objects}; its last zone stays in use",
		NodeWithoutZone:     "this node carries no zone label, so that no zone hint applies to it: {objects}",
		OtherProxy:          "{first} was given to the proxy {last} by the label service.kubernetes.io/service-proxy-name",
		NoClusterIP:         "no cluster IP and no address mapped to it: nothing to listen on for {objects}",
		ProtocolNotServed:   "only TCP ports are served, not {objects}",
		NoPorts:             "the service has no ports: {objects}",
		AddressTaken:        "another service port has this address already: {objects}",
		AddressNotBound:     "cannot listen, trying again in {retry}: {objects}",
		StrategyRefused:     "the service's wishes for overflow cannot be had, the defaults are used: {objects}",
		DrainOfNoZone:       "a zone is to be drained that no node and no endpoint is in: {objects}",
		MappedServiceAbsent: "an address is mapped to a service that does not exist: {objects}",
		MappedPortAbsent:    "an address is mapped to a port that the service does not have: {objects}",
	}
}
