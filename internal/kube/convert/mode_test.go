package convert_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/convert"
)

func TestMode(t *testing.T) {
	const (
		label = "weir.dev/distribution"
		mode  = "service.kubernetes.io/topology-mode"
		old   = "service.kubernetes.io/topology-aware-hints"
	)
	for _, c := range []struct {
		name             string
		label, mode, old string // empty: not there
		field            string
		keepOut          bool // weir does not manage all
		want             topology.Mode
		problem          string // the field that is reported
	}{
		{name: "nothing is chosen", want: topology.ModeBalanced},
		{name: "the label wins", label: "Disabled", mode: "disabled", field: "PreferClose", want: topology.ModeDisabled},
		{
			name: "an annotation that contradicts the label is told", label: "Disabled", mode: "Auto",
			want: topology.ModeDisabled, problem: "metadata.annotations[" + mode + "]",
		},
		{
			name: "a bad label does not fall through to others", label: "none", mode: "Auto", want: topology.ModeBalanced,
			problem: "metadata.labels[" + label + "]",
		},
		{name: "Auto", mode: "Auto", want: topology.ModeAuto},
		{name: "auto", mode: "auto", want: topology.ModeAuto},
		{
			name: "AUTO means nothing", mode: "AUTO", want: topology.ModeBalanced,
			problem: "metadata.annotations[" + mode + "]",
		},
		{name: "the deprecated annotation", old: "auto", want: topology.ModeAuto},
		{
			name: "the deprecated annotation wins by being present", old: "Disabled", mode: "Auto",
			want: topology.ModeDisabled, problem: "metadata.annotations[" + mode + "]",
		},
		{name: "Auto wins over the field", mode: "Auto", field: "PreferSameNode", want: topology.ModeAuto},
		{
			name: "another annotation gives way to the field", mode: "Disabled", field: "PreferSameNode",
			want: topology.ModePreferSameNode,
		},
		{name: "PreferClose", field: "PreferClose", want: topology.ModePreferClose},
		{name: "PreferSameZone", field: "PreferSameZone", want: topology.ModePreferSameZone},
		{name: "a heuristic of weir's", field: "weir.dev/Balanced", mode: "Disabled", want: topology.ModeBalanced},
		{name: "it is weir's business", keepOut: true, field: "weir.dev/PreferSameNode", want: topology.ModePreferSameNode},
		{name: "a heuristic that weir does not have", field: "weir.dev/Best", want: topology.ModeBalanced, problem: "spec.trafficDistribution"},
		{name: "another implementation's heuristic", field: "example.com/Best", want: topology.ModeBalanced, problem: "spec.trafficDistribution"},
		{name: "a bad field", field: "Auto", want: topology.ModeBalanced, problem: "spec.trafficDistribution"},
		{name: "Disabled is taken at its word", mode: "Disabled", want: topology.ModeDisabled},
		{
			name: "native choices are not weir's business", keepOut: true, mode: "Auto", field: "PreferClose",
			want: topology.ModeBalanced,
		},
		{name: "the label always is", keepOut: true, label: "PreferSameZone", want: topology.ModePreferSameZone},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := object[corev1.Service](t, "metadata: {name: web}")
			s.Labels, s.Annotations = map[string]string{}, map[string]string{}
			set := func(m map[string]string, key, value string) {
				if value != "" {
					m[key] = value
				}
			}
			set(s.Labels, label, c.label)
			set(s.Annotations, mode, c.mode)
			set(s.Annotations, old, c.old)
			if c.field != "" {
				s.Spec.TrafficDistribution = &c.field
			}
			svc, problems := convert.Service(s, convert.Options{ManageAll: !c.keepOut})
			equal(t, "mode", c.want, svc.Mode)
			var fields []string
			for _, p := range problems {
				fields = append(fields, p.Field)
			}
			var want []string
			if c.problem != "" {
				want = []string{c.problem}
			}
			equal(t, "fields with problems", want, fields)
		})
	}
}
