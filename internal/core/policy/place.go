package policy

import (
	"slices"

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

// Place is the part that an endpoint has for a client. The zero value is nobody's: it is neither home, nor in a tier, nor
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
// Home are: all, if locality is disabled; who has one of the labels that carry weights; whom hints give to the client, if
// they apply and zones are the default ones; else who has the client's value of the zone key, in the client's cluster if the
// key is the default one. Anybody else is in the tier of the first failover rule for the client's zone that matches, or
// excluded; so is who hints give to the client from a zone that no rule allows. Hints cannot exclude the client's own zone: it
// is the first tier. A client whose zone is not known has no zone of its own, so that its first tier is its home.
func (s *Settings) Place(client, endpoint Spot) Place {
	l := &s.Locality
	if l.Disabled {
		return Place{Home: true}
	}
	from, to := l.zone(&client), l.zone(&endpoint)
	if len(l.Weights) > 0 {
		return l.placeByWeight(from, to, &endpoint)
	}
	usual := l.isUsualZone()
	local := from != "" && from == to && (!usual || client.Cluster == endpoint.Cluster)
	hints := usual && client.Hinted
	if local && (endpoint.Hinted || !hints) {
		return l.home(&client, &endpoint)
	}
	if local {
		return Place{Tier: 1}
	}
	tier, allowed := l.tier(from, to)
	switch {
	case !allowed:
		return Place{Excluded: true}
	case hints && endpoint.Hinted:
		return l.home(&client, &endpoint)
	case from != "" || hints:
		return Place{Tier: tier}
	case tier == 1:
		return l.home(&client, &endpoint)
	default:
		return Place{Tier: tier - 1}
	}
}

func (l *LocalitySettings) isUsualZone() bool { return l.ZoneKey == DefaultZoneKey || l.ZoneKey == "" }

// zone gives the value of the zone key.
func (l *LocalitySettings) zone(s *Spot) topology.Zone {
	if l.isUsualZone() {
		return s.Zone
	}
	return topology.Zone(s.label(l.ZoneKey))
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

// home puts an endpoint into the group that the first affinity makes whose value it shares with the client.
func (l *LocalitySettings) home(client, endpoint *Spot) Place {
	if len(l.Affinity) == 0 {
		return Place{Home: true}
	}
	for _, a := range l.Affinity {
		if v := client.label(a.Key); v != "" && v == endpoint.label(a.Key) {
			return Place{Home: true, Affinity: a.Key + "=" + v, AffinityWeight: a.Weight}
		}
	}
	return Place{Home: true, AffinityWeight: 1}
}

// placeByWeight puts an endpoint into the group of the first weight that it matches.
func (l *LocalitySettings) placeByWeight(from, to topology.Zone, endpoint *Spot) Place {
	for _, w := range l.Weights {
		if endpoint.label(w.Key) == w.Value {
			return Place{Home: true, Affinity: w.Key + "=" + w.Value, AffinityWeight: w.Weight}
		}
	}
	tier, allowed := l.tier(from, to)
	return Place{Tier: tier, Excluded: !allowed}
}

// tier gives the number of the first rule for clients of zone from that matches zone to, counting only rules for such
// clients; false if none does, or if a None comes first. Without rules everybody is in the first tier.
func (l *LocalitySettings) tier(from, to topology.Zone) (int, bool) {
	if len(l.Failover) == 0 {
		return 1, true
	}
	tier := 0
	for i := range l.Failover {
		f := &l.Failover[i]
		if !f.isFor(from) {
			continue
		}
		if f.To == FailoverNone {
			return 0, false
		}
		tier++
		if f.matches(to) {
			return tier, true
		}
	}
	return 0, false
}

func (f *Failover) isFor(from topology.Zone) bool {
	return len(f.From) == 0 || from != "" && slices.Contains(f.From, from)
}

// matches tells whether the rule allows a zone. One that is not known is in no list.
func (f *Failover) matches(to topology.Zone) bool {
	switch f.To {
	case FailoverAny:
		return true
	case FailoverOnly:
		return to != "" && slices.Contains(f.Zone, to)
	case FailoverAnyExcept:
		return !slices.Contains(f.Zone, to)
	case FailoverNone:
		return false
	default:
		return false
	}
}
