package policy

import (
	"cmp"
	"math"
	"strconv"
	"strings"
)

func (v *validator) locality(l *Locality) {
	v.disabled(l)
	if l.ZoneKey != nil {
		v.key(pathZoneKey, *l.ZoneKey)
	}
	v.affinity(l.Affinity)
	v.weights(l)
	v.failover(l.Failover)
	v.overflow(&l.Overflow)
	v.costs(l.Costs)
}

// disabled refuses an object that switches locality off and says how it works at once. The mesh's own dialect has a meaning for
// that: what is said wins over disabled, which the loader drops.
func (v *validator) disabled(l *Locality) {
	if !value(l.Disabled, false) {
		return
	}
	for _, field := range []struct {
		path string
		said bool
	}{
		{pathAffinity, len(l.Affinity) > 0},
		{pathWeights, len(l.Weights) > 0},
		{pathFailover, len(l.Failover) > 0},
		{pathThreshold, l.FailoverThreshold != nil},
		{pathMaxSkew, l.MaxSkew != nil},
		{"locality.overflow", l.Overflow.Mode != nil || l.Overflow.LoadBand != nil},
	} {
		switch {
		case !field.said:
		case v.dialect.IsMesh():
			v.warn(pathDisabled, "has no effect beside %s", field.path)
		default:
			v.refuse(field.path, "contradicts locality.disabled, with which all endpoints are home")
		}
	}
	if l.ZoneKey != nil {
		v.warn(pathZoneKey, "unused: locality is disabled")
	}
	if len(l.Costs) > 0 {
		v.warn(pathCosts, "unused: locality is disabled")
	}
}

func (v *validator) affinity(affinities []Affinity) {
	weighted, sum := 0, int64(0)
	first := make(map[string]int)
	n := v.entries(pathAffinity, len(affinities), MaxAffinity)
	for i, a := range affinities[:n] {
		path := pathAt(pathAffinity, i)
		v.key(path+".key", a.Key)
		if earlier, ok := first[a.Key]; ok {
			v.warn(path, "unreachable: entry %d has the same key", earlier)
		} else {
			first[a.Key] = i
		}
		if a.Weight == nil {
			continue
		}
		weighted++
		sum += v.weight(path, *a.Weight)
	}
	if weighted != 0 && weighted != n {
		v.refuse(pathAffinity, "has a weight in %d of %d entries: want it in all or in none", weighted, n)
	}
	v.sum(pathAffinity, sum)
}

// weight refuses what is no weight; it gives what counts in a sum.
func (v *validator) weight(path string, n int64) int64 {
	if n < 1 || n > math.MaxUint32 {
		v.refuse(path+".weight", "is %d: want 1 to %d", n, uint32(math.MaxUint32))
		return 0
	}
	return n
}

// sum refuses weights that, with the 1 of endpoints that match none, do not fit 32 bits.
func (v *validator) sum(path string, sum int64) {
	if sum > math.MaxUint32 {
		v.refuse(path, "has weights that come to %d: want at most %d", sum, uint32(math.MaxUint32))
	}
}

func (v *validator) weights(l *Locality) {
	sum := int64(0)
	n := v.entries(pathWeights, len(l.Weights), MaxWeights)
	for i, w := range l.Weights[:n] {
		path := pathAt(pathWeights, i)
		v.key(path+".key", w.Key)
		v.name(path+".value", w.Value, MaxNameLength)
		sum += v.weight(path, w.Weight)
	}
	v.sum(pathWeights, sum)
	if len(l.Weights) > 0 && len(l.Affinity) > 0 {
		v.refuse(pathWeights, "takes the place of the zone, so that locality.affinity has no meaning: want one of the two")
	}
}

func (v *validator) failover(rules []Failover) {
	n := v.entries(pathFailover, len(rules), MaxFailover)
	for i := range rules[:n] {
		f, path := &rules[i], pathAt(pathFailover, i)
		if f.From != nil && len(f.From.Zones) == 0 {
			v.refuse(path+".from.zones", "must not be empty where there is a from")
		}
		v.zones(path+".from.zones", fromZones(f))
		v.targetZones(path+".to.zones", f.To.Zones)
		switch f.To.Type {
		case FailoverAny, FailoverNone:
			if len(f.To.Zones) > 0 {
				v.refuse(path+".to.zones", "must be empty for type %s", f.To.Type)
			}
		case FailoverOnly, FailoverAnyExcept:
			if len(f.To.Zones) == 0 {
				v.refuse(path+".to.zones", "must not be empty for type %s", f.To.Type)
			}
		case "":
			v.refuse(path+".to.type", "must not be empty")
		default:
			v.refuse(path+".to.type", "%.80q is unrecognized: want Any, Only, AnyExcept or None", f.To.Type)
		}
	}
	for _, i := range unreachable(rules[:n]) {
		v.warn(pathAt(pathFailover, i), "unreachable: "+whyUnreachable)
	}
}

// zones refuses a list that is too long, and names that no zone can have.
func (v *validator) zones(path string, zones []string) {
	for i := range v.entries(path, len(zones), MaxZones) {
		at := pathAt(path, i)
		if v.name(at, zones[i], MaxZoneNameLength) && !v.dialect.IsMesh() && !isLabelValue(zones[i]) {
			v.refuse(at, "%s is no zone's name", strconv.Quote(zones[i]))
		}
	}
}

// targetZones checks zones that may name their cluster: ZONE, ZONE@CLUSTER or @CLUSTER.
func (v *validator) targetZones(path string, zones []string) {
	plain := make([]string, len(zones))
	for i, name := range zones {
		zone, cluster, isAway := strings.Cut(name, clusterMark)
		switch {
		case !isAway || v.dialect.IsMesh():
			plain[i] = name
		case cluster == "" || !isLabelValue(cluster) || len(cluster) > MaxNameLength:
			v.refuse(pathAt(path, i), "%s names no cluster: want ZONE, ZONE@CLUSTER or @CLUSTER", strconv.Quote(name))
			fallthrough
		default:
			plain[i] = cmp.Or(zone, cluster, name)
		}
	}
	v.zones(path, plain)
}

func (v *validator) overflow(o *Overflow) {
	if o.Mode != nil {
		switch *o.Mode {
		case OverflowAdaptive, OverflowLoadBand, OverflowDisabled:
		default:
			v.refuse(pathOverflowMode, "%.80q is not known: want Adaptive, LoadBand or Disabled", *o.Mode)
		}
	}
	b := o.LoadBand
	if b == nil {
		return
	}
	if o.Mode != nil && *o.Mode != OverflowLoadBand {
		v.refuse(pathLoadBand, "belongs to mode LoadBand: the mode is %.80q", *o.Mode)
	}
	if b.Low >= b.High {
		v.refuse(pathLoadBand, "goes from %v to %v: want low below high", b.Low, b.High)
	}
}

func (v *validator) costs(costs []Cost) {
	type pair struct{ from, to string }
	first := make(map[pair]int)
	for i := range v.entries(pathCosts, len(costs), MaxCosts) {
		c, path := &costs[i], pathAt(pathCosts, i)
		v.name(path+".from", c.From, MaxZoneNameLength)
		v.name(path+".to", c.To, MaxZoneNameLength)
		if !(c.Cost >= 0 && !math.IsInf(float64(c.Cost), 0)) {
			v.refuse(path+".cost", "is %v: want a finite number of at least 0", c.Cost)
		}
		if earlier, ok := first[pair{c.From, c.To}]; ok {
			v.refuse(path, "is for the same zones as entry %d", earlier)
			continue
		}
		first[pair{c.From, c.To}] = i
	}
}
