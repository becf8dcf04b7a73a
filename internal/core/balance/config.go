package balance

import (
	"time"

	"github.com/weir-lb/weir/internal/core/health"
	"github.com/weir-lb/weir/internal/core/policy"
)

// Config is what policies may change while the loop runs. The zero value works.
type Config struct {
	SlowStart *SlowStart // nil: a new endpoint counts as slow for some seconds
	Threshold float64    // fraction of healthy endpoints below which a group's share shrinks in proportion; 0: never
	Panic     *float64   // fraction of healthy endpoints below which ejected endpoints are used as well; nil: the rules of Health
	Health    health.Config
}

// percent converts the percentages of policies to fractions.
const percent = 0.01

// ConfigFor gives the loop's part of settings, in which the defaults must be filled in, as policy.Set.Resolve does.
func ConfigFor(s *policy.Settings) Config {
	var c Config
	if slow := s.SlowStart; slow != nil {
		c.SlowStart = &SlowStart{
			Window: time.Duration(slow.Window), MinWeight: float64(*slow.MinWeightPercent) * percent,
			Aggression: float64(*slow.Aggression),
		}
	}
	if threshold := s.Locality.FailoverThreshold; threshold != nil {
		c.Threshold = float64(*threshold) * percent
	}
	if s.PanicThreshold != nil {
		c.Panic = new(float64(*s.PanicThreshold) * percent)
	}
	if s.OutlierDetection != nil { // the rules that weir always has go on beside it
		c.Health.Outliers = outliers(s.OutlierDetection)
	}
	return c
}

// outliers gives the detectors that a policy asks for.
func outliers(s *policy.OutlierDetection) *health.Outliers {
	o := &health.Outliers{
		Interval:      time.Duration(*s.Interval),
		Pause:         time.Duration(*s.BaseEjectionTime),
		MaxPause:      time.Duration(*s.MaxEjectionTime),
		MaxOut:        new(float64(*s.MaxEjectionPercent) * percent),
		ServerErrors:  int(*s.Consecutive.ServerErrors),
		GatewayErrors: int(*s.Consecutive.GatewayErrors),
		LocalErrors:   int(*s.Consecutive.LocalErrors),
	}
	if r := s.SuccessRate; r != nil {
		o.SuccessRate = health.SuccessRate{Deviations: float64(*r.Stdev), Hosts: int(*r.MinimumHosts), Volume: int(*r.RequestVolume)}
	}
	if f := s.FailurePercentage; f != nil {
		o.FailureRate = health.FailureRate{
			Threshold: float64(*f.Threshold) * percent, Hosts: int(*f.MinimumHosts), Volume: int(*f.RequestVolume),
		}
	}
	return o
}
