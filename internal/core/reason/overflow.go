package reason

// Codes of package overflow: why a strategy's state changed last.
const (
	ZoneCopes       Code = "ZoneCopes"
	ZoneReturned    Code = "ZoneReturned"
	ZoneSlow        Code = "ZoneSlow"
	ZoneInCrisis    Code = "ZoneInCrisis"
	ZoneEvacuated   Code = "ZoneEvacuated"
	ZoneUnusable    Code = "ZoneUnusable"
	ZoneDrained     Code = "ZoneDrained"
	ZoneProbed      Code = "ZoneProbed"
	ZoneRecovering  Code = "ZoneRecovering"
	ZoneReturning   Code = "ZoneReturning"
	NoZoneIsBetter  Code = "NoZoneIsBetter"
	PoolGrew        Code = "PoolGrew"
	PoolShrank      Code = "PoolShrank"
	FollowsHints    Code = "FollowsHints"
	BlindToZones    Code = "BlindToZones"
	BandNotExceeded Code = "BandNotExceeded"
	CountsEndpoints Code = "CountsEndpoints"
	FollowsReports  Code = "FollowsReports"
	TooFewHealthy   Code = "TooFewHealthy"
	NodeCopes       Code = "NodeCopes"
	NodeReturned    Code = "NodeReturned"
	NodeSlow        Code = "NodeSlow"
	NodeUnusable    Code = "NodeUnusable"
)

func overflowTexts() map[Code]string {
	return map[Code]string{
		ZoneCopes:    "the zone copes with its own traffic",
		ZoneReturned: "the zone copes again: {slowdown} times its normal latency, all traffic is back",
		ZoneSlow: "the zone answers {slowdown} times slower than normal (limit {limit}): " +
			"the excess goes to the cheapest zone that is better",
		ZoneInCrisis: "the zone answers {slowdown} times slower than normal and delivers {delivered} of its requests: " +
			"its share is cut to what it delivers",
		ZoneEvacuated: "the zone delivers {delivered} of its requests at {slowdown} times its normal latency: " +
			"all but a probe goes elsewhere",
		ZoneUnusable:    "no endpoint of the zone is usable: all traffic goes elsewhere",
		ZoneDrained:     "the zone is drained by an operator: all traffic goes elsewhere",
		ZoneProbed:      "the zone was out of use: it gets a probe until {answers} answers in a row are good",
		ZoneReturning:   "the zone answers at {slowdown} times its normal latency: its traffic comes back step by step",
		ZoneRecovering:  "{answers} good answers in a row: the zone is given more traffic again",
		NoZoneIsBetter:  "the zone answers {slowdown} times slower than normal, but no other zone is better: traffic stays",
		PoolGrew:        "{load} requests in flight on {active} endpoints, above the band: one endpoint added",
		PoolShrank:      "{load} requests in flight on {active} endpoints, below the band: one endpoint removed",
		FollowsHints:    "the strategy follows the hints and does not look at load",
		BlindToZones:    "the strategy spreads requests over all endpoints alike",
		BandNotExceeded: "the load is within the band",
		CountsEndpoints: "the strategy counts clients and endpoints that serve, and does not look at load",
		FollowsReports:  "the strategy goes by the utilisation that endpoints report",
		TooFewHealthy:   "{usable} of {all} endpoints serve: too few, so that health is ignored and all get the same share",
		NodeCopes:       "the endpoints on the client's node cope with its traffic",
		NodeReturned:    "the endpoints on the client's node cope again: all traffic is back",
		NodeSlow:        "the endpoints on the client's node are slow: the excess goes to the rest of the zone first",
		NodeUnusable:    "the endpoints on the client's node serve nothing but a probe: the traffic goes to the rest of the zone first",
	}
}
