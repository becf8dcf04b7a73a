package main

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-lb/weir/internal/core/topology"
)

func TestAServiceBelongsToWhoIsSeenToWriteItsHints(t *testing.T) {
	const label, mark = "weir.dev/distribution", "weir.dev/hints"
	for name, c := range map[string]struct {
		read    liveOptions
		labels  map[string]string // of the Service
		field   string            // spec.trafficDistribution
		slice   metav1.ObjectMeta
		managed bool
		mode    topology.Mode
	}{
		"labelled":         {labels: map[string]string{label: "Auto"}, managed: true, mode: topology.ModeAuto},
		"an unknown label": {labels: map[string]string{label: "Otto"}, mode: topology.ModeDisabled},
		"an unknown label, on the slices too": {
			labels: map[string]string{label: "Otto"}, slice: metav1.ObjectMeta{Labels: map[string]string{label: "Otto"}},
			mode: topology.ModeDisabled,
		},
		"a mark, and an unknown label, where the label alone counts": {
			read:   liveOptions{manage: manageWeir, defaultMode: topology.ModeBalanced},
			labels: map[string]string{label: "Otto"}, slice: metav1.ObjectMeta{Annotations: map[string]string{mark: "PreferSameNode"}},
			managed: true, mode: topology.ModePreferSameNode,
		},
		"a field":                        {field: "PreferClose", mode: topology.ModePreferClose},
		"nothing":                        {mode: topology.ModeDisabled},
		"nothing, where all are managed": {read: liveOptions{manage: manageAll, defaultMode: topology.ModeBalanced}, managed: true, mode: topology.ModeBalanced},
		"a field, where the label alone counts": {
			read: liveOptions{manage: manageWeir, defaultMode: topology.ModeDisabled}, field: "PreferClose", mode: topology.ModeDisabled,
		},
		"a mark": {
			slice: metav1.ObjectMeta{Annotations: map[string]string{mark: "Balanced"}}, managed: true, mode: topology.ModeBalanced,
		},
		"a mark, and an unknown label": {
			labels: map[string]string{label: "Otto"}, slice: metav1.ObjectMeta{Annotations: map[string]string{mark: "PreferSameNode"}},
			managed: true, mode: topology.ModePreferSameNode,
		},
		"a mark, and a field": {
			field: "PreferSameZone", slice: metav1.ObjectMeta{Annotations: map[string]string{mark: "Balanced"}},
			managed: true, mode: topology.ModePreferSameZone,
		},
		"a slice that still has the label": {
			slice: metav1.ObjectMeta{Labels: map[string]string{label: "Balanced"}}, managed: true, mode: topology.ModeDisabled,
		},
		"a default that was told": {read: liveOptions{defaultMode: topology.ModeAuto}, mode: topology.ModeAuto},
	} {
		t.Run(name, func(t *testing.T) {
			object := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: c.labels}}
			if c.field != "" {
				object.Spec.TrafficDistribution = &c.field
			}
			r := c.read.record(object, []*discoveryv1.EndpointSlice{{ObjectMeta: c.slice}})
			if r.Managed != c.managed || r.Service.Mode != c.mode {
				t.Errorf("want managed %v in mode %s, got %v in %s", c.managed, c.mode, r.Managed, r.Service.Mode)
			}
		})
	}
}
