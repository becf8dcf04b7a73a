package convert

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/internal/core/topology"
)

// Asked says where a Service chose its distribution mode.
type Asked string

// Where a Service can choose, the first that does counts.
const (
	AskedByLabel      Asked = "label"      // weir.dev/distribution
	AskedByAnnotation Asked = "annotation" // service.kubernetes.io/topology-mode or its deprecated name
	AskedByField      Asked = "field"      // spec.trafficDistribution; where weir does not manage all only weir.dev/MODE
	AskedByNothing    Asked = ""           // the default counts
)

// Gates switch native modes off, as the feature gates of the same names do in Kubernetes: a Service is then read as if
// it had never asked for them. The zero value switches nothing off.
type Gates struct {
	NoTopologyAwareHints            bool // Auto, wherever it is set
	NoServiceTrafficDistribution    bool // every mode of spec.trafficDistribution
	NoPreferSameTrafficDistribution bool // its values PreferSameZone and PreferSameNode; PreferClose stays
}

// off tells whether the gates take a mode away. Weir's own modes have no gate.
func (g Gates) off(mode topology.Mode) bool {
	switch mode {
	case topology.ModeAuto:
		return g.NoTopologyAwareHints
	case topology.ModePreferClose:
		return g.NoServiceTrafficDistribution
	case topology.ModePreferSameZone, topology.ModePreferSameNode:
		return g.NoServiceTrafficDistribution || g.NoPreferSameTrafficDistribution
	default:
		return false
	}
}

// AskedBy says where a Service chose its mode, as Service reads it. A value that is not known counts as a choice that
// was refused: it is where the Service asked.
func AskedBy(s *corev1.Service, o Options) Asked {
	_, asked := new(problems).mode(s, o)
	return asked
}

// mode finds what distribution a Service asks for, and where: weir's label, else, where weir manages all, the native
// annotation, else spec.trafficDistribution, else the default. A value that is not known is reported and gives the
// default; one that a gate takes away counts as never written.
func (p *problems) mode(s *corev1.Service, o Options) (topology.Mode, Asked) {
	if label, ok := s.Labels[api.LabelDistribution]; ok {
		mode, err := topology.ParseMode(label)
		switch {
		case err != nil:
			p.refuse(at("metadata.labels", api.LabelDistribution), takenAs(o), "%v", err)
			return o.defaultMode(), AskedByLabel
		case !o.Gates.off(mode):
			p.contradiction(s, mode)
			return mode, AskedByLabel
		}
	}
	if !o.ManageAll && !isOwnField(s) {
		return o.defaultMode(), AskedByNothing
	}
	return p.nativeMode(s, o)
}

// takenAs says what counts in the place of a mode that is refused.
func takenAs(o Options) string { return "taken as " + string(o.defaultMode()) }

// contradiction reports a native annotation that says something else than weir's label.
func (p *problems) contradiction(s *corev1.Service, mode topology.Mode) {
	key, value, ok := p.topologyMode(s)
	if ok && !strings.EqualFold(value, string(mode)) {
		p.add(at("metadata.annotations", key), "says %q, but the label %s says %q and counts",
			value, api.LabelDistribution, mode)
	}
}

// nativeMode follows the built-in controller of Kubernetes 1.36: only Auto and auto mean anything in an annotation, the
// deprecated one wins by being present, and Auto wins over the field. It departs from it where nothing is chosen, which
// gives weir's default, and in that an annotation that says Disabled is taken at its word.
func (p *problems) nativeMode(s *corev1.Service, o Options) (topology.Mode, Asked) {
	key, value, annotated := p.topologyMode(s)
	if annotated && (value == "Auto" || value == "auto") && !o.Gates.off(topology.ModeAuto) {
		return topology.ModeAuto, AskedByAnnotation
	}
	if field := s.Spec.TrafficDistribution; field != nil {
		if isOwnField(s) {
			return p.ownField(*field, o)
		}
		switch mode := topology.Mode(*field); mode {
		case topology.ModePreferClose, topology.ModePreferSameZone, topology.ModePreferSameNode:
			if !o.Gates.off(mode) {
				return mode, AskedByField
			}
		default:
			p.refuse("spec.trafficDistribution", takenAs(o), "unknown value %q", *field)
			return o.defaultMode(), AskedByField
		}
	}
	switch {
	case !annotated || value == "Auto" || value == "auto":
		return o.defaultMode(), AskedByNothing
	case strings.EqualFold(value, string(topology.ModeDisabled)):
		return topology.ModeDisabled, AskedByAnnotation
	default:
		p.refuse(at("metadata.annotations", key), takenAs(o), "unknown value %q", value)
		return o.defaultMode(), AskedByAnnotation
	}
}

// isOwnField tells whether spec.trafficDistribution asks for a heuristic of weir's.
//
// Source: KEP-4444, "Implementation specific heuristics": DOMAIN/HEURISTIC. An API server that does not let such values pass
// keeps them out; manifests may have them.
func isOwnField(s *corev1.Service) bool {
	return strings.HasPrefix(deref(s.Spec.TrafficDistribution, ""), prefix)
}

// ownField reads weir.dev/MODE.
func (p *problems) ownField(field string, o Options) (topology.Mode, Asked) {
	mode, err := topology.ParseMode(strings.TrimPrefix(field, prefix))
	if err != nil {
		p.refuse("spec.trafficDistribution", takenAs(o), "%v, after %s", err, prefix)
		return o.defaultMode(), AskedByField
	}
	return mode, AskedByField
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
			"says %q, but %s says %q and takes precedence", value, api.AnnotationTopologyAwareHints, deprecated)
	}
	return api.AnnotationTopologyAwareHints, deprecated, true
}
