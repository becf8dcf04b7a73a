package policy

import (
	"math"
	"slices"
	"time"
)

// The defaults of what policies may leave out.
const (
	DefaultChoiceCount       = 2 // more make clients crowd the same endpoint
	DefaultActiveRequestBias = 1
	DefaultZoneKey           = labelZone
	DefaultLoadBandLow       = 0.8 // HAZL's
	DefaultLoadBandHigh      = 2.0 // HAZL's

	// Envoy's, for who turns outlier detection on, but for the part of a pool that may sit out: the bound holds for weir's
	// own rules as well, and who asks for more detection must not get less (Envoy has 10).
	DefaultInterval           = 10 * time.Second
	DefaultBaseEjectionTime   = 30 * time.Second
	DefaultMaxEjectionTime    = 300 * time.Second
	DefaultMaxEjectionPercent = 50
	DefaultStdev              = 1.9
	DefaultMinimumHosts       = 5
	DefaultSuccessVolume      = 100
	DefaultFailureThreshold   = 85
	DefaultFailureVolume      = 50

	DefaultMinWeightPercent = 10
	DefaultAggression       = 1
)

// settings fills in the defaults and takes out what has no effect.
func (f *fold) settings() Settings {
	s := Settings{
		Algorithm:       f.algorithm(),
		EndpointHashKey: EndpointHashKey{Type: HashKeyAddress},
		HashFunction:    XXHash,
	}
	f.fillBalancer(&s)
	f.fillHashing(&s)
	f.fillLocality(&s.Locality)
	s.Outlier = f.outlier()
	s.SlowStart = f.slowStart(s.Algorithm)
	s.Panic = f.conf.PanicThreshold
	return s
}

func (f *fold) algorithm() Algorithm {
	if f.isMeshDefault() {
		return RoundRobin
	}
	return balancer(&f.conf).Type
}

func (f *fold) fillBalancer(s *Settings) {
	b := balancer(&f.conf)
	least, ring, maglev := block(b.LeastRequest), block(b.RingHash), block(b.Maglev)
	s.ChoiceCount = value(least.ChoiceCount, DefaultChoiceCount)
	s.ActiveRequestBias = value(least.ActiveRequestBias, DefaultActiveRequestBias)
	if ring.HashFunction != "" {
		s.HashFunction = ring.HashFunction
	}
	s.MaxRingSize = value(ring.MaxRingSize, MaxRingSize)
	s.MinRingSize = value(ring.MinRingSize, DefaultMinRingSize)
	if s.MinRingSize > s.MaxRingSize {
		// Each author kept to the rules and the two together do not. The bound on memory is the one to keep.
		f.remark(pathMinRingSize, pathMinRingSize, "is lowered to the maxRingSize that holds, "+sizeText(s.MaxRingSize))
		s.MinRingSize = s.MaxRingSize
	}
	s.TableSize = value(maglev.TableSize, DefaultTableSize)
}

func (f *fold) fillHashing(s *Settings) {
	if !s.Algorithm.IsHashing() {
		f.unused("unused: "+algorithmText(s.Algorithm)+" does not hash requests", pathHashPolicies, pathEndpointHashKey)
		return
	}
	s.HashPolicies = f.conf.HashPolicies
	if f.conf.EndpointHashKey != nil {
		s.EndpointHashKey = *f.conf.EndpointHashKey
	}
}

func algorithmText(a Algorithm) string {
	if a == "" {
		return "the default algorithm"
	}
	return string(a)
}

func (f *fold) fillLocality(s *LocalitySettings) {
	l := &f.conf.Locality
	s.ZoneKey = DefaultZoneKey
	s.Failover = []Failover{{To: FailoverAny}}
	s.Explicit = l.saysSomething()
	if value(l.Disabled, false) {
		s.Disabled = true
		f.unused("overridden: locality is disabled", pathZoneKey, pathAffinity, pathWeights, pathFailover, pathThreshold,
			pathOverflowMode, pathLoadBand, pathCosts)
		return
	}
	s.ZoneKey = value(l.ZoneKey, DefaultZoneKey)
	s.Weights = l.Weights
	if len(l.Weights) > 0 {
		f.unused("overridden: fixed weights take the place of the zone", pathAffinity)
	} else {
		s.Affinity = withWeights(l.Affinity)
	}
	if len(l.Failover) > 0 {
		s.Failover = l.Failover
		for _, i := range unreachable(l.Failover) {
			f.remark(pathFailover, pathAt(pathFailover, i), "unreachable: "+whyUnreachable)
		}
	}
	s.Threshold = l.FailoverThreshold
	s.Costs = l.Costs
	f.fillOverflow(s)
}

func (f *fold) fillOverflow(s *LocalitySettings) {
	o := &f.conf.Locality.Overflow
	s.Overflow = value(o.Mode, "")
	if o.Mode == nil && o.LoadBand != nil {
		s.Overflow = OverflowLoadBand
	}
	if s.Overflow != OverflowLoadBand {
		f.unused("unused: the mode is "+string(s.Overflow), pathLoadBand)
		return
	}
	s.LoadBand = value(o.LoadBand, LoadBand{Low: DefaultLoadBandLow, High: DefaultLoadBandHigh})
}

// saysSomething tells whether the author set any field of it.
func (l *Locality) saysSomething() bool {
	return l.Disabled != nil || l.ZoneKey != nil || l.Affinity != nil || l.Weights != nil || l.Failover != nil ||
		l.FailoverThreshold != nil || l.Overflow.Mode != nil || l.Overflow.LoadBand != nil || l.Costs != nil
}

// withWeights gives affinities their weights. Without any of the author's the n-th from the end gets 9·10ⁿ, so that each
// group gets nine parts in ten of what the groups before it leave.
func withWeights(affinities []Affinity) []AffinityWeight {
	var weighted []AffinityWeight
	weight := uint64(9)
	for _, a := range slices.Backward(affinities) {
		weighted = append(weighted, AffinityWeight{a.Key, value(a.Weight, uint32(min(weight, math.MaxUint32)))})
		weight = min(10*weight, math.MaxUint32)
	}
	slices.Reverse(weighted)
	return weighted
}

func (f *fold) outlier() *OutlierSettings {
	o := f.conf.OutlierDetection
	if o == nil {
		return nil
	}
	s := &OutlierSettings{
		Interval:           value(o.Interval, DefaultInterval),
		BaseEjectionTime:   value(o.BaseEjectionTime, DefaultBaseEjectionTime),
		MaxEjectionTime:    value(o.MaxEjectionTime, DefaultMaxEjectionTime),
		MaxEjectionPercent: value(o.MaxEjectionPercent, DefaultMaxEjectionPercent),
	}
	if s.MaxEjectionTime < s.BaseEjectionTime {
		f.remark(pathMaxEjection, pathMaxEjection, "is raised to the baseEjectionTime that holds, "+durationText(s.BaseEjectionTime))
		s.MaxEjectionTime = s.BaseEjectionTime
	}
	if c := o.Consecutive; c != nil {
		s.ServerErrors, s.GatewayErrors, s.LocalErrors = value(c.ServerErrors, 0), value(c.GatewayErrors, 0), value(c.LocalErrors, 0)
	}
	if r := o.SuccessRate; r != nil {
		s.SuccessRateStdev = value(r.Stdev, DefaultStdev)
		s.SuccessRateMinimumHosts = value(r.MinimumHosts, DefaultMinimumHosts)
		s.SuccessRateRequestVolume = value(r.RequestVolume, DefaultSuccessVolume)
	}
	if p := o.FailurePercentage; p != nil {
		s.FailureThreshold = value(p.Threshold, DefaultFailureThreshold)
		s.FailureMinimumHosts = value(p.MinimumHosts, DefaultMinimumHosts)
		s.FailureRequestVolume = value(p.RequestVolume, DefaultFailureVolume)
	}
	return s
}

func (f *fold) slowStart(a Algorithm) *SlowStartSettings {
	s := f.conf.SlowStart
	if s == nil {
		return nil
	}
	if !a.startsSlowly() {
		f.unused("unused: "+algorithmText(a)+" has no slow start", pathSlowStart)
		return nil
	}
	return &SlowStartSettings{
		Window:           s.Window,
		MinWeightPercent: value(s.MinWeightPercent, DefaultMinWeightPercent),
		Aggression:       value(s.Aggression, DefaultAggression),
	}
}

// startsSlowly tells whether a slow start may be asked of the algorithm. Of the one that nobody chose it may: the data plane
// decides.
func (a Algorithm) startsSlowly() bool { return a == RoundRobin || a == LeastRequest || a == "" }

// value gives what was said, else the default.
func value[T any](said *T, otherwise T) T {
	if said == nil {
		return otherwise
	}
	return *said
}
