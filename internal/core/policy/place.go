package policy

import (
	"slices"
	"strings"

	"github.com/weir-lb/weir/internal/core/topology"
)

// Spot is what is known of where a client or an endpoint is.
type Spot struct {
	Zone      topology.Zone
	Pod, Node Labels // of the pod and of its node
	// Hinted: of an endpoint, that hints give it to the client; of a client, that hints apply to it.
	Hinted   bool
	Cluster  string // empty: this cluster
	NodeName string // stands in for a missing label kubernetes.io/hostname
}

// Place is the part that an endpoint has for a client. The zero value is neither home, nor in a tier, nor
// excluded.
type Place struct {
	Home bool
	Tier int // from 1, without gaps over the rules that apply to the client; 0: home, or excluded
	// Affinity is the group of home, key=value; empty: the group of those that share nothing with the client.
	Affinity       string
	AffinityWeight uint32 // 0: home has no groups
	Excluded       bool   // never a target, not even in an outage
}

// Place tells what part an endpoint has for a client.
//
// Home are: all endpoints, if locality is disabled; those that have one of the labels that carry weights; those that hints give to the client, if
// they apply and zones are the default ones; else those that have the client's value of the zone key, in the client's cluster if the
// key is the default one. Any other is in the tier of the first failover rule for the client's zone that matches, or
// excluded; so is one that hints give to the client from a zone that no rule allows. Hints cannot exclude the client's own zone: it
// is the first tier. A client whose zone is not known has no zone of its own, so that its first tier is its home.
func (s *Settings) Place(client, endpoint Spot) Place {
	l := &s.Locality
	if value(l.Disabled, false) {
		return Place{Home: true}
	}
	from, to := zoneOf(l, &client), zoneOf(l, &endpoint)
	if len(l.Weights) > 0 {
		return placeByWeight(l, from, to, &endpoint)
	}
	usual := isUsualZone(l)
	local := from != "" && from == to && (!usual || client.Cluster == endpoint.Cluster)
	hints := usual && client.Hinted
	if local && (endpoint.Hinted || !hints) {
		return placeAtHome(l, &client, &endpoint)
	}
	if local {
		return Place{Tier: 1}
	}
	tier, allowed := tierOf(l, from, locality{to, endpoint.Cluster})
	switch {
	case !allowed:
		return Place{Excluded: true}
	case hints && endpoint.Hinted:
		return placeAtHome(l, &client, &endpoint)
	case from != "" || hints:
		return Place{Tier: tier}
	case tier == 1:
		return placeAtHome(l, &client, &endpoint)
	default:
		return Place{Tier: tier - 1}
	}
}

func isUsualZone(l *Locality) bool { return value(l.ZoneKey, DefaultZoneKey) == DefaultZoneKey }

// zoneOf gives the value of the zone key.
func zoneOf(l *Locality, s *Spot) topology.Zone {
	if isUsualZone(l) {
		return s.Zone
	}
	return topology.Zone(s.label(*l.ZoneKey))
}

// label gives the pod's value of a label, else the node's, else what is known without labels.
func (s *Spot) label(key string) string {
	if v := s.Pod[key]; v != "" {
		return v
	}
	if v := s.Node[key]; v != "" {
		return v
	}
	switch key {
	case labelHostname:
		return s.NodeName
	case labelZone:
		return string(s.Zone)
	default:
		return ""
	}
}

// placeAtHome puts an endpoint into the group that the first affinity makes whose value it shares with the client.
func placeAtHome(l *Locality, client, endpoint *Spot) Place {
	if len(l.Affinity) == 0 {
		return Place{Home: true}
	}
	for _, a := range l.Affinity {
		if v := client.label(a.Key); v != "" && v == endpoint.label(a.Key) {
			return Place{Home: true, Affinity: a.Key + "=" + v, AffinityWeight: uint32(value(a.Weight, 1))}
		}
	}
	return Place{Home: true, AffinityWeight: 1}
}

// placeByWeight puts an endpoint into the group of the first weight that it matches.
func placeByWeight(l *Locality, from, to topology.Zone, endpoint *Spot) Place {
	for _, w := range l.Weights {
		if endpoint.label(w.Key) == w.Value {
			return Place{Home: true, Affinity: w.Key + "=" + w.Value, AffinityWeight: uint32(w.Weight)}
		}
	}
	tier, allowed := tierOf(l, from, locality{to, endpoint.Cluster})
	return Place{Tier: tier, Excluded: !allowed}
}

// tierOf gives the number of the first rule for clients of zone from that matches to, counting only rules for such
// clients; false if none does, or if a None comes first. Without rules every endpoint is in the first tier.
func tierOf(l *Locality, from topology.Zone, to locality) (int, bool) {
	if len(l.Failover) == 0 {
		return 1, true
	}
	tier := 0
	for i := range l.Failover {
		f := &l.Failover[i]
		if !isFor(f, from) {
			continue
		}
		if f.To.Type == FailoverNone {
			return 0, false
		}
		tier++
		if allows(&f.To, to) {
			return tier, true
		}
	}
	return 0, false
}

func isFor(f *Failover, from topology.Zone) bool {
	return len(fromZones(f)) == 0 || from != "" && slices.Contains(fromZones(f), string(from))
}

// fromZones lists the zones of the clients that a rule is for; empty: any.
func fromZones(f *Failover) []string { return block(f.From).Zones }

// locality is where an endpoint is: a zone, empty if it is not known, of a cluster, empty for this one.
type locality struct {
	zone    topology.Zone
	cluster string
}

// isNamed tells whether a name is that of a locality: ZONE, a zone of this cluster; ZONE@CLUSTER, one of another; or @CLUSTER, all
// of that cluster.
func (l locality) isNamed(name string) bool {
	zone, cluster, _ := strings.Cut(name, clusterMark)
	if zone == "" {
		return cluster != "" && cluster == l.cluster
	}
	return zone == string(l.zone) && cluster == l.cluster
}

// clusterMark stands before the name of a cluster in a list of zones.
const clusterMark = "@"

// allows tells whether a rule allows a locality. A zone that is not known is in no list. What is not to be used in this cluster is
// not to be used in another one under the same name, either.
func allows(f *FailoverTo, to locality) bool {
	switch f.Type {
	case FailoverAny:
		return true
	case FailoverOnly:
		return slices.ContainsFunc(f.Zones, to.isNamed)
	case FailoverAnyExcept:
		return !slices.ContainsFunc(f.Zones, to.isNamed) && !slices.Contains(f.Zones, string(to.zone))
	case FailoverNone:
		return false
	default:
		return false
	}
}
