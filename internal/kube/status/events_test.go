package status_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/status"
)

// done is an outcome with nothing left to write.
func done() status.Outcome { return status.Outcome{Slices: 1} }

func (s *stage) endpoints(ready ...int) {
	s.slices = []*discoveryv1.EndpointSlice{slice(discoveryv1.AddressTypeIPv4, ready...)}
}

const (
	autoOn  = "Normal TopologyAwareHintsEnabled Topology Aware Hints has been enabled, addressType: IPv4"
	autoOff = "Warning TopologyAwareHintsDisabled "
)

func TestAutoIsToldInTheWordsOfKubernetes(t *testing.T) {
	cases := map[string]struct {
		ready []int
		setUp func(*stage)
		want  []string
	}{
		"hinted": {[]int{2, 2, 2}, nil, []string{autoOn}},
		"too few endpoints": {
			[]int{1, 1},
			nil,
			[]string{
				autoOff + "Insufficient number of endpoints (2 endpoints, 3 zones), addressType: IPv4",
				"Warning ZonesWithoutEndpoints no ready endpoint lives in zone-c: their requests go elsewhere",
			},
		},
		"no good split": {
			[]int{2, 2, 1},
			nil,
			[]string{autoOff + "Unable to allocate minimum required endpoints to each zone without exceeding overload threshold " +
				"(5 endpoints, 3 zones), addressType: IPv4"},
		},
		"a node without a zone": {
			[]int{2, 2, 2},
			func(s *stage) { s.nodes[2].Zone = "" },
			[]string{
				autoOff + "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes, addressType: IPv4",
				"Warning NodesWithoutZone ready nodes carry no zone label: node-zone-c",
			},
		},
		"a node without CPU": {
			[]int{2, 2, 2},
			func(s *stage) { s.nodes[2].CPU = 0 },
			[]string{
				autoOff + "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes, addressType: IPv4",
				"Warning NodesWithoutCPU ready nodes report no CPU: node-zone-c",
			},
		},
		"no nodes": {
			[]int{2, 2, 2},
			func(s *stage) { s.nodes = nil },
			[]string{autoOff + "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes, addressType: IPv4"},
		},
		"one zone": {
			[]int{2},
			func(s *stage) { s.nodes = s.nodes[:1] },
			[]string{autoOff + "Nodes only ready in one zone, addressType: IPv4"},
		},
		"an endpoint without a zone": {
			[]int{3, 3, 3},
			func(s *stage) { s.slices[0].Endpoints[0].Zone, s.slices[0].Endpoints[0].NodeName = nil, nil },
			[]string{
				autoOff + "One or more endpoints do not have a zone specified, addressType: IPv4",
				"Warning EndpointsWithoutZone ready endpoints have no zone: 10.0.0.1",
			},
		},
		"no endpoints yet": {nil, nil, nil},
		"a headless service": {
			[]int{1, 1, 1},
			func(s *stage) { s.service.Spec.ClusterIP, s.service.Spec.ClusterIPs = "None", nil },
			[]string{autoOn, "Warning HeadlessService the service is headless: its clients choose by name, no proxy reads the hints"},
		},
		"a label and an annotation that disagree": {
			[]int{1, 1, 1},
			func(s *stage) { s.service.Annotations[api.AnnotationTopologyMode] = "Disabled" },
			[]string{autoOn, "Warning ConflictingModes metadata.annotations[service.kubernetes.io/topology-mode]: says \"Disabled\", " +
				"but the label weir.dev/distribution says \"Auto\" and counts"},
		},
		"a key that weir does not know": {
			[]int{1, 1, 1},
			func(s *stage) { s.service.Annotations["weir.dev/overload-limits"] = "1" },
			[]string{autoOn, "Warning UnknownKey metadata.annotations[weir.dev/overload-limits]: weir knows no such key here, want " +
				"weir.dev/strategy, weir.dev/prefer, weir.dev/overload, weir.dev/drain-zone, weir.dev/overload-limit, weir.dev/demand: " +
				"passed over"},
		},
		"a limit that is not a number": {
			[]int{1, 1, 1},
			func(s *stage) { s.service.Annotations[api.AnnotationOverloadLimit] = "much" },
			[]string{autoOn, "Warning BadOverloadLimit metadata.annotations[weir.dev/overload-limit]: bad limit \"much\", want a ratio " +
				"above 0 and up to 10, as in 0.2 or 20%: the default is taken"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, topology.ModeAuto, c.ready...)
			if c.setUp != nil {
				c.setUp(s)
			}
			equal(t, "events", c.want, s.report(done()))
			equal(t, "events when nothing changed", []string(nil), s.report(done()))
			s.restart()
			equal(t, "events after a restart", []string(nil), s.report(done()))
		})
	}
}

func TestTransitionsAreToldOnce(t *testing.T) {
	s := newStage(t, topology.ModeAuto, 2, 2, 2)
	s.report(done())
	label := func(mode topology.Mode) { s.service.Labels[api.LabelDistribution] = string(mode) }
	steps := []struct {
		what string
		do   func()
		want []string
	}{
		{"the hints go", func() { s.endpoints(2, 2, 1) }, []string{
			autoOff + "Unable to allocate minimum required endpoints to each zone without exceeding overload threshold " +
				"(5 endpoints, 3 zones), addressType: IPv4",
		}},
		{"numbers change", func() { s.endpoints(3, 3, 2) }, nil},
		{"they come back", func() { s.endpoints(2, 2, 2) }, []string{autoOn}},
		{"another mode", func() { label(topology.ModePreferSameZone) }, []string{
			autoOff + "Topology Aware Hints has been disabled, addressType: IPv4",
			"Normal TrafficDistributionEnabled each endpoint serves its own zone, addressType: IPv4",
		}},
		{"all endpoints go", func() { s.endpoints() }, []string{
			"Warning TrafficDistributionDisabled the service has no ready endpoint, addressType: IPv4",
		}},
		{"and come back", func() { s.endpoints(1, 1, 1) }, []string{
			"Normal TrafficDistributionEnabled each endpoint serves its own zone, addressType: IPv4",
		}},
		{"no hints are wanted", func() { label(topology.ModeDisabled) }, []string{
			"Normal TrafficDistributionDisabled the service asks for no hints, addressType: IPv4",
		}},
		{"nodes go first", func() { label(topology.ModePreferSameNode) }, []string{
			"Normal TrafficDistributionEnabled each endpoint serves its own node, then its zone, addressType: IPv4",
		}},
		{"a mode that nobody knows", func() { label("Sideways") }, []string{
			"Normal TrafficDistributionEnabled ",
			"Warning UnknownMode ",
		}},
		{"the label goes", func() { delete(s.service.Labels, api.LabelDistribution) }, []string{
			"Normal TrafficDistributionDisabled hints are no longer managed, addressType: IPv4",
		}},
		{"and nothing is left to say", func() { s.endpoints(5) }, nil},
	}
	for _, step := range steps {
		step.do()
		got := s.report(done())
		if len(got) != len(step.want) {
			t.Fatalf("%s: events %q, want %q", step.what, got, step.want)
		}
		for i := range got {
			if !strings.HasPrefix(got[i], step.want[i]) {
				t.Errorf("%s: event %q, want %q", step.what, got[i], step.want[i])
			}
		}
		equal(t, "events when nothing changed after: "+step.what, []string(nil), s.report(done()))
	}
}

func TestTwoFamiliesDoNotFlap(t *testing.T) {
	s := newStage(t, topology.ModeAuto, 1, 1, 1)
	s.slices = append(s.slices, slice(discoveryv1.AddressTypeIPv6, 1, 1))
	equal(t, "events", []string{
		autoOn,
		autoOff + "Insufficient number of endpoints (2 endpoints, 3 zones), addressType: IPv6",
		"Warning ZonesWithoutEndpoints no ready endpoint lives in zone-c: their requests go elsewhere",
	}, s.report(done()))
	for range 5 {
		equal(t, "events later", []string(nil), s.report(done()))
	}
	equal(t, "writes of conditions", 1, s.applies())
	s.slices[1] = slice(discoveryv1.AddressTypeIPv6, 1, 1, 1)
	equal(t, "events once both are hinted", []string{strings.ReplaceAll(autoOn, "IPv4", "IPv6")}, s.report(done()))
}

func TestHintsAreToldWhenTheyAreThere(t *testing.T) {
	s := newStage(t, topology.ModeAuto, 2, 2, 2)
	equal(t, "events before they are written", []string(nil), s.report(status.Outcome{Slices: 1, Pending: 1}))
	equal(t, "events after", []string{autoOn}, s.report(status.Outcome{Slices: 1, Written: 1}))
}

func TestWhatChangedWhileNobodyLedIsTold(t *testing.T) {
	s := newStage(t, topology.ModeAuto, 2, 2, 2)
	s.report(done())
	s.endpoints(2, 2, 1)
	s.restart()
	equal(t, "events", []string{
		autoOff + "Unable to allocate minimum required endpoints to each zone without exceeding overload threshold " +
			"(5 endpoints, 3 zones), addressType: IPv4",
	}, s.report(done()))
	s.endpoints(2, 2, 2)
	s.restart()
	equal(t, "events", []string{autoOn}, s.report(done()))
}

func TestWhoDoesNotAskHearsOfFailuresOnly(t *testing.T) {
	s := newStage(t, topology.ModeUnset, 2, 2, 2)
	s.options.ManageAll = true
	equal(t, "events", []string(nil), s.report(done()))
	s.endpoints()
	equal(t, "events", []string(nil), s.report(done()))
	failure := status.Outcome{Slices: 1, Pending: 1, Err: apierrors.NewForbidden(endpointSlices(), "web-1", errors.New("no"))}
	equal(t, "events", 1, len(s.report(failure)))
}

func TestRefusalsOfTheAPIAreToldOnce(t *testing.T) {
	slices := endpointSlices()
	cases := map[string]error{
		"403":     apierrors.NewForbidden(slices, "web-1", errors.New("no such role")),
		"422":     apierrors.NewInvalid(schema.GroupKind{Group: slices.Group, Kind: "EndpointSlice"}, "web-1", nil),
		"429":     apierrors.NewTooManyRequests("slow down", 1),
		"500":     apierrors.NewInternalError(errors.New("etcd")),
		"503":     apierrors.NewServiceUnavailable("starting"),
		"504":     apierrors.NewTimeoutError("late", 1),
		"timeout": fmt.Errorf("patch: %w", context.DeadlineExceeded),
		"any":     errors.New("strange"),
	}
	for name, err := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, topology.ModePreferSameZone, 1, 1, 1)
			s.report(done())
			failing := status.Outcome{Slices: 1, Pending: 1, Err: err}
			want := []string{"Warning FailedToUpdateEndpointSlices Error updating Endpoint Slices for Service shop/web: " + err.Error()}
			equal(t, "events", want, s.report(failing))
			equal(t, "events of the same again", []string(nil), s.report(failing))
			equal(t, "events when all is well", []string(nil), s.report(done()))
			equal(t, "events when it comes back", want, s.report(failing))
		})
	}
}

func TestAConflictIsToldWhenLookingAgainDidNotHelp(t *testing.T) {
	s := newStage(t, topology.ModePreferSameZone, 1, 1, 1)
	s.report(done())
	conflict := status.Outcome{Slices: 1, Pending: 1, Err: apierrors.NewConflict(endpointSlices(), "web-1", errors.New("changed"))}
	for range 3 {
		equal(t, "events of one conflict", []string(nil), s.report(conflict))
		equal(t, "events after it", []string(nil), s.report(done()))
	}
	s.report(conflict)
	equal(t, "events of the second in a row", 1, len(s.report(conflict)))
	equal(t, "events of the third", 0, len(s.report(conflict)))
}

func TestALongNoteIsCut(t *testing.T) {
	s := newStage(t, topology.ModePreferSameZone, 1)
	s.report(done())
	events := s.report(status.Outcome{Slices: 1, Pending: 1, Err: errors.New(strings.Repeat("ü", 2000))})
	note := strings.TrimPrefix(events[0], "Warning FailedToUpdateEndpointSlices ")
	if len(note) > 1024 || len(note) < 1020 || !strings.HasSuffix(note, "ü…") {
		t.Errorf("a note of %d bytes that ends in %q", len(note), note[len(note)-8:])
	}
}

func TestAServiceMadeAnewIsToldAnew(t *testing.T) {
	s := newStage(t, topology.ModeAuto, 2, 2, 2)
	s.report(done())
	s.service.UID, s.service.Status.Conditions = "u2", nil
	equal(t, "events", []string{autoOn}, s.report(done()))
	s.reporter.Forget(topology.ServiceName{Namespace: "shop", Name: "web"})
	equal(t, "events of one that was forgotten", []string(nil), s.report(done()))
}

func TestHintsThatDoNotStayAreToldOnce(t *testing.T) {
	s := newStage(t, topology.ModePreferSameZone, 1, 1, 1)
	s.report(status.Outcome{Slices: 1, Written: 1})
	undone := []string{"Warning HintsUndone another writer keeps taking off the hints that weir writes, so they are written less " +
		"and less often: see that weir's webhook is called for EndpointSlices and answers"}
	for _, o := range []status.Outcome{
		{Slices: 1, Pending: 1, Undone: true}, {Slices: 1, Written: 1, Undone: true}, {Slices: 1, Undone: true},
	} {
		equal(t, "events", undone, s.report(o))
		equal(t, "conditions", []string{"Accepted=True Accepted", "Programmed=False HintsUndone"}, s.short())
		undone = nil
		s.now = s.now.Add(time.Minute)
	}
	conflict := apierrors.NewConflict(endpointSlices(), "web-1", errors.New("changed"))
	for range 2 {
		s.report(status.Outcome{Slices: 1, Pending: 1, Undone: true, Err: conflict})
		s.now = s.now.Add(time.Minute)
	}
	equal(t, "conditions", []string{"Accepted=True Accepted", "Programmed=False HintsUndone"}, s.short())
	s.report(status.Outcome{Slices: 1, Pending: 1, Undone: true, Err: apierrors.NewForbidden(endpointSlices(), "web-1", errors.New("no"))})
	equal(t, "conditions", []string{"Accepted=True Accepted", "Programmed=False WriteRefused"}, s.short())
	equal(t, "events", []string(nil), s.report(done()))
	equal(t, "conditions", []string{"Accepted=True Accepted", "Programmed=True Hinted"}, s.short())
	if again := s.report(status.Outcome{Slices: 1, Pending: 1, Undone: true}); len(again) != 1 {
		t.Errorf("the next time the events are %q, want one", again)
	}
	s.restart()
	equal(t, "events of the next leader, whose write stays", []string(nil), s.report(status.Outcome{Slices: 1, Written: 1}))
}
