package status_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/status"
)

func (s *stage) gathers(want string, names ...string) {
	s.t.Helper()
	if err := testutil.GatherAndCompare(s.registry, strings.NewReader(want), names...); err != nil {
		s.t.Error(err)
	}
}

// family gathers one metric.
func (s *stage) family(name string) *dto.MetricFamily {
	s.t.Helper()
	families, err := s.registry.Gather()
	if err != nil {
		s.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f
		}
	}
	s.t.Fatalf("no metric %s", name)
	return nil
}

func TestServicesAreCountedOnceSomebodyLeads(t *testing.T) {
	s := newStage(t, topology.ModePreferSameZone, 3, 1)
	d := s.decide()
	s.gathers("", "weir_services")
	if err := s.reporter.Report(t.Context(), d, status.Outcome{Slices: 1}); err != nil {
		t.Fatal(err)
	}
	s.gathers(`
# HELP endpoint_slice_controller_services_count_by_traffic_distribution Managed services, by the distribution that they ask for.
# TYPE endpoint_slice_controller_services_count_by_traffic_distribution gauge
endpoint_slice_controller_services_count_by_traffic_distribution{traffic_distribution="PreferSameZone"} 1
# HELP weir_in_zone_share Share of requests that plans expect to stay in their zone, mean of the services of a mode with endpoints.
# TYPE weir_in_zone_share gauge
weir_in_zone_share{mode="PreferSameZone"} 0.6666666666666666
# HELP weir_service_expected_overload Expected overload of the most loaded endpoint of all services of a mode: 0.2 is 20 % above its fair part.
# TYPE weir_service_expected_overload gauge
weir_service_expected_overload{mode="PreferSameZone"} 0.6666666666666665
# HELP weir_service_warnings Services with warnings, by reason: a setting that is not followed, or a plan that cannot be good.
# TYPE weir_service_warnings gauge
weir_service_warnings{reason="EndpointsOverloaded"} 1
weir_service_warnings{reason="ZonesWithoutEndpoints"} 1
# HELP weir_services Managed services, by mode and by what their plan says first.
# TYPE weir_services gauge
weir_services{mode="PreferSameZone",reason="EndpointsServeOwnZone"} 1
`, "weir_services", "weir_service_warnings", "weir_service_expected_overload", "weir_in_zone_share",
		"endpoint_slice_controller_services_count_by_traffic_distribution")

	// Numbers are the newest, also where nobody had to look at the service because of them.
	s.nodes[0].CPU = 40_000
	s.decide()
	if got := s.family("weir_in_zone_share").GetMetric()[0].GetGauge().GetValue(); got < 0.9 {
		t.Errorf("%v in zone, want that of the newest plan", got)
	}
	s.slices = []*discoveryv1.EndpointSlice{slice(discoveryv1.AddressTypeIPv4)}
	s.decide()
	s.gathers(`
# HELP weir_services Managed services, by mode and by what their plan says first.
# TYPE weir_services gauge
weir_services{mode="PreferSameZone",reason="NoEndpoints"} 1
`, "weir_services", "weir_in_zone_share", "weir_service_expected_overload")
}

// A replica that lost the lease must not count what the next leader counts, nor take up later where it stopped: how long
// slices have been behind is not known any more, and what the next leader told must not be told again.
func TestWhoRestsCountsNothingAndForgets(t *testing.T) {
	s := newStage(t, topology.ModePreferSameZone, 3, 1)
	s.report(status.Outcome{Slices: 1})
	s.report(status.Outcome{Slices: 1, Pending: 1}) // behind, when the lease is lost
	s.reporter.EndTerm()
	s.gathers("", "weir_services", "weir_in_zone_share", "endpoint_slice_controller_services_count_by_traffic_distribution")

	s.now = s.now.Add(time.Hour)
	want := s.conditions()
	equal(t, "events of the next term", []string(nil), s.report(status.Outcome{Slices: 1, Pending: 1}))
	equal(t, "conditions", want, s.conditions())
	s.report(status.Outcome{Slices: 1, Written: 1})
	took := s.family("weir_hints_programming_duration_seconds").GetMetric()[0].GetHistogram()
	if sum := took.GetSampleSum(); sum >= time.Hour.Seconds() {
		t.Errorf("programming took %v s, an hour of which nobody led", sum)
	}
	s.gathers(`
# HELP weir_services Managed services, by mode and by what their plan says first.
# TYPE weir_services gauge
weir_services{mode="PreferSameZone",reason="EndpointsServeOwnZone"} 1
`, "weir_services")
}

func TestSyncsAndWritesAreCounted(t *testing.T) {
	s := newStage(t, topology.ModeAuto, 2, 2, 2)
	conflict := apierrors.NewConflict(endpointSlices(), "web-1", errors.New("changed"))
	s.report(status.Outcome{Slices: 3, Pending: 1, Written: 2, Err: conflict})
	s.report(status.Outcome{Slices: 3, Written: 1})
	s.report(status.Outcome{Slices: 3, Pending: 3, Err: apierrors.NewInternalError(errors.New("etcd"))})
	s.reporter.Wrote(3*time.Millisecond, nil)
	s.reporter.Wrote(3*time.Millisecond, conflict)
	s.reporter.Wrote(3*time.Millisecond, errors.Join(conflict, apierrors.NewForbidden(endpointSlices(), "web-1", nil)))
	s.gathers(`
# HELP endpoint_slice_controller_endpointslices_changed_per_sync EndpointSlices written in one sync of a service.
# TYPE endpoint_slice_controller_endpointslices_changed_per_sync histogram
endpoint_slice_controller_endpointslices_changed_per_sync_bucket{topology="Auto",traffic_distribution="",le="0"} 1
endpoint_slice_controller_endpointslices_changed_per_sync_bucket{topology="Auto",traffic_distribution="",le="1"} 2
endpoint_slice_controller_endpointslices_changed_per_sync_bucket{topology="Auto",traffic_distribution="",le="2"} 3
endpoint_slice_controller_endpointslices_changed_per_sync_bucket{topology="Auto",traffic_distribution="",le="3"} 3
endpoint_slice_controller_endpointslices_changed_per_sync_bucket{topology="Auto",traffic_distribution="",le="5"} 3
endpoint_slice_controller_endpointslices_changed_per_sync_bucket{topology="Auto",traffic_distribution="",le="10"} 3
endpoint_slice_controller_endpointslices_changed_per_sync_bucket{topology="Auto",traffic_distribution="",le="20"} 3
endpoint_slice_controller_endpointslices_changed_per_sync_bucket{topology="Auto",traffic_distribution="",le="50"} 3
endpoint_slice_controller_endpointslices_changed_per_sync_bucket{topology="Auto",traffic_distribution="",le="100"} 3
endpoint_slice_controller_endpointslices_changed_per_sync_bucket{topology="Auto",traffic_distribution="",le="200"} 3
endpoint_slice_controller_endpointslices_changed_per_sync_bucket{topology="Auto",traffic_distribution="",le="500"} 3
endpoint_slice_controller_endpointslices_changed_per_sync_bucket{topology="Auto",traffic_distribution="",le="1000"} 3
endpoint_slice_controller_endpointslices_changed_per_sync_bucket{topology="Auto",traffic_distribution="",le="+Inf"} 3
endpoint_slice_controller_endpointslices_changed_per_sync_sum{topology="Auto",traffic_distribution=""} 3
endpoint_slice_controller_endpointslices_changed_per_sync_count{topology="Auto",traffic_distribution=""} 3
# HELP endpoint_slice_controller_syncs Syncs of a service: success, stale (another writer was first) or error.
# TYPE endpoint_slice_controller_syncs counter
endpoint_slice_controller_syncs{result="error"} 1
endpoint_slice_controller_syncs{result="stale"} 1
endpoint_slice_controller_syncs{result="success"} 1
# HELP weir_slice_writes_total Patches of EndpointSlices, by what the API server answered.
# TYPE weir_slice_writes_total counter
weir_slice_writes_total{result="forbidden"} 1
weir_slice_writes_total{result="stale"} 1
weir_slice_writes_total{result="success"} 1
`, "endpoint_slice_controller_endpointslices_changed_per_sync", "endpoint_slice_controller_syncs", "weir_slice_writes_total")
}

func TestProgrammingTakesFromTheChangeToTheLastWrite(t *testing.T) {
	s := newStage(t, topology.ModeAuto, 2, 2, 2)
	first := s.decide() // seen now
	s.now = s.now.Add(4 * time.Second)
	if err := s.reporter.Report(t.Context(), first, status.Outcome{Slices: 2, Pending: 1, Written: 1}); err != nil {
		t.Fatal(err)
	}
	s.now = s.now.Add(3 * time.Second) // the write is seen, which is a change of the service
	s.report(status.Outcome{Slices: 2, Written: 1})
	s.now = s.now.Add(time.Hour)
	s.report(status.Outcome{Slices: 2}) // nothing to write: nothing took any time
	took := s.family("weir_hints_programming_duration_seconds").GetMetric()[0].GetHistogram()
	equal(t, "observations", uint64(1), took.GetSampleCount())
	equal(t, "seconds", 7.0, took.GetSampleSum())
}

// Whatever is exported stands in the guide, with its type and labels.
func TestHintsThatAreUndoneAreCounted(t *testing.T) {
	s := newStage(t, topology.ModePreferSameZone, 1, 1)
	for _, wait := range []time.Duration{0, 0, time.Second} {
		s.reporter.Undone(wait)
	}
	s.gathers(`
# HELP weir_hints_undone_total Times that another writer removed the hints of a service, by whether they were written again at once or later.
# TYPE weir_hints_undone_total counter
weir_hints_undone_total{rewrite="at_once"} 2
weir_hints_undone_total{rewrite="delayed"} 1
`, "weir_hints_undone_total")
	s.report(status.Outcome{Slices: 1, Pending: 1, Undone: true})
	s.now = s.now.Add(time.Minute)
	s.report(status.Outcome{Slices: 1, Written: 1, Undone: true})
	if n := s.family("weir_hints_programming_duration_seconds").GetMetric()[0].GetHistogram().GetSampleCount(); n != 0 {
		t.Errorf("the wait of a rewrite counts as %d times that programming took", n)
	}
}

func TestTheGuideListsTheMetrics(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "guide", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Controller\n")
	promised := make(map[string]string)
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([a-z]+) \\| *([a-z_, ]*?) *\\|").FindAllStringSubmatch(section, -1) {
		promised[m[1]] = m[2] + " by " + m[3]
	}

	s := newStage(t, topology.ModePreferSameZone, 3, 1)
	s.report(status.Outcome{Slices: 1, Written: 1})
	s.reporter.Wrote(time.Millisecond, nil)
	families, err := s.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "metrics", 13, len(families))
	for _, f := range families {
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		slices.Sort(labels)
		want := strings.ToLower(f.GetType().String()) + " by " + strings.Join(labels, ", ")
		equal(t, "the guide on "+f.GetName(), want, promised[f.GetName()])
	}
}

func TestAWishThatIsNotFollowedIsCounted(t *testing.T) {
	s := newStage(t, topology.ModePreferSameZone, 1, 1, 1)
	s.service.Annotations[api.AnnotationTopologyMode] = "Auto"
	s.service.Annotations[api.AnnotationOverloadLimit] = "lots"
	if err := s.reporter.Report(t.Context(), s.decide(), status.Outcome{Slices: 1}); err != nil {
		t.Fatal(err)
	}
	const head = `
# HELP weir_service_warnings Services with warnings, by reason: a setting that is not followed, or a plan that cannot be good.
# TYPE weir_service_warnings gauge
`
	s.gathers(head+`weir_service_warnings{reason="BadOverloadLimit"} 1
weir_service_warnings{reason="ConflictingModes"} 1
`, "weir_service_warnings")
	s.service.Labels[api.LabelDistribution] = "Nearest" // of which no good mode is known: it is not managed
	s.service.Annotations = nil
	s.decide()
	s.gathers(head+`weir_service_warnings{reason="UnknownMode"} 1
`, "weir_service_warnings")
}
