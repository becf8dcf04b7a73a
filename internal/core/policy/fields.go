package policy

import (
	"strconv"
	"time"
)

// field is one field of a Conf that is set as a whole: where it stands, and what a Conf says there. A bit set holds one bit
// for each, so there are at most 64.
type field struct {
	path string
	text func(*Conf) (string, bool) // false: nothing was said
}

// The paths that notes and findings name besides the table.
const (
	pathLoadBalancer    = "loadBalancer"
	pathHashPolicies    = "hashPolicies"
	pathEndpointHashKey = "endpointHashKey"
	pathAffinity        = "locality.affinity"
	pathFailover        = "locality.failover"
	pathThreshold       = "locality.failoverThreshold"
	pathWeights         = "locality.weights"
	pathZoneKey         = "locality.zoneKey"
	pathCosts           = "locality.costs"
	pathDisabled        = "locality.disabled"
	pathOverflowMode    = "locality.overflow.mode"
	pathLoadBand        = "locality.overflow.loadBand"
	pathOutlier         = "outlierDetection"
	pathSlowStart       = "slowStart"
	pathPanic           = "panicThreshold"
	pathType            = "loadBalancer.type"
	pathMinRingSize     = "loadBalancer.ringHash.minRingSize"
	pathMaxRingSize     = "loadBalancer.ringHash.maxRingSize"
	pathTableSize       = "loadBalancer.maglev.tableSize"
	pathBaseEjection    = "outlierDetection.baseEjectionTime"
	pathMaxEjection     = "outlierDetection.maxEjectionTime"
)

// fieldTable lists every field in the order of the CRD.
func fieldTable() []field {
	table := balancerFields()
	table = append(table, localityFields()...)
	table = append(table, outlierFields()...)
	return append(
		table,
		field{pathSlowStart, func(c *Conf) (string, bool) { return text(c.SlowStart, SlowStart.String) }},
		field{pathPanic, func(c *Conf) (string, bool) { return text(c.PanicThreshold, numberText) }},
	)
}

func balancerFields() []field {
	return []field{
		{pathType, func(c *Conf) (string, bool) {
			b := balancer(c)
			return string(b.Type), b.Type != ""
		}},
		{"loadBalancer.leastRequest.choiceCount", func(c *Conf) (string, bool) {
			return text(block(balancer(c).LeastRequest).ChoiceCount, strconv.Itoa)
		}},
		{"loadBalancer.leastRequest.activeRequestBias", func(c *Conf) (string, bool) {
			return text(block(balancer(c).LeastRequest).ActiveRequestBias, numberText)
		}},
		{"loadBalancer.ringHash.hashFunction", func(c *Conf) (string, bool) {
			f := block(balancer(c).RingHash).HashFunction
			return string(f), f != ""
		}},
		{pathMinRingSize, func(c *Conf) (string, bool) { return text(block(balancer(c).RingHash).MinRingSize, sizeText) }},
		{pathMaxRingSize, func(c *Conf) (string, bool) { return text(block(balancer(c).RingHash).MaxRingSize, sizeText) }},
		{pathTableSize, func(c *Conf) (string, bool) { return text(block(balancer(c).Maglev).TableSize, sizeText) }},
		{pathHashPolicies, func(c *Conf) (string, bool) { return listText(c.HashPolicies), c.HashPolicies != nil }},
		{pathEndpointHashKey, func(c *Conf) (string, bool) { return text(c.EndpointHashKey, EndpointHashKey.String) }},
	}
}

func localityFields() []field {
	return []field{
		{pathDisabled, func(c *Conf) (string, bool) { return text(c.Locality.Disabled, strconv.FormatBool) }},
		{pathZoneKey, func(c *Conf) (string, bool) { return text(c.Locality.ZoneKey, itself[string]) }},
		{pathAffinity, func(c *Conf) (string, bool) { return listText(c.Locality.Affinity), c.Locality.Affinity != nil }},
		{pathWeights, func(c *Conf) (string, bool) { return listText(c.Locality.Weights), c.Locality.Weights != nil }},
		{pathFailover, func(c *Conf) (string, bool) { return listText(c.Locality.Failover), c.Locality.Failover != nil }},
		{pathThreshold, func(c *Conf) (string, bool) { return text(c.Locality.FailoverThreshold, numberText) }},
		{pathOverflowMode, func(c *Conf) (string, bool) { return text(c.Locality.Overflow.Mode, itself[OverflowMode]) }},
		{pathLoadBand, func(c *Conf) (string, bool) { return text(c.Locality.Overflow.LoadBand, LoadBand.String) }},
		{pathCosts, func(c *Conf) (string, bool) { return listText(c.Locality.Costs), c.Locality.Costs != nil }},
	}
}

func outlierFields() []field {
	count := func(path string, of func(*OutlierDetection) *int) field {
		return field{path, func(c *Conf) (string, bool) { return text(of(outlier(c)), strconv.Itoa) }}
	}
	number := func(path string, of func(*OutlierDetection) *float64) field {
		return field{path, func(c *Conf) (string, bool) { return text(of(outlier(c)), numberText) }}
	}
	length := func(path string, of func(*OutlierDetection) *time.Duration) field {
		return field{path, func(c *Conf) (string, bool) { return text(of(outlier(c)), durationText) }}
	}
	return []field{
		length("outlierDetection.interval", func(o *OutlierDetection) *time.Duration { return o.Interval }),
		length(pathBaseEjection, func(o *OutlierDetection) *time.Duration { return o.BaseEjectionTime }),
		length(pathMaxEjection, func(o *OutlierDetection) *time.Duration { return o.MaxEjectionTime }),
		number("outlierDetection.maxEjectionPercent", func(o *OutlierDetection) *float64 { return o.MaxEjectionPercent }),
		count("outlierDetection.consecutive.serverErrors", func(o *OutlierDetection) *int { return block(o.Consecutive).ServerErrors }),
		count("outlierDetection.consecutive.gatewayErrors", func(o *OutlierDetection) *int { return block(o.Consecutive).GatewayErrors }),
		count("outlierDetection.consecutive.localErrors", func(o *OutlierDetection) *int { return block(o.Consecutive).LocalErrors }),
		{"outlierDetection.successRate", func(c *Conf) (string, bool) {
			s := outlier(c).SuccessRate
			return "on", s != nil && *s == SuccessRate{}
		}},
		number("outlierDetection.successRate.stdev", func(o *OutlierDetection) *float64 { return block(o.SuccessRate).Stdev }),
		count("outlierDetection.successRate.minimumHosts", func(o *OutlierDetection) *int { return block(o.SuccessRate).MinimumHosts }),
		count("outlierDetection.successRate.requestVolume", func(o *OutlierDetection) *int { return block(o.SuccessRate).RequestVolume }),
		{"outlierDetection.failurePercentage", func(c *Conf) (string, bool) {
			f := outlier(c).FailurePercentage
			return "on", f != nil && *f == FailurePercentage{}
		}},
		number("outlierDetection.failurePercentage.threshold", func(o *OutlierDetection) *float64 {
			return block(o.FailurePercentage).Threshold
		}),
		count("outlierDetection.failurePercentage.minimumHosts", func(o *OutlierDetection) *int {
			return block(o.FailurePercentage).MinimumHosts
		}),
		count("outlierDetection.failurePercentage.requestVolume", func(o *OutlierDetection) *int {
			return block(o.FailurePercentage).RequestVolume
		}),
	}
}

func balancer(c *Conf) *LoadBalancer    { return block(c.LoadBalancer) }
func outlier(c *Conf) *OutlierDetection { return block(c.OutlierDetection) }
func sizeText(n uint64) string          { return strconv.FormatUint(n, 10) }
func itself[T ~string](value T) string  { return string(value) }

// block gives what p points at, or an object in which nothing is said.
func block[T any](p *T) *T {
	if p == nil {
		return new(T)
	}
	return p
}

// text gives a value's text if there is a value.
func text[T any](value *T, format func(T) string) (string, bool) {
	if value == nil {
		return "", false
	}
	return format(*value), true
}
