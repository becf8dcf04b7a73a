package simulate

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/weir-lb/weir/internal/core/topology"
)

// Rates say how much traffic a service has, in requests per second.
type Rates struct {
	Total float64 // of all zones together; 0: Zones say
	Zones []ZoneRate
}

// ZoneRate is how much of it comes from the clients of a zone.
type ZoneRate struct {
	Zone topology.Zone
	Rate float64
}

// maxRate bounds what is simulated: more would take hours, and more memory than machines have.
const maxRate = 1e6

// ParseRates reads a number of requests per second, 2000, or one for each zone, a:1200,b:400,c:400.
func ParseRates(text string) (Rates, error) {
	if !strings.Contains(text, ":") {
		rate, err := parseRate(text)
		return Rates{Total: rate}, err
	}
	var r Rates
	sum := 0.0
	seen := make(map[topology.Zone]bool)
	for part := range strings.SplitSeq(text, ",") {
		name, number, _ := strings.Cut(strings.TrimSpace(part), ":")
		zone, err := topology.ParseZone(name)
		if err != nil {
			return Rates{}, fmt.Errorf("rate %q: %w", part, err)
		}
		rate, err := parseRate(number)
		if err != nil {
			return Rates{}, fmt.Errorf("zone %s: %w", zone, err)
		}
		if seen[zone] {
			return Rates{}, fmt.Errorf("zone %s has two rates", zone)
		}
		seen[zone] = true
		sum += rate
		r.Zones = append(r.Zones, ZoneRate{zone, rate})
	}
	if sum > maxRate {
		return Rates{}, fmt.Errorf("%v requests per second in all: want at most %.0f", sum, maxRate)
	}
	return r, nil
}

func parseRate(text string) (float64, error) {
	rate, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || math.IsNaN(rate) || rate <= 0 || rate > maxRate {
		return 0, fmt.Errorf("rate %q: want requests per second, above 0 and at most %.0f, as in 2000 or zone-a:1200,zone-b:800", text, maxRate)
	}
	return rate, nil
}
