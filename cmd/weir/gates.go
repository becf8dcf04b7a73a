package main

import (
	"fmt"

	"k8s.io/component-base/featuregate"

	"github.com/weir-lb/weir/internal/kube/convert"
)

// The feature gates of Kubernetes that weir has, too.
const (
	gateTopologyAwareHints            featuregate.Feature = "TopologyAwareHints"
	gateServiceTrafficDistribution    featuregate.Feature = "ServiceTrafficDistribution"
	gatePreferSameTrafficDistribution featuregate.Feature = "PreferSameTrafficDistribution"
)

const gatesUsage = "turn native modes off, as the gates of these names do in Kubernetes: NAME=true|false,...; all are true " +
	"unless said otherwise. TopologyAwareHints is Auto; ServiceTrafficDistribution is spec.trafficDistribution; " +
	"PreferSameTrafficDistribution is its values PreferSameZone and PreferSameNode. A service that asks for what is off " +
	"counts as one that asks for nothing"

// gateFlag is the flag --feature-gates.
type gateFlag struct {
	gates featuregate.MutableFeatureGate
}

// newGateFlag makes gates that are all open. In Kubernetes they are locked or gone by now; here they stay, so that an
// operator can take a mode out of use. Beta says so to the library, which warns of a gate that is GA that it will go.
func newGateFlag() (*gateFlag, error) {
	open := featuregate.FeatureSpec{Default: true, PreRelease: featuregate.Beta}
	gates := featuregate.NewFeatureGate()
	err := gates.Add(map[featuregate.Feature]featuregate.FeatureSpec{
		gateTopologyAwareHints:            open,
		gateServiceTrafficDistribution:    open,
		gatePreferSameTrafficDistribution: open,
	})
	if err != nil {
		return nil, fmt.Errorf("feature gates: %w", err)
	}
	return &gateFlag{gates}, nil
}

// String gives nothing before the flag is read: all gates have their default then.
func (f *gateFlag) String() string {
	if s, ok := f.gates.(fmt.Stringer); ok {
		return s.String()
	}
	return ""
}

// Set reads NAME=true|false,….
func (f *gateFlag) Set(value string) error { return f.gates.Set(value) }

// Type names what the flag takes.
func (f *gateFlag) Type() string { return "gates" }

// closed gives the gates as convert has them.
func (f *gateFlag) closed() convert.Gates {
	return convert.Gates{
		NoTopologyAwareHints:            !f.gates.Enabled(gateTopologyAwareHints),
		NoServiceTrafficDistribution:    !f.gates.Enabled(gateServiceTrafficDistribution),
		NoPreferSameTrafficDistribution: !f.gates.Enabled(gatePreferSameTrafficDistribution),
	}
}
