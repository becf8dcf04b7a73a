package convert

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/internal/core/topology"
)

// mode finds what distribution a Service asks for: weir's label, else, where weir manages all, the native annotation,
// else spec.trafficDistribution, else the default. A value that is not known is reported and gives the default.
func (p *problems) mode(s *corev1.Service, o Options) topology.Mode {
	if label, ok := s.Labels[api.LabelDistribution]; ok {
		mode, err := topology.ParseMode(label)
		if err != nil {
			p.add(at("metadata.labels", api.LabelDistribution), "%v: taken as %s", err, o.defaultMode())
			return o.defaultMode()
		}
		return mode
	}
	if !o.ManageAll {
		return o.defaultMode()
	}
	return p.nativeMode(s, o)
}

// nativeMode follows the built-in controller of Kubernetes 1.36: only Auto and auto mean anything in an annotation, the
// deprecated one wins by being present, and Auto wins over the field. It departs from it where nothing is chosen, which
// gives weir's default, and in that an annotation that says Disabled is taken at its word.
func (p *problems) nativeMode(s *corev1.Service, o Options) topology.Mode {
	key, value, annotated := p.topologyMode(s)
	if annotated && (value == "Auto" || value == "auto") {
		return topology.ModeAuto
	}
	if field := s.Spec.TrafficDistribution; field != nil {
		switch mode := topology.Mode(*field); mode {
		case topology.ModePreferClose, topology.ModePreferSameZone, topology.ModePreferSameNode:
			return mode
		default:
			p.add("spec.trafficDistribution", "unknown value %q: taken as %s", *field, o.defaultMode())
			return o.defaultMode()
		}
	}
	switch {
	case !annotated:
		return o.defaultMode()
	case strings.EqualFold(value, string(topology.ModeDisabled)):
		return topology.ModeDisabled
	default:
		p.add(at("metadata.annotations", key), "unknown value %q: taken as %s", value, o.defaultMode())
		return o.defaultMode()
	}
}

// topologyMode finds the native annotation that counts.
func (p *problems) topologyMode(s *corev1.Service) (key, value string, found bool) {
	value, found = s.Annotations[api.AnnotationTopologyMode]
	deprecated, ok := s.Annotations[api.AnnotationTopologyAwareHints]
	if !ok {
		return api.AnnotationTopologyMode, value, found
	}
	if found && value != deprecated {
		p.add(at("metadata.annotations", api.AnnotationTopologyMode),
			"says %q, but %s says %q and is looked at first", value, api.AnnotationTopologyAwareHints, deprecated)
	}
	return api.AnnotationTopologyAwareHints, deprecated, true
}
