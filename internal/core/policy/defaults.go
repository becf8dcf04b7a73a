package policy

import (
	"math"
	"reflect"
	"slices"
	"strconv"
	"time"
)

// DefaultZoneKey is the label that makes a zone.
const DefaultZoneKey = labelZone

// Defaults are what holds where policies say nothing. Those of outlierDetection and its detectors, slowStart and loadBand hold
// where a policy sets that.
func Defaults() Conf {
	return Conf{
		LoadBalancer: &LoadBalancer{
			LeastRequest: &LeastRequestConf{
				ChoiceCount:       new(int32(2)), // more make clients crowd the same endpoint
				ActiveRequestBias: new(Number(1)),
			},
			RingHash: &RingHashConf{
				HashFunction: new(XXHash), MinRingSize: new(int64(DefaultMinRingSize)), MaxRingSize: new(int64(MaxRingSize)),
			},
			Maglev: &MaglevConf{TableSize: new(int64(DefaultTableSize))},
		},
		EndpointHashKey: &EndpointHashKey{Type: HashKeyAddress},
		Locality: Locality{
			ZoneKey:  new(DefaultZoneKey),
			Failover: []Failover{{To: FailoverTo{Type: FailoverAny}}},
			Overflow: Overflow{LoadBand: &LoadBand{Low: 0.8, High: 2}}, // HAZL's
		},
		// Envoy's, but for the part of a pool that may be ejected: the bound holds for weir's own rules as well, and a policy that sets
		// more detection must not get less (Envoy has 10).
		OutlierDetection: &OutlierDetection{
			Interval:           new(Duration(10 * time.Second)),
			BaseEjectionTime:   new(Duration(30 * time.Second)),
			MaxEjectionTime:    new(Duration(300 * time.Second)),
			MaxEjectionPercent: new(Number(50)),
			Consecutive:        &Consecutive{ServerErrors: new(int32), GatewayErrors: new(int32), LocalErrors: new(int32)}, // off
			SuccessRate:        &SuccessRate{Stdev: new(Number(1.9)), MinimumHosts: new(int32(5)), RequestVolume: new(int32(100))},
			FailurePercentage: &FailurePercentage{
				Threshold: new(Number(85)), MinimumHosts: new(int32(5)), RequestVolume: new(int32(50)),
			},
		},
		SlowStart: &SlowStart{MinWeightPercent: new(Number(10)), Aggression: new(Number(1))},
	}
}

// only leaves of the defaults those of what c asks for.
func only(d, c *Conf) Conf {
	asked := *d
	if m := c.Locality.Overflow.Mode; m == nil || *m != OverflowLoadBand {
		asked.Locality.Overflow.LoadBand = nil
	}
	if o := c.OutlierDetection; o != nil {
		detectors := *d.OutlierDetection
		detectors.SuccessRate = onlyWith(o.SuccessRate, detectors.SuccessRate)
		detectors.FailurePercentage = onlyWith(o.FailurePercentage, detectors.FailurePercentage)
		asked.OutlierDetection = &detectors
	} else {
		asked.OutlierDetection = nil
	}
	asked.SlowStart = onlyWith(c.SlowStart, d.SlowStart)
	return asked
}

// onlyWith gives the default of a block that is there.
func onlyWith[T any](said, otherwise *T) *T {
	if said == nil {
		return nil
	}
	return otherwise
}

// fill sets what a struct leaves out to the defaults. Blocks are copied: rules share them.
func fill(to, defaults reflect.Value) {
	for i := range to.NumField() {
		f, d := to.Field(i), defaults.Field(i)
		switch {
		case d.IsZero():
		case f.Kind() == reflect.Struct:
			fill(f, d)
		case f.Kind() == reflect.Pointer && f.Type().Elem().Kind() == reflect.Struct && !f.IsNil():
			whole := reflect.New(f.Type().Elem())
			whole.Elem().Set(f.Elem())
			fill(whole.Elem(), d.Elem())
			f.Set(whole)
		case f.IsZero():
			f.Set(d)
		}
	}
}

// settings takes out what has no effect and fills in the defaults.
func (f *fold) settings() Settings {
	s := Settings{Conf: f.conf, HasLocality: !reflect.ValueOf(f.conf.Locality).IsZero()}
	c := &s.Conf
	algorithm := f.algorithm()
	if algorithm != "" && c.LoadBalancer == nil {
		c.LoadBalancer = &LoadBalancer{Type: algorithm} // a mesh's default
	}
	if !algorithm.IsHashing() {
		f.unused("unused: "+algorithmText(algorithm)+" does not hash requests", pathHashPolicies, pathEndpointHashKey)
		c.HashPolicies, c.EndpointHashKey = nil, nil
	}
	f.cleanLocality(&c.Locality)
	if c.SlowStart != nil && !startsSlowly(algorithm) {
		f.unused("unused: "+algorithmText(algorithm)+" has no slow start", pathSlowStart)
		c.SlowStart = nil
	}
	defaults := only(&f.index.defaults, c)
	fill(reflect.ValueOf(c).Elem(), reflect.ValueOf(&defaults).Elem())
	f.reconcile(c)
	return s
}

func (f *fold) algorithm() Algorithm {
	if f.isMeshDefault() {
		return RoundRobin
	}
	return block(f.conf.LoadBalancer).Type
}

func algorithmText(a Algorithm) string {
	if a == "" {
		return "the default algorithm"
	}
	return string(a)
}

// cleanLocality takes out what other fields leave without effect.
func (f *fold) cleanLocality(l *Locality) {
	if value(l.Disabled, false) {
		f.unused("overridden: locality is disabled", pathZoneKey, pathAffinity, pathWeights, pathFailover, pathThreshold, pathMaxSkew,
			pathOverflowMode, pathLoadBand, pathCosts)
		*l = Locality{Disabled: l.Disabled}
		return
	}
	if len(l.Weights) > 0 {
		f.unused("overridden: fixed weights take the place of the zone", pathAffinity)
		l.Affinity = nil
	}
	l.Affinity = withWeights(l.Affinity)
	if len(l.Failover) == 0 {
		l.Failover = nil
	}
	for _, i := range unreachable(l.Failover) {
		f.remark(pathFailover, pathAt(pathFailover, i), "unreachable: "+whyUnreachable)
	}
	o := &l.Overflow
	if o.Mode == nil && o.LoadBand != nil {
		o.Mode = new(OverflowLoadBand)
	}
	if mode := value(o.Mode, ""); mode != OverflowLoadBand {
		f.unused("unused: the mode is "+string(mode), pathLoadBand)
		o.LoadBand = nil
	}
}

// withWeights gives affinities their weights. Without any of the author's the n-th from the end gets 9·10ⁿ, so that each
// group gets nine parts in ten of what the groups before it leave.
func withWeights(affinities []Affinity) []Affinity {
	weighted := slices.Clone(affinities)
	weight := int64(9)
	for i := range slices.Backward(weighted) {
		if weighted[i].Weight == nil {
			weighted[i].Weight = new(min(weight, math.MaxUint32))
		}
		weight = min(10*weight, math.MaxUint32)
	}
	return weighted
}

// reconcile changes values of different authors, each of which kept to the rules, that do not fit together. The bound on
// memory is the one to keep.
func (f *fold) reconcile(c *Conf) {
	if r := c.LoadBalancer.RingHash; *r.MinRingSize > *r.MaxRingSize {
		f.remark(pathMinRingSize, pathMinRingSize, "is lowered to the maxRingSize that holds, "+strconv.FormatInt(*r.MaxRingSize, 10))
		r.MinRingSize = r.MaxRingSize
	}
	if o := c.OutlierDetection; o != nil && *o.MaxEjectionTime < *o.BaseEjectionTime {
		f.remark(pathMaxEjection, pathMaxEjection, "is raised to the baseEjectionTime that holds, "+o.BaseEjectionTime.String())
		o.MaxEjectionTime = o.BaseEjectionTime
	}
}

// startsSlowly tells whether a slow start may be asked of the algorithm. Of one that no policy names it may: the data plane
// decides.
func startsSlowly(a Algorithm) bool { return a == RoundRobin || a == LeastRequest || a == "" }
