package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-lb/weir/internal/core/topology"
)

// scope refuses a place that a verb cannot be about.
func (v *validator) scope(sc scope, w Where) error {
	switch sc {
	case ofClients:
		return v.clientZone(w)
	case ofEndpoints:
		return v.where(w)
	case ofZones:
		if !w.IsWhole() {
			return fmt.Errorf("place %s: this verb is about whole zones; leave %s out", w, w.numbers())
		}
		return v.where(w)
	case ofOneZone:
		if w.Zone == "" || !w.IsWhole() {
			return fmt.Errorf("place %s: want one whole zone, as in a or a@west", w)
		}
		return v.placeForPods(w)
	case ofHomeZone:
		if w.Zone == "" || w.Cluster != "" || !w.IsWhole() {
			return fmt.Errorf("place %s: want one whole zone of the clients' own cluster, as in a", w)
		}
		return v.where(w)
	}
	return nil
}

// numbers gives what follows the zone in the text of a place.
func (w Where) numbers() string {
	_, numbers, _ := strings.Cut(w.String(), "/")
	return "/" + numbers
}

func (v *validator) clientZone(w Where) error {
	if w.Cluster != "" || !w.IsWhole() {
		return fmt.Errorf("place %s: want the clients of a zone, as in a, or *", w)
	}
	if w.Zone != "" && v.s.clientsOf(w.Zone) == nil {
		return fmt.Errorf("zone %s has no clients: it is not in clients", w.Zone)
	}
	return nil
}

// placeForPods refuses a zone that no node and no endpoint of the world is in.
func (v *validator) placeForPods(w Where) error {
	if w.Cluster != "" {
		return v.where(w)
	}
	if !slices.Contains(v.zones, w.Zone) {
		return fmt.Errorf("zone %s is not in the world: it has %s", w.Zone, list(v.zones))
	}
	return nil
}

// where refuses a place without endpoints.
func (v *validator) where(w Where) error {
	if err := w.check(); err != nil {
		return err
	}
	most := 0
	whole := Where{Zone: w.Zone, Cluster: w.Cluster}
	for g, n := range v.most {
		if whole.Has(g.zone, g.cluster, 1, 1) {
			most = max(most, n)
		}
	}
	if most == 0 {
		return fmt.Errorf("place %s has no endpoints: %s", w, v.hint(w))
	}
	if w.Last > most {
		return fmt.Errorf("place %s: there is no endpoint %d, the zone never has more than %d", w, w.Last, most)
	}
	return nil
}

// check refuses a place that cannot be written.
func (w Where) check() error {
	isRange := w.First == 0 && w.Last == 0 || w.First >= 1 && w.Last >= w.First
	isPart := w.Part == 0 || w.Part > 0 && w.Part <= 1 && w.First == 0
	if !isRange || !isPart {
		return fmt.Errorf("place %s: want endpoints counted from 1, or a part of them, as in a/1-3 or a/50%%", w)
	}
	return nil
}

// countMost finds how many endpoints each zone can have in the run: those of the world, or as many as steps and
// autoscaling make.
func (v *validator) countMost() {
	v.most = maps.Clone(v.endpoints)
	for i := range v.s.Steps {
		if st := &v.s.Steps[i]; st.Verb == Scale {
			g := group{st.Where.Zone, st.Where.Cluster}
			v.most[g] = max(v.most[g], st.Count)
		}
	}
	if v.s.Autoscale != nil {
		for _, zone := range v.zones {
			g := group{zone: zone}
			v.most[g] = max(v.most[g], v.s.Autoscale.Max)
		}
	}
}

// hint says what a place without endpoints may have meant.
func (v *validator) hint(w Where) string {
	var clusters, zones []string
	for g := range v.endpoints {
		if g.cluster != "" {
			clusters = append(clusters, g.cluster)
		}
		if g.cluster == w.Cluster {
			zones = append(zones, string(g.zone))
		}
	}
	slices.Sort(clusters)
	slices.Sort(zones)
	clusters = slices.Compact(clusters)
	if w.Cluster != "" && !slices.Contains(clusters, w.Cluster) {
		return fmt.Sprintf("the world has the clusters %s", orNone(clusters))
	}
	return fmt.Sprintf("the zones with some are %s", orNone(zones))
}

func list(zones []topology.Zone) string {
	var names []string
	for _, zone := range zones {
		names = append(names, string(zone))
	}
	return orNone(names)
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
