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
	if len(p.ready) == 0 {
		return warnings
	}
	warnings = append(warnings, p.deserted(o)...)
	if p.wantsHints() && p.Service.Headless {
		warnings = append(warnings, reason.New(reason.HeadlessService))
	}
	return warnings
}

// deserted names the zones without an endpoint of their own. Where traffic may leave its node it goes elsewhere, which is
// news only where a preference was asked for; where it may not, it is lost.
func (p *prepared) deserted(o outcome) []reason.Reason {
	isLocal := p.Service.InternalPolicy == topology.PolicyLocal
	if !isLocal && !p.wantsHints() {
		return nil
	}
	code, isDeserted := reason.ZonesWithoutEndpoints, func(z int) bool { return p.readyIn[z] == 0 }
	if isLocal {
		code = reason.ZonesNotServed
		isDeserted = func(z int) bool {
			return !slices.ContainsFunc(o.zones[z].Endpoints, func(s Share) bool { return s > 0 })
		}
	}
	var zones []string
	for z, zone := range p.zones {
		if p.demand[z] > 0 && isDeserted(z) {
			zones = append(zones, string(zone))
		}
	}
	if len(zones) == 0 {
		return nil
	}
	return []reason.Reason{reason.New(code, zones...)}
}

// wantsHints tells whether the service asked for a preference: others spread over all zones on purpose.
func (p *prepared) wantsHints() bool {
	return p.Service.Mode != topology.ModeDisabled && slices.Contains(topology.Modes(), p.Service.Mode)
}
