package convert

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/internal/core/topology"
)

// settings reads weir's annotations into svc; a value that is not understood is reported and gives the default.
func (p *problems) settings(svc *topology.Service, annotations map[string]string, o Options) {
	settings := []struct {
		key  string
		read func(field, value string)
	}{
		{api.AnnotationStrategy, func(field, value string) { svc.Overflow.Strategy = p.strategy(field, value, o) }},
		{api.AnnotationPrefer, func(field, value string) {
			svc.Overflow.Prefer = p.oneOf(field, value, api.PreferCost, api.PreferBalanced, api.PreferLatency)
		}},
		{api.AnnotationOverload, func(field, value string) {
			svc.Overflow.Shed = p.oneOf(field, value, api.OverloadShed) != ""
		}},
		{api.AnnotationDrainZone, func(field, value string) { svc.Overflow.Drains = p.drains(field, value) }},
		{api.AnnotationOverloadLimit, func(field, value string) { svc.OverloadLimit = p.overloadLimit(field, value) }},
		{api.AnnotationDemand, func(field, value string) { svc.Demand = p.demand(field, value) }},
	}
	known := make([]string, 0, len(settings))
	for _, setting := range settings {
		known = append(known, setting.key)
		if value, ok := annotations[setting.key]; ok {
			setting.read(at("metadata.annotations", setting.key), value)
		}
	}
	p.unknownKeys("metadata.annotations", annotations, known)
}

// unknownKeys reports weir's keys that mean nothing where they are: a setting with a mistyped key would be passed over in
// silence, and so would a label that was written as an annotation.
func (p *problems) unknownKeys(field string, found map[string]string, known []string) {
	for _, key := range slices.Sorted(maps.Keys(found)) {
		if strings.HasPrefix(key, prefix) && !slices.Contains(known, key) {
			p.add(at(field, key), "weir knows no such key here, want %s: passed over", strings.Join(known, ", "))
		}
	}
}

// prefix begins the keys that are weir's alone.
const prefix = "weir.dev/"

func (p *problems) strategy(field, value string, o Options) string {
	known := func(name string) bool { return strings.EqualFold(name, value) }
	if o.Strategies != nil && !slices.ContainsFunc(o.Strategies, known) {
		p.refuse(field, theDefault, "unknown strategy %q, want one of %s", value, strings.Join(o.Strategies, ", "))
		return ""
	}
	return value
}

func (p *problems) oneOf(field, value string, known ...string) string {
	if !slices.Contains(known, value) {
		p.refuse(field, theDefault, "unknown value %q, want %s", value, strings.Join(known, ", "))
		return ""
	}
	return value
}

// drains reads zone-a=2026-11-20T12:00:00Z,zone-b=…; an entry that is not understood is left out.
func (p *problems) drains(field, value string) []topology.Drain {
	var drains []topology.Drain
	for part := range strings.SplitSeq(value, ",") {
		name, at, _ := strings.Cut(strings.TrimSpace(part), "=")
		z, err := topology.ParseZone(name)
		if err != nil {
			p.refuse(field, leftOut, "%v, want ZONE=TIME", err)
			continue
		}
		until, err := time.Parse(time.RFC3339, at)
		if err != nil {
			p.refuse(field, leftOut, "bad time %q of zone %s, want RFC 3339 as in 2026-11-20T12:00:00Z", at, z)
			continue
		}
		drains = append(drains, topology.Drain{Zone: z, Until: until.UTC()})
	}
	return drains
}

// maxOverloadLimit is far above any sensible limit: an endpoint with eleven times its fair part.
const maxOverloadLimit = 10

// overloadLimit reads a ratio, 0.2, or a percentage, 20%.
func (p *problems) overloadLimit(field, value string) float64 {
	number, isPercent := strings.CutSuffix(strings.TrimSpace(value), "%")
	limit, err := strconv.ParseFloat(number, 64)
	if isPercent {
		limit /= 100
	}
	// Zero would mean the default to readers of the service, and no plan could keep to it.
	if err != nil || math.IsNaN(limit) || limit <= 0 || limit > maxOverloadLimit {
		p.refuse(field, theDefault, "bad limit %q, want a ratio above 0 and up to %d, as in 0.2 or 20%%",
			value, maxOverloadLimit)
		return 0
	}
	return limit
}

// demand reads zone-a=0.7,zone-b=0.3. The whole is given up when a part is bad: the rest would be a wrong picture.
func (p *problems) demand(field, value string) []topology.ZoneDemand {
	var demand []topology.ZoneDemand
	var sum float64
	for part := range strings.SplitSeq(value, ",") {
		name, number, _ := strings.Cut(strings.TrimSpace(part), "=")
		z, err := topology.ParseZone(name)
		if err != nil {
			p.refuse(field, theDefault, "%v, want ZONE=SHARE", err)
			return nil
		}
		share, err := strconv.ParseFloat(number, 64)
		if err != nil || math.IsNaN(share) || math.IsInf(share, 0) || share < 0 {
			p.refuse(field, theDefault, "bad share %q of zone %s, want a number of at least 0", number, z)
			return nil
		}
		if slices.ContainsFunc(demand, func(d topology.ZoneDemand) bool { return d.Zone == z }) {
			p.refuse(field, theDefault, "zone %s occurs twice", z)
			return nil
		}
		sum += share
		demand = append(demand, topology.ZoneDemand{Zone: z, Share: share})
	}
	if sum == 0 || math.IsInf(sum, 0) {
		p.refuse(field, theDefault, "the shares sum to %v", sum)
		return nil
	}
	slices.SortFunc(demand, func(a, b topology.ZoneDemand) int { return strings.Compare(string(a.Zone), string(b.Zone)) })
	return demand
}
