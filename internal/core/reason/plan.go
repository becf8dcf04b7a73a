package reason

// Codes of package plan.
const (
	NoEndpoints Code = "NoEndpoints"

	// What a client may use, one code for each row of the decision table.
	OnlyTerminating       Code = "OnlyTerminating"
	HintedToNode          Code = "HintedToNode"
	HintedToZone          Code = "HintedToZone"
	NoHints               Code = "NoHints"
	HintMissing           Code = "HintMissing"
	ClientWithoutZone     Code = "ClientWithoutZone"
	ZoneNotHinted         Code = "ZoneNotHinted"
	LocalTrafficOnly      Code = "LocalTrafficOnly"
	OnNode                Code = "OnNode"
	OnlyTerminatingOnNode Code = "OnlyTerminatingOnNode"
	NoneOnNode            Code = "NoneOnNode"

	// Why a service has hints, or none.
	HintsDisabled         Code = "HintsDisabled"
	EndpointsServeOwnZone Code = "EndpointsServeOwnZone"
	EndpointsServeOwnNode Code = "EndpointsServeOwnNode"
	HintsByShare          Code = "HintsByShare"
	PolicyIsLocal         Code = "PolicyIsLocal"
	TooFewZones           Code = "TooFewZones"
	TooFewEndpoints       Code = "TooFewEndpoints"
	NodesWithoutZone      Code = "NodesWithoutZone"
	NodesWithoutCPU       Code = "NodesWithoutCPU"
	EndpointsWithoutZone  Code = "EndpointsWithoutZone"
	OverloadTooHigh       Code = "OverloadTooHigh"

	// What a person should know besides.
	NodesCountEqually     Code = "NodesCountEqually"
	EndpointsWithoutNode  Code = "EndpointsWithoutNode"
	EndpointsOverloaded   Code = "EndpointsOverloaded"
	ZonesWithoutEndpoints Code = "ZonesWithoutEndpoints"
	ZonesNotServed        Code = "ZonesNotServed"
	HeadlessService       Code = "HeadlessService"

	// What mode Balanced found.
	HintsBalanced       Code = "HintsBalanced"
	HintsKept           Code = "HintsKept"
	HintsTooCoarse      Code = "HintsTooCoarse"
	OverloadUnavoidable Code = "OverloadUnavoidable"
	DemandByEndpoints   Code = "DemandByEndpoints"
	NoZoneKnown         Code = "NoZoneKnown"
	ZonesWithoutDemand  Code = "ZonesWithoutDemand"
	ZonesWithoutShare   Code = "ZonesWithoutShare"
	ZonesUnnamed        Code = "ZonesUnnamed"
	ZonesNotReady       Code = "ZonesNotReady"

	// What a person could change.
	AdviseZoneLabel Code = "AdviseZoneLabel"
	AdviseCPU       Code = "AdviseCPU"
	AdviseBalanced  Code = "AdviseBalanced"
	AdviseLimit     Code = "AdviseLimit"
	AdviseEndpoint  Code = "AdviseEndpoint"
	AdviseMove      Code = "AdviseMove"
)

func planTexts() map[Code]string {
	return map[Code]string{
		NoEndpoints: "the service has no ready endpoint",

		OnlyTerminating:       "no endpoint is ready: those that terminate but still serve take the requests",
		HintedToNode:          "every ready endpoint names its nodes: requests stay with those that name {objects}",
		HintedToZone:          "every ready endpoint names its zones: requests stay with those that name {objects}",
		NoHints:               "no endpoint carries a hint: every ready endpoint is used",
		HintMissing:           "hints are ignored while a ready endpoint has none: {objects}",
		ClientWithoutZone:     "hints by zone do not help a client whose zone is not known: every ready endpoint is used",
		ZoneNotHinted:         "no endpoint names {objects}: every ready endpoint is used",
		LocalTrafficOnly:      "internal traffic policy Local: only endpoints on the client's node are used",
		OnNode:                "ready endpoints live on {objects}",
		OnlyTerminatingOnNode: "the endpoints on {objects} terminate but still serve",
		NoneOnNode:            "no usable endpoint lives on {objects}",

		HintsDisabled:         "the service asks for no hints",
		EndpointsServeOwnZone: "each endpoint serves its own zone",
		EndpointsServeOwnNode: "each endpoint serves its own node, then its zone",
		HintsByShare: "each zone has endpoints by its share of the demand: {overload} expected overload, hints stay up " +
			"to {limit}",
		PolicyIsLocal:        "no hints: the service has traffic policy Local",
		TooFewZones:          "no hints: {zones} zones have ready nodes, two are needed",
		TooFewEndpoints:      "no hints: {endpoints} ready endpoints for {zones} zones",
		NodesWithoutZone:     "ready nodes carry no zone label: {objects}",
		NodesWithoutCPU:      "ready nodes report no CPU: {objects}",
		EndpointsWithoutZone: "ready endpoints have no zone: {objects}",
		OverloadTooHigh: "no hints: the best split of {endpoints} endpoints leaves {objects} with {overload} overload, " +
			"it has to be below {limit}",

		NodesCountEqually:     "no node reports CPU: all nodes count the same",
		EndpointsWithoutNode:  "ready endpoints have no node, so hints by node are ignored: {objects}",
		EndpointsOverloaded:   "endpoints in {objects} are expected to get up to {overload} more than their fair part",
		ZonesWithoutEndpoints: "no ready endpoint lives in {objects}: their requests go elsewhere",
		ZonesNotServed: "internal traffic policy Local and no usable endpoint on any node of {objects}: their requests are " +
			"not served",
		HeadlessService: "the service is headless: its clients choose by name, no proxy reads the hints",

		HintsBalanced: "{inZone} of the requests stay in their zone, the most loaded endpoint expects {overload} more " +
			"than its fair part, {limit} is allowed",
		HintsKept: "the hints from before stay: they keep {inZone} of the requests in their zone, and the most loaded " +
			"endpoint expects {overload} more than its fair part, {stop} is allowed until they change",
		HintsTooCoarse: "a hint is all or nothing: {inZone} of the requests stay in their zone, exact shares would keep " +
			"{best}",
		OverloadUnavoidable: "no hints keep the expected overload within {limit}: the least that was found is {overload}",
		DemandByEndpoints: "no node tells where the requests come from: they are taken to come from where the endpoints " +
			"are",
		NoZoneKnown:        "no hints: neither a node nor a ready endpoint has a zone",
		ZonesWithoutDemand: "no request is expected from {objects}: no node with known CPU is there",
		ZonesWithoutShare:  "no request is expected from {objects}: the annotation weir.dev/demand gives them no share",
		ZonesNotReady:      "no node of {objects} is ready: endpoints there serve their own zone only",
		ZonesUnnamed:       "the hints have no room for {objects}: their requests go to all endpoints",

		AdviseZoneLabel: "label {objects} with topology.kubernetes.io/zone: " + adviceGain,
		AdviseCPU:       "see that {objects} report their zone and their allocatable CPU: " + adviceGain,
		AdviseBalanced:  "mode Balanced: " + adviceGain,
		AdviseLimit:     "allow {limit} overload from the start: " + adviceGain,
		AdviseEndpoint:  "one more endpoint in {objects}: " + adviceGain,
		AdviseMove:      "one endpoint moved from {first} to {last}: " + adviceGain,
	}
}

// adviceGain ends every piece of advice.
const adviceGain = "{inZone} of the requests stay in their zone instead of {inZoneNow}, {overload} overload is expected " +
	"instead of {overloadNow}"
