package policy

import (
	"slices"
	"strconv"
	"strings"

	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// unreachable lists the failover rules that no traffic ever asks, because a None or an Any before them is for all of the
// clients that they are for.
func unreachable(rules []Failover) []int {
	var found []int
	ended := make(map[string]bool)
	all := false
	for i := range rules {
		from := fromZones(&rules[i])
		if all || len(from) > 0 && !slices.ContainsFunc(from, func(z string) bool { return !ended[z] }) {
			found = append(found, i)
			continue
		}
		if to := rules[i].To.Type; to != FailoverNone && to != FailoverAny {
			continue
		}
		all = all || len(from) == 0
		for _, z := range from {
			ended[z] = true
		}
	}
	return found
}

const whyUnreachable = "a rule before it goes to Any or None for all of its clients"

// pathAt names an entry of a list.
func pathAt(list string, i int) string { return list + "[" + strconv.Itoa(i) + "]" }

// UnknownZones notes each zone that a rule names and that does not exist: it is neither among known nor, where some rule
// defines zones by another label, a value of that label on a node or a pod. Where nothing is known, nothing is noted.
func (s *Set) UnknownZones(known []topology.Zone) []reason.Finding {
	if s == nil {
		return nil
	}
	exists := s.zones(known)
	if len(exists) == 0 {
		return nil
	}
	var notes []reason.Finding
	for i := range s.Rules {
		r := &s.Rules[i]
		for _, named := range r.zones() {
			if !exists[named.zone] {
				message := "there is no zone " + strconv.Quote(string(named.zone))
				notes = append(notes, r.Origin.Finding(named.path, reason.NotFound, message))
			}
		}
	}
	return notes
}

// namedZone is a zone and where it is named.
type namedZone struct {
	path string
	zone topology.Zone
}

// zones lists all zones that a rule names.
func (r *Rule) zones() []namedZone {
	var found []namedZone
	list := func(path string, zones []string) {
		for i, z := range zones {
			found = append(found, namedZone{pathAt(path, i), topology.Zone(z)})
		}
	}
	for i, z := range r.Clients.Zones {
		found = append(found, namedZone{pathAt("clients.zones", i), z})
	}
	l := &r.Conf.Locality
	for i, w := range l.Weights {
		if w.Key == labelZone {
			found = append(found, namedZone{pathAt(pathWeights, i) + ".value", topology.Zone(w.Value)})
		}
	}
	for i := range l.Failover {
		list(pathAt(pathFailover, i)+".from.zones", fromZones(&l.Failover[i]))
		for j, name := range l.Failover[i].To.Zones {
			if !strings.Contains(name, clusterMark) { // what other clusters have comes and goes
				found = append(found, namedZone{pathAt(pathAt(pathFailover, i)+".to.zones", j), topology.Zone(name)})
			}
		}
	}
	for i, c := range l.Costs {
		path := pathAt(pathCosts, i)
		found = append(found, namedZone{path + ".from", topology.Zone(c.From)}, namedZone{path + ".to", topology.Zone(c.To)})
	}
	return found
}

// zones gives the zones that exist, by name.
func (s *Set) zones(known []topology.Zone) map[topology.Zone]bool {
	exists := make(map[topology.Zone]bool)
	for _, z := range known {
		exists[z] = true
	}
	keys := make(map[string]bool) // each once: there may be as many rules as pods
	for i := range s.Rules {
		key := s.Rules[i].Conf.Locality.ZoneKey
		if key == nil || keys[*key] {
			continue
		}
		keys[*key] = true
		for _, labels := range s.Nodes {
			exists[topology.Zone(labels[*key])] = true
		}
		for j := range s.Pods {
			exists[topology.Zone(s.Pods[j].Labels[*key])] = true
		}
	}
	delete(exists, "")
	return exists
}
