package policy

// Merge lays the stronger configuration over the weaker one.
//
// Objects merge field by field, and a list replaces a list (RFC 7396). A load balancer of another type, an endpoint hash
// key, a load band and a slow start replace what was there as a whole. Merge is associative and idempotent, and the zero
// Conf changes nothing. The result shares what it points at with both.
func Merge(weaker, stronger Conf) Conf {
	return Conf{
		LoadBalancer:     mergeLoadBalancer(weaker.LoadBalancer, stronger.LoadBalancer),
		HashPolicies:     either(weaker.HashPolicies, stronger.HashPolicies),
		EndpointHashKey:  said(weaker.EndpointHashKey, stronger.EndpointHashKey),
		Locality:         mergeLocality(&weaker.Locality, &stronger.Locality),
		OutlierDetection: both(weaker.OutlierDetection, stronger.OutlierDetection, mergeOutlier),
		SlowStart:        said(weaker.SlowStart, stronger.SlowStart),
		PanicThreshold:   said(weaker.PanicThreshold, stronger.PanicThreshold),
	}
}

func mergeLoadBalancer(weaker, stronger *LoadBalancer) *LoadBalancer {
	switch {
	case stronger == nil:
		return weaker
	case weaker == nil || stronger.Whole:
		return stronger
	case weaker.Type != stronger.Type:
		whole := *stronger
		whole.Whole = true
		return &whole
	}
	return &LoadBalancer{
		Type:         stronger.Type,
		LeastRequest: both(weaker.LeastRequest, stronger.LeastRequest, mergeLeastRequest),
		RingHash:     both(weaker.RingHash, stronger.RingHash, mergeRingHash),
		Maglev:       both(weaker.Maglev, stronger.Maglev, mergeMaglev),
		Whole:        weaker.Whole,
	}
}

func mergeLeastRequest(weaker, stronger *LeastRequestConf) LeastRequestConf {
	return LeastRequestConf{
		ChoiceCount:       said(weaker.ChoiceCount, stronger.ChoiceCount),
		ActiveRequestBias: said(weaker.ActiveRequestBias, stronger.ActiveRequestBias),
	}
}

func mergeRingHash(weaker, stronger *RingHashConf) RingHashConf {
	function := stronger.HashFunction
	if function == "" {
		function = weaker.HashFunction
	}
	return RingHashConf{
		HashFunction: function,
		MinRingSize:  said(weaker.MinRingSize, stronger.MinRingSize),
		MaxRingSize:  said(weaker.MaxRingSize, stronger.MaxRingSize),
	}
}

func mergeMaglev(weaker, stronger *MaglevConf) MaglevConf {
	return MaglevConf{TableSize: said(weaker.TableSize, stronger.TableSize)}
}

func mergeLocality(weaker, stronger *Locality) Locality {
	return Locality{
		Disabled:          said(weaker.Disabled, stronger.Disabled),
		ZoneKey:           said(weaker.ZoneKey, stronger.ZoneKey),
		Affinity:          either(weaker.Affinity, stronger.Affinity),
		Weights:           either(weaker.Weights, stronger.Weights),
		Failover:          either(weaker.Failover, stronger.Failover),
		FailoverThreshold: said(weaker.FailoverThreshold, stronger.FailoverThreshold),
		Overflow: Overflow{
			Mode:     said(weaker.Overflow.Mode, stronger.Overflow.Mode),
			LoadBand: said(weaker.Overflow.LoadBand, stronger.Overflow.LoadBand),
		},
		Costs: either(weaker.Costs, stronger.Costs),
	}
}

func mergeOutlier(weaker, stronger *OutlierDetection) OutlierDetection {
	return OutlierDetection{
		Interval:           said(weaker.Interval, stronger.Interval),
		BaseEjectionTime:   said(weaker.BaseEjectionTime, stronger.BaseEjectionTime),
		MaxEjectionTime:    said(weaker.MaxEjectionTime, stronger.MaxEjectionTime),
		MaxEjectionPercent: said(weaker.MaxEjectionPercent, stronger.MaxEjectionPercent),
		Consecutive:        both(weaker.Consecutive, stronger.Consecutive, mergeConsecutive),
		SuccessRate:        both(weaker.SuccessRate, stronger.SuccessRate, mergeSuccessRate),
		FailurePercentage:  both(weaker.FailurePercentage, stronger.FailurePercentage, mergeFailurePercentage),
	}
}

func mergeConsecutive(weaker, stronger *Consecutive) Consecutive {
	return Consecutive{
		ServerErrors:  said(weaker.ServerErrors, stronger.ServerErrors),
		GatewayErrors: said(weaker.GatewayErrors, stronger.GatewayErrors),
		LocalErrors:   said(weaker.LocalErrors, stronger.LocalErrors),
	}
}

func mergeSuccessRate(weaker, stronger *SuccessRate) SuccessRate {
	return SuccessRate{
		Stdev:         said(weaker.Stdev, stronger.Stdev),
		MinimumHosts:  said(weaker.MinimumHosts, stronger.MinimumHosts),
		RequestVolume: said(weaker.RequestVolume, stronger.RequestVolume),
	}
}

func mergeFailurePercentage(weaker, stronger *FailurePercentage) FailurePercentage {
	return FailurePercentage{
		Threshold:     said(weaker.Threshold, stronger.Threshold),
		MinimumHosts:  said(weaker.MinimumHosts, stronger.MinimumHosts),
		RequestVolume: said(weaker.RequestVolume, stronger.RequestVolume),
	}
}

// said gives what the stronger one says, else what the weaker one does.
func said[T any](weaker, stronger *T) *T {
	if stronger != nil {
		return stronger
	}
	return weaker
}

// either gives the stronger list if there is one, even if it is empty.
func either[T any](weaker, stronger []T) []T {
	if stronger != nil {
		return stronger
	}
	return weaker
}

// both merges two objects if both are there.
func both[T any](weaker, stronger *T, merge func(weaker, stronger *T) T) *T {
	if weaker == nil || stronger == nil {
		return said(weaker, stronger)
	}
	merged := merge(weaker, stronger)
	return &merged
}
