package status_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/status"
)

func endpointSlices() schema.GroupResource {
	return schema.GroupResource{Group: "discovery.k8s.io", Resource: "endpointslices"}
}

func TestConditionsSayWhatTheServiceComesTo(t *testing.T) {
	cases := map[string]struct {
		mode  topology.Mode
		ready []int
		setUp func(*stage)
		want  []string
	}{
		"hinted": {
			topology.ModePreferSameZone,
			[]int{2, 1, 1},
			nil,
			[]string{
				"Accepted=True Accepted: PreferSameZone, asked for by label",
				"Programmed=True Hinted: IPv4: each endpoint serves its own zone",
			},
		},
		"no hints, as asked": {
			topology.ModeDisabled,
			[]int{2, 1},
			nil,
			[]string{
				"Accepted=True Accepted: Disabled, asked for by label",
				"Programmed=True HintsDisabled: IPv4: the service asks for no hints",
			},
		},
		"too few endpoints": {
			topology.ModeAuto,
			[]int{1, 1},
			nil,
			[]string{
				"Accepted=True Accepted: Auto, asked for by label",
				"Programmed=False TooFewEndpoints: IPv4: no hints: 2 ready endpoints for 3 zones",
			},
		},
		"a node without a zone": {
			topology.ModeAuto,
			[]int{2, 2, 2},
			func(s *stage) { s.nodes[2].Zone = "" },
			[]string{
				"Accepted=True Accepted: Auto, asked for by label",
				"Programmed=False NodesWithoutZone: IPv4: ready nodes carry no zone label: node-zone-c",
			},
		},
		"no endpoint with a zone": {
			topology.ModePreferSameZone,
			[]int{1},
			func(s *stage) {
				s.slices[0].Endpoints[0].Zone, s.slices[0].Endpoints[0].NodeName = nil, nil
			},
			[]string{
				"Accepted=True Accepted: PreferSameZone, asked for by label",
				"Programmed=False EndpointsWithoutZone: IPv4: ready endpoints have no zone: 10.0.0.1",
			},
		},
		"the label and the native annotation disagree": {
			topology.ModePreferSameZone,
			[]int{1, 1, 1},
			func(s *stage) { s.service.Annotations[api.AnnotationTopologyMode] = "Auto" },
			[]string{
				"Accepted=True ConflictingModes: PreferSameZone, asked for by label; " +
					"metadata.annotations[service.kubernetes.io/topology-mode]: says \"Auto\", but the label weir.dev/distribution " +
					"says \"PreferSameZone\" and counts",
				"Programmed=True Hinted: IPv4: each endpoint serves its own zone",
			},
		},
		"no endpoints": {
			topology.ModeAuto, nil, nil,
			[]string{
				"Accepted=True Accepted: Auto, asked for by label",
				"Programmed=False NoEndpoints: the service has no ready endpoint",
			},
		},
		"a second family without endpoints has no say": {
			topology.ModePreferSameZone,
			[]int{1, 1},
			func(s *stage) {
				s.service.Spec.ClusterIPs = []string{"10.96.0.1", "fd00::1"}
			},
			[]string{
				"Accepted=True Accepted: PreferSameZone, asked for by label",
				"Programmed=True Hinted: IPv4: each endpoint serves its own zone",
			},
		},
		"one family of two": {
			topology.ModeAuto,
			[]int{1, 1, 1},
			func(s *stage) {
				s.slices = append(s.slices, slice(discoveryv1.AddressTypeIPv6, 1, 1))
			},
			[]string{
				"Accepted=True Accepted: Auto, asked for by label",
				"Programmed=False TooFewEndpoints: IPv4: each zone has endpoints by its share of the demand: 0 % expected " +
					"overload, hints stay up to 30 %; IPv6: no hints: 2 ready endpoints for 3 zones",
			},
		},
		"a limit that is not a number": {
			topology.ModePreferSameZone,
			[]int{1, 1},
			func(s *stage) {
				s.service.Annotations[api.AnnotationOverloadLimit] = "lots"
			},
			[]string{
				"Accepted=False BadOverloadLimit: metadata.annotations[weir.dev/overload-limit]: bad limit \"lots\", want a ratio " +
					"above 0 and up to 10, as in 0.2 or 20%: the default is taken",
				"Programmed=True Hinted: IPv4: each endpoint serves its own zone",
			},
		},
		"an unknown mode counts more than other wishes": {
			"Sideways",
			[]int{1, 1},
			func(s *stage) { s.service.Annotations[api.AnnotationDemand] = "x" },
			[]string{"Accepted=False UnknownMode", "Programmed=True Hinted"},
		},
		"an external name": {
			topology.ModeAuto, nil, func(s *stage) { s.service.Spec.Type = corev1.ServiceTypeExternalName },
			[]string{
				"Accepted=False ExternalName: a Service of type ExternalName has no endpoints to distribute requests over",
				"Programmed=False NoEndpoints: the service has no ready endpoint",
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, c.mode, c.ready...)
			if c.setUp != nil {
				c.setUp(s)
			}
			s.report(status.Outcome{Slices: 1})
			got := s.conditions()
			if name == "an unknown mode counts more than other wishes" {
				got = s.short()
			}
			equal(t, "conditions", c.want, got)
			for _, condition := range s.service.Status.Conditions {
				equal(t, "observed generation", int64(3), condition.ObservedGeneration)
				equal(t, "last transition", s.now.Unix(), condition.LastTransitionTime.Unix())
			}
		})
	}
}

func TestConditionsAreWrittenOnlyWhenStatusOrReasonChanges(t *testing.T) {
	s := newStage(t, topology.ModeAuto, 3, 3, 3)
	made := s.now
	for range 3 {
		s.report(status.Outcome{Slices: 1})
		s.now = s.now.Add(time.Minute)
	}
	s.nodes[0].CPU = 4400 // another number in the message
	s.report(status.Outcome{Slices: 1})
	equal(t, "writes", 1, s.applies())
	s.restart()
	s.report(status.Outcome{Slices: 1})
	equal(t, "writes after a restart", 1, s.applies())

	s.slices[0] = slice(discoveryv1.AddressTypeIPv4, 1, 1)
	s.report(status.Outcome{Slices: 1})
	equal(t, "writes after the hints went", 2, s.applies())
	equal(t, "conditions", []string{"Accepted=True Accepted", "Programmed=False TooFewEndpoints"}, s.short())
	equal(t, "transition of what did not change", made.Unix(), s.service.Status.Conditions[0].LastTransitionTime.Unix())
	equal(t, "transition of what changed", s.now.Unix(), s.service.Status.Conditions[1].LastTransitionTime.Unix())
	gone := s.now
	s.now = s.now.Add(time.Minute)
	s.nodes[0].Zone = "" // another reason, the same status
	s.report(status.Outcome{Slices: 1})
	equal(t, "conditions", []string{"Accepted=True Accepted", "Programmed=False NodesWithoutZone"}, s.short())
	equal(t, "transition when only the reason changed", gone.Unix(), s.service.Status.Conditions[1].LastTransitionTime.Unix())
}

func TestTheAcceptedConditionNamesTheModeThatIsAskedForNow(t *testing.T) {
	s := newStage(t, topology.ModePreferSameZone, 1, 1, 1)
	s.report(status.Outcome{Slices: 1})
	s.service.Labels[api.LabelDistribution] = string(topology.ModeBalanced)
	s.report(status.Outcome{Slices: 1})
	equal(t, "condition", "Accepted=True Accepted: Balanced, asked for by label", s.conditions()[0])

	s.service.Labels[api.LabelDistribution] = strings.Repeat("x", 40_000) // more than a message may hold
	for range 2 {
		s.report(status.Outcome{Slices: 1})
	}
	equal(t, "condition", "Accepted=False UnknownMode", s.short()[0])
	equal(t, "writes", 3, s.applies())
}

func TestAServiceThatIsNotSeenWithItsConditionsYetIsNotWrittenAgain(t *testing.T) {
	s := newStage(t, topology.ModePreferSameZone, 1, 1)
	s.service.ResourceVersion = "7"
	for range 3 {
		if err := s.reporter.Report(context.Background(), s.decide(), status.Outcome{Slices: 1}); err != nil {
			t.Fatal(err)
		}
	}
	equal(t, "writes", 1, s.applies())
	s.service.ResourceVersion = "9" // changed since, and without them: somebody took them off
	if err := s.reporter.Report(context.Background(), s.decide(), status.Outcome{Slices: 1}); err != nil {
		t.Fatal(err)
	}
	equal(t, "writes after they were taken off", 2, s.applies())
}

func TestConditionsOfOthersStay(t *testing.T) {
	s := newStage(t, topology.ModePreferSameZone, 1, 1)
	other := metav1.Condition{Type: "LoadBalancerPortsError", Status: "True", Reason: "X", LastTransitionTime: metav1.Time{Time: s.now}}
	s.service.Status.Conditions = []metav1.Condition{other}
	if _, err := s.client.CoreV1().Services("shop").UpdateStatus(context.Background(), s.service, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.report(status.Outcome{Slices: 1})
	equal(t, "conditions", 3, len(s.service.Status.Conditions))
	delete(s.service.Labels, api.LabelDistribution)
	s.report(status.Outcome{Slices: 1})
	equal(t, "conditions", []string{"LoadBalancerPortsError=True X"}, s.short())
}

func TestConditionsGoWithTheWishForThem(t *testing.T) {
	t.Run("the label is removed", func(t *testing.T) {
		s := newStage(t, topology.ModePreferSameZone, 1, 1)
		s.report(status.Outcome{Slices: 1})
		delete(s.service.Labels, api.LabelDistribution)
		s.report(status.Outcome{Slices: 1})
		s.report(status.Outcome{Slices: 1})
		equal(t, "conditions", []string{}, s.short())
		equal(t, "writes", 2, s.applies())
	})
	t.Run("the label is removed while nobody leads", func(t *testing.T) {
		s := newStage(t, topology.ModePreferSameZone, 1, 1)
		s.report(status.Outcome{Slices: 1})
		delete(s.service.Labels, api.LabelDistribution)
		s.restart()
		s.report(status.Outcome{Slices: 1})
		equal(t, "conditions", []string{}, s.short())
	})
	t.Run("a clean-up", func(t *testing.T) {
		s := newStage(t, topology.ModePreferSameZone, 1, 1)
		s.report(status.Outcome{Slices: 1})
		if err := s.reporter.Clear(context.Background(), s.service); err != nil {
			t.Fatal(err)
		}
		s.watch()
		equal(t, "conditions", []string{}, s.short())
	})
}

func TestWhoDoesNotAskGetsNoConditions(t *testing.T) {
	for _, manageAll := range []bool{false, true} {
		s := newStage(t, topology.ModeUnset, 1, 1)
		s.options.ManageAll = manageAll
		s.report(status.Outcome{Slices: 1})
		equal(t, "writes", 0, s.applies())
	}
}

func TestOneReportThatASliceIsBehindDoesNotShow(t *testing.T) {
	s := newStage(t, topology.ModePreferSameZone, 1, 1)
	s.report(status.Outcome{Slices: 2, Written: 2})
	for _, o := range []status.Outcome{
		{Slices: 2, Pending: 1},
		{Slices: 2, Pending: 1, Err: apierrors.NewConflict(endpointSlices(), "web-1", errors.New("changed"))},
		{Slices: 2, Pending: 1, Err: apierrors.NewTooManyRequestsError("slow down")},
		{Slices: 2},
	} {
		s.now = s.now.Add(5 * time.Second)
		s.report(o)
		equal(t, "conditions", []string{"Accepted=True Accepted", "Programmed=True Hinted"}, s.short())
	}
	equal(t, "writes", 1, s.applies())

	s.report(status.Outcome{Slices: 2, Pending: 1})
	s.now = s.now.Add(time.Minute)
	s.report(status.Outcome{Slices: 2, Pending: 1})
	equal(t, "conditions", "Programmed=False WritePending: 1 of 2 EndpointSlices do not say the plan yet", s.conditions()[1])
	s.report(status.Outcome{Slices: 2, Pending: 1, Err: apierrors.NewTooManyRequestsError("slow down")})
	equal(t, "conditions", "Programmed=False WriteRefused: Throttled: 1 of 2 EndpointSlices do not say the plan: Too many requests: slow down", s.conditions()[1])
	s.report(status.Outcome{Slices: 2, Written: 1})
	equal(t, "conditions", []string{"Accepted=True Accepted", "Programmed=True Hinted"}, s.short())
}

func TestARefusalThatLastsShowsAtOnce(t *testing.T) {
	s := newStage(t, topology.ModePreferSameZone, 1, 1)
	s.report(status.Outcome{Slices: 1})
	forbidden := apierrors.NewForbidden(endpointSlices(), "web-1", errors.New("no such role"))
	s.report(status.Outcome{Slices: 1, Pending: 1, Err: errors.Join(apierrors.NewTooManyRequestsError("x"), forbidden)})
	equal(t, "conditions", []string{"Accepted=True Accepted", "Programmed=False WriteRefused"}, s.short())
	s.report(status.Outcome{Slices: 1, Written: 1})
	equal(t, "conditions", []string{"Accepted=True Accepted", "Programmed=True Hinted"}, s.short())
}

func TestAServiceThatWasNeverWrittenSaysSo(t *testing.T) {
	s := newStage(t, topology.ModePreferSameZone, 1, 1)
	s.report(status.Outcome{Slices: 1, Pending: 1})
	equal(t, "conditions", []string{"Accepted=True Accepted", "Programmed=False WritePending"}, s.short())
}

func TestConditionsThatCannotBeWrittenAreTriedAgain(t *testing.T) {
	s := newStage(t, topology.ModePreferSameZone, 1, 1)
	relent := s.refuse(apierrors.NewServiceUnavailable("starting"))
	if err := s.reporter.Report(context.Background(), s.decide(), status.Outcome{Slices: 1}); !apierrors.IsServiceUnavailable(err) {
		t.Fatalf("error %v, want the API server's", err)
	}
	relent()
	s.report(status.Outcome{Slices: 1})
	equal(t, "conditions", []string{"Accepted=True Accepted", "Programmed=True Hinted"}, s.short())
}

func TestAServiceThatIsGoneIsNoError(t *testing.T) {
	uid := field.ErrorList{field.Invalid(field.NewPath("metadata", "uid"), "u1", "field is immutable")}
	for what, err := range map[string]error{
		"gone":              apierrors.NewNotFound(schema.GroupResource{Resource: "services"}, "web"),
		"another by now":    apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "web", uid),
		"changed meanwhile": apierrors.NewConflict(schema.GroupResource{Resource: "services"}, "web", errors.New("changed")),
	} {
		s := newStage(t, topology.ModePreferSameZone, 1, 1)
		s.refuse(err)
		if err := s.reporter.Report(context.Background(), s.decide(), status.Outcome{Slices: 1}); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}
