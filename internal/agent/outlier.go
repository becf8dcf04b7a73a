package agent

import (
	"github.com/weir-lb/weir/internal/core/health"
	"github.com/weir-lb/weir/internal/core/policy"
)

// outliersOf gives what a policy asks of outlier detection; nil: nothing. The rules that weir always has go on beside it.
func outliersOf(s *policy.OutlierSettings) *health.Outliers {
	if s == nil {
		return nil
	}
	maxOut := s.MaxEjectionPercent * percent
	return &health.Outliers{
		Interval:      s.Interval,
		Pause:         s.BaseEjectionTime,
		MaxPause:      s.MaxEjectionTime,
		MaxOut:        &maxOut,
		ServerErrors:  s.ServerErrors,
		GatewayErrors: s.GatewayErrors,
		LocalErrors:   s.LocalErrors,
		SuccessRate: health.SuccessRate{
			Deviations: s.SuccessRateStdev, Hosts: s.SuccessRateMinimumHosts, Volume: s.SuccessRateRequestVolume,
		},
		FailureRate: health.FailureRate{
			Threshold: s.FailureThreshold * percent, Hosts: s.FailureMinimumHosts, Volume: s.FailureRequestVolume,
		},
	}
}
