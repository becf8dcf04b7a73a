package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-lb/weir/internal/core/topology"
)

func serverKeys() []key {
	return []key{
		intKey("workers", func(s *Scenario) *int { return &s.Server.Workers }, 1, maxWorkers),
		intKey("queue", func(s *Scenario) *int { return &s.Server.Queue }, 0, maxQueue),
		{
			name:  "service",
			parse: func(s *Scenario, text string) error { return assign(&s.Server.Service, text, parseDistribution) },
			print: func(s *Scenario) string { return s.Server.Service.String() },
			check: func(s *Scenario) error { return s.Server.Service.check() },
		},
		timeKey("start", func(s *Scenario) *time.Duration { return &s.Server.Start }, 0, maxWait),
		numberKey("cold", func(s *Scenario) *float64 { return &s.Server.Cold }, 0, maxFactor),
		timeKey("warm", func(s *Scenario) *time.Duration { return &s.Server.Warm }, 0, maxWait),
		timeKey("drain", func(s *Scenario) *time.Duration { return &s.Server.Drain }, 0, maxWait),
	}
}

func networkKeys() []key {
	return []key{
		timeKey("same-zone", func(s *Scenario) *time.Duration { return &s.Network.SameZone }, 0, maxWay),
		timeKey("cross-zone", func(s *Scenario) *time.Duration { return &s.Network.CrossZone }, 0, maxWay),
		timeKey("cross-cluster", func(s *Scenario) *time.Duration { return &s.Network.CrossCluster }, 0, maxWay),
		numberKey("jitter", func(s *Scenario) *float64 { return &s.Network.Jitter }, 0, 10),
	}
}

func requestKeys() []key {
	return []key{
		timeKey("timeout", func(s *Scenario) *time.Duration { return &s.Request.Timeout }, time.Millisecond, maxWait),
		timeKey("good", func(s *Scenario) *time.Duration { return &s.Request.Good }, 0, maxWait),
		timeKey("attempt", func(s *Scenario) *time.Duration { return &s.Request.Attempt }, 0, maxWait),
		intKey("retries", func(s *Scenario) *int { return &s.Request.Retries }, 0, maxRetries),
		numberKey("budget", func(s *Scenario) *float64 { return &s.Request.Budget }, 0, maxRetries),
		timeKey("backoff", func(s *Scenario) *time.Duration { return &s.Request.Backoff }, 0, maxWait),
		{
			name:  "bytes",
			parse: func(s *Scenario, text string) error { return assign(&s.Request.Bytes, text, parseBytes) },
			print: func(s *Scenario) string { return formatBytes(s.Request.Bytes) },
			check: func(s *Scenario) error {
				if b := s.Request.Bytes; !(b >= 0 && b <= maxBytes) {
					return fmt.Errorf("is %s: want a size from 0B to %sB", formatNumber(b), formatNumber(maxBytes))
				}
				return nil
			},
		},
		numberKey("polls", func(s *Scenario) *float64 { return &s.Request.Polls }, 0, 1),
		numberKey("streams", func(s *Scenario) *float64 { return &s.Request.Streams }, 0, 1),
		timeKey("hold", func(s *Scenario) *time.Duration { return &s.Request.Hold }, 0, maxLength),
		numberKey("load", func(s *Scenario) *float64 { return &s.Request.Load }, 0, maxWorkers),
		{
			name: "accepted", flag: true,
			parse: func(s *Scenario, _ string) error {
				s.Request.Accepted = true
				return nil
			},
			print: func(s *Scenario) string { return strconv.FormatBool(s.Request.Accepted) },
			check: func(*Scenario) error { return nil },
		},
	}
}

func discoveryKeys() []key {
	return []key{
		timeKey("delay", func(s *Scenario) *time.Duration { return &s.Discovery.Delay }, 0, maxWait),
		numberKey("jitter", func(s *Scenario) *float64 { return &s.Discovery.Jitter }, 0, 1),
		timeKey("lost", func(s *Scenario) *time.Duration { return &s.Discovery.Lost }, 0, maxLength),
	}
}

func dayKeys() []key {
	return []key{
		timeKey("period", func(s *Scenario) *time.Duration { return &s.Day.Period }, time.Second, maxLength),
		numberKey("low", func(s *Scenario) *float64 { return &s.Day.Low }, 0, maxFactor),
		numberKey("high", func(s *Scenario) *float64 { return &s.Day.High }, 0, maxFactor),
		{
			name:  "lag",
			parse: func(s *Scenario, text string) error { return assign(&s.Day.Lag, text, parseLag) },
			print: func(s *Scenario) string { return formatLag(s.Day.Lag) },
			check: func(s *Scenario) error {
				for _, zone := range slices.Sorted(maps.Keys(s.Day.Lag)) {
					if d := s.Day.Lag[zone]; d < 0 || d > maxLength {
						return fmt.Errorf("is %s in zone %s: want a time from 0s to %s", formatTime(d), zone, formatTime(maxLength))
					}
				}
				return nil
			},
		},
	}
}

func parseLag(text string) (map[topology.Zone]time.Duration, error) {
	lag := make(map[topology.Zone]time.Duration)
	for part := range strings.SplitSeq(text, ",") {
		name, value, found := strings.Cut(part, ":")
		if !found {
			return nil, fmt.Errorf("bad lag %q: want ZONE:TIME, as in b:20s", part)
		}
		zone, err := topology.ParseZone(name)
		if err != nil {
			return nil, err
		}
		if _, ok := lag[zone]; ok {
			return nil, fmt.Errorf("names zone %s twice: remove one", zone)
		}
		if lag[zone], err = parseTime(value); err != nil {
			return nil, err
		}
	}
	return lag, nil
}

func formatLag(lag map[topology.Zone]time.Duration) string {
	var parts []string
	for _, zone := range slices.Sorted(maps.Keys(lag)) {
		parts = append(parts, string(zone)+":"+formatTime(lag[zone]))
	}
	return strings.Join(parts, ",")
}

func autoscaleKeys() []key {
	return []key{
		intKey("min", func(s *Scenario) *int { return &s.Autoscale.Min }, 1, maxEndpoints),
		intKey("max", func(s *Scenario) *int { return &s.Autoscale.Max }, 1, maxEndpoints),
		numberKey("target", func(s *Scenario) *float64 { return &s.Autoscale.Target }, 0.01, 1),
		timeKey("every", func(s *Scenario) *time.Duration { return &s.Autoscale.Every }, time.Second, maxWait),
		numberKey("tolerance", func(s *Scenario) *float64 { return &s.Autoscale.Tolerance }, 0, 1),
		timeKey("window", func(s *Scenario) *time.Duration { return &s.Autoscale.Window }, time.Second, maxWait),
		timeKey("stabilization", func(s *Scenario) *time.Duration { return &s.Autoscale.Stabilization }, 0, maxLength),
	}
}

func nodeKeys() []key {
	return []key{
		intKey("pods-per-node", func(s *Scenario) *int { return &s.NodePools.PodsPerNode }, 1, maxEndpoints),
		intKey("max", func(s *Scenario) *int { return &s.NodePools.Max }, 1, maxEndpoints),
		timeKey("boot", func(s *Scenario) *time.Duration { return &s.NodePools.Boot }, 0, maxWait),
		timeKey("idle", func(s *Scenario) *time.Duration { return &s.NodePools.Idle }, 0, maxLength),
	}
}
