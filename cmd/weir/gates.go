package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-lb/weir/internal/kube/convert"
)

// The feature gates of Kubernetes that weir has, too.
const (
	gateTopologyAwareHints            = "TopologyAwareHints"
	gateServiceTrafficDistribution    = "ServiceTrafficDistribution"
	gatePreferSameTrafficDistribution = "PreferSameTrafficDistribution"
)

const gatesUsage = "turn native modes off, as the gates of these names do in Kubernetes: NAME=true|false,...; all are true " +
	"unless said otherwise. TopologyAwareHints is Auto; ServiceTrafficDistribution is spec.trafficDistribution; " +
	"PreferSameTrafficDistribution is its values PreferSameZone and PreferSameNode. A service that asks for what is off " +
	"counts as one that asks for nothing"

// gateFlag is the flag --feature-gates: the gates that were set, the last value of each.
type gateFlag map[string]bool

// String gives what Set reads, sorted by name.
func (f *gateFlag) String() string {
	var set []string
	for _, name := range slices.Sorted(maps.Keys(*f)) {
		set = append(set, name+"="+strconv.FormatBool((*f)[name]))
	}
	return strings.Join(set, ",")
}

// Set reads NAME=true|false,….
func (f *gateFlag) Set(value string) error {
	for part := range strings.SplitSeq(value, ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		name, text, hasValue := strings.Cut(part, "=")
		name = strings.TrimSpace(name)
		if !hasValue {
			return fmt.Errorf("missing bool value for %s", name)
		}
		isOpen, err := strconv.ParseBool(strings.TrimSpace(text))
		if err != nil {
			return fmt.Errorf("invalid value of %s=%s, err: %w", name, strings.TrimSpace(text), err)
		}
		switch name {
		case gateTopologyAwareHints, gateServiceTrafficDistribution, gatePreferSameTrafficDistribution:
		default:
			return fmt.Errorf("unrecognized feature gate: %s", name)
		}
		if *f == nil {
			*f = make(gateFlag)
		}
		(*f)[name] = isOpen
	}
	return nil
}

// Type names what the flag takes.
func (f *gateFlag) Type() string { return "gates" }

// closed gives the gates as convert has them.
func (f *gateFlag) closed() convert.Gates {
	isClosed := func(name string) bool {
		isOpen, isSet := (*f)[name]
		return isSet && !isOpen
	}
	return convert.Gates{
		NoTopologyAwareHints:            isClosed(gateTopologyAwareHints),
		NoServiceTrafficDistribution:    isClosed(gateServiceTrafficDistribution),
		NoPreferSameTrafficDistribution: isClosed(gatePreferSameTrafficDistribution),
	}
}
