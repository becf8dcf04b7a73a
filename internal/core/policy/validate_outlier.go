package policy

import "time"

func (v *validator) outlier(o *OutlierDetection) {
	if o == nil {
		return
	}
	v.length("outlierDetection.interval", o.Interval)
	v.length(pathBaseEjection, o.BaseEjectionTime)
	v.length(pathMaxEjection, o.MaxEjectionTime)
	if o.BaseEjectionTime != nil && o.MaxEjectionTime != nil && *o.BaseEjectionTime > *o.MaxEjectionTime {
		v.refuse(pathMaxEjection, "is %s, less than the baseEjectionTime of %s",
			durationText(*o.MaxEjectionTime), durationText(*o.BaseEjectionTime))
	}
	v.percent("outlierDetection.maxEjectionPercent", o.MaxEjectionPercent)

	c := block(o.Consecutive)
	v.count("outlierDetection.consecutive.serverErrors", c.ServerErrors)
	v.count("outlierDetection.consecutive.gatewayErrors", c.GatewayErrors)
	v.count("outlierDetection.consecutive.localErrors", c.LocalErrors)

	s := block(o.SuccessRate)
	v.above("outlierDetection.successRate.stdev", s.Stdev)
	v.count("outlierDetection.successRate.minimumHosts", s.MinimumHosts)
	v.count("outlierDetection.successRate.requestVolume", s.RequestVolume)

	f := block(o.FailurePercentage)
	v.percent("outlierDetection.failurePercentage.threshold", f.Threshold)
	v.count("outlierDetection.failurePercentage.minimumHosts", f.MinimumHosts)
	v.count("outlierDetection.failurePercentage.requestVolume", f.RequestVolume)
}

// length refuses a time that is not above 0.
func (v *validator) length(path string, d *time.Duration) {
	if d != nil && *d <= 0 {
		v.refuse(path, "is %s: want more than 0", durationText(*d))
	}
}
