package plan

import (
	"slices"

	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// warnings names what a person should know whatever the mode decided.
func (p *prepared) warnings(o outcome) []reason.Reason {
	var warnings []reason.Reason
	if o.overload > p.stop() {
		var zones []string
		for _, row := range o.zones {
			if row.Overload > p.stop() {
				zones = append(zones, string(row.Zone))
			}
		}
		warnings = append(warnings,
			reason.New(reason.EndpointsOverloaded, zones...).With("overload", o.overload, reason.Ratio))
	}
	if !p.wantsHints() || len(p.ready) == 0 {
		return warnings
	}
	var deserted []string
	for z, zone := range p.zones {
		if p.demand[z] > 0 && p.readyIn[z] == 0 {
			deserted = append(deserted, string(zone))
		}
	}
	if len(deserted) > 0 {
		warnings = append(warnings, reason.New(reason.ZonesWithoutEndpoints, deserted...))
	}
	if p.Service.Headless {
		warnings = append(warnings, reason.New(reason.HeadlessService))
	}
	return warnings
}

// wantsHints tells whether the service asked for a preference: others spread over all zones on purpose.
func (p *prepared) wantsHints() bool {
	return p.Service.Mode != topology.ModeDisabled && slices.Contains(topology.Modes(), p.Service.Mode)
}
