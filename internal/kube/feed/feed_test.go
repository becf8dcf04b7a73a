package feed_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/convert"
	"github.com/weir-lb/weir/internal/kube/feed"
)

func TestNothingIsToldBeforeAllKindsWereListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		services := controllertest.NewFakeInformer() // the only one that is not synced
		c := informertest.FakeInformers{InformersByGVK: map[schema.GroupVersionKind]toolscache.SharedIndexInformer{
			corev1.SchemeGroupVersion.WithKind("Service"): services,
		}}
		f, err := feed.New(&c, feed.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- f.Run(ctx) }()
		services.Add(service("web"))
		time.Sleep(time.Hour)
		if s, _ := f.States().Load(); s != nil {
			t.Errorf("a state of %d services came too early", len(s.Records))
		}
		services.Synced()
		<-f.Synced()
		s, _ := f.States().Load()
		if got := names(s); got != "web" {
			t.Errorf("want web in the first state, got %q", got)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestAFeedThatIsStoppedBeforeItKnowsEndsQuietly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := informertest.FakeInformers{InformersByGVK: map[schema.GroupVersionKind]toolscache.SharedIndexInformer{
			corev1.SchemeGroupVersion.WithKind("Node"): controllertest.NewFakeInformer(),
		}}
		f, err := feed.New(&c, feed.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := f.Run(ctx); err != nil {
			t.Error(err)
		}
	})
}

func TestChangesAreGatheredAndTheRestStaysTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, feed.Options{Delay: 20 * time.Millisecond}, node("n1", "a"), service("web"), service("api"),
			slice("web-1", "web", "10.1.0.1@n1"))
		first := w.state()
		_, changed := w.feed.States().Load()
		w.set(slice("web-1", "web", "10.1.0.1@n1", "10.1.0.2@n1"))
		time.Sleep(19 * time.Millisecond)
		w.set(slice("web-2", "web", "10.1.0.3@n1"))
		select {
		case <-changed:
			t.Error("the first change was not kept until others had joined it")
		default:
		}
		time.Sleep(2 * time.Millisecond)
		second, again := w.feed.States().Load()
		if n := len(second.Snapshot.Services[1].Endpoints); n != 3 {
			t.Errorf("want both changes, got %d endpoints", n)
		}
		if first.Records[0] != second.Records[0] || first.Snapshot.Services[0] != second.Snapshot.Services[0] {
			t.Error("a service that did not change was made anew")
		}
		if first.Records[1] == second.Records[1] {
			t.Error("a record was changed in place")
		}
		w.state()
		select {
		case <-again:
			t.Error("a state was published without a change")
		default:
		}
	})
}

func TestOnlyAServicesObjectsOfNewVersionsMakeARecordAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, feed.Options{}, service("web"), slice("web-1", "web", "10.1.0.1"))
		first := w.record("web")
		same := w.slices["shop/web-1"].DeepCopy() // as a resync tells of it
		w.informer(same).Update(same, same)
		if w.record("web") != first {
			t.Error("a resync made the record anew")
		}
		w.set(slice("web-1", "web", "10.1.0.1"))
		second := w.record("web")
		if second == first || second.Slices[0].ResourceVersion == first.Slices[0].ResourceVersion {
			t.Error("the record does not have the new version of the slice")
		}
		if second.Service != first.Service {
			t.Error("the service was made anew though it is the same")
		}
	})
}

func TestAHeartbeatOfANodeIsNoChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, feed.Options{}, node("n1", "a"))
		first := w.state()
		w.set(node("n1", "a"))
		if w.state() != first {
			t.Error("a node that says the same made a new state")
		}
		w.set(node("n1", "b"))
		if z := w.state().Snapshot.Nodes[0].Zone; z != "b" {
			t.Errorf("want the node in its new zone b, got %q", z)
		}
	})
}

func TestAnEndpointMovesWithItsNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, feed.Options{}, node("n1", "a"), node("n2", "a"), service("on1"), service("on2"),
			slice("on1-1", "on1", "10.1.0.1@n1"), slice("on2-1", "on2", "10.1.0.2@n2"))
		other := w.record("on2")
		w.set(node("n1", "b"))
		if z := w.record("on1").Service.Endpoints[0].Zone; z != "b" {
			t.Errorf("want the endpoint in zone b with its node, got %q", z)
		}
		if w.record("on2") != other {
			t.Error("a service on another node was made anew")
		}
	})
}

func TestOneNodeAloneMissesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, feed.Options{Node: "n1"}, node("n1", "a"), service("web"), slice("web-1", "web", "10.1.0.1@n1/a", "10.1.0.2@n2/b"))
		s := w.state()
		if problems := s.Records[0].Problems; len(problems) > 0 {
			t.Errorf("want no problem with a node that is not watched, got %v", problems)
		}
		w.drop(w.nodes["/n1"])
		if n := len(w.state().Snapshot.Nodes); n != 0 {
			t.Errorf("want no node, got %d", n)
		}
	})
}

func TestSlicesThatWereLeftBehindHaveARecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, feed.Options{}, service("web"), slice("web-1", "web", "10.1.0.1"))
		w.state()
		w.drop(w.services["shop/web"])
		r := w.record("web")
		if r == nil || r.Object != nil || r.Service != nil || len(r.Slices) != 1 || r.Managed {
			t.Fatalf("want a record of one slice without a service, got %+v", r)
		}
		gone := w.slices["shop/web-1"]
		delete(w.slices, "shop/web-1")
		w.informer(gone).Delete(gone)
		if r := w.record("web"); r != nil {
			t.Errorf("want nothing left, got %+v", r)
		}
	})
}

func TestWhoIsManaged(t *testing.T) {
	named := service("named")
	named.Spec.Type = corev1.ServiceTypeExternalName
	headless := service("headless", api.LabelDistribution+"=Auto")
	headless.Spec.ClusterIP = corev1.ClusterIPNone
	native := service("native")
	native.Spec.TrafficDistribution = new("PreferSameZone")
	objects := func() []*corev1.Service {
		return []*corev1.Service{
			service("label", api.LabelDistribution+"=Auto"), service("nothing"), service("typo", api.LabelDistribution+"=Atuo"),
			named, headless, native, service("both", api.LabelDistribution+"=Atuo", "@"+api.AnnotationTopologyMode+"=Auto"),
		}
	}
	for manageAll, want := range map[bool]string{false: "headless label", true: "headless label native nothing"} {
		synctest.Test(t, func(t *testing.T) {
			w := start(t, feed.Options{Convert: convert.Options{ManageAll: manageAll}})
			for _, s := range objects() {
				w.set(s.DeepCopy())
			}
			var managed []string
			for _, r := range w.state().Records {
				if r.Managed {
					managed = append(managed, r.Name.Name)
				}
			}
			if got := strings.Join(managed, " "); got != want {
				t.Errorf("manage all %v: want %q, got %q", manageAll, want, got)
			}
		})
	}
}

func TestLastGoodWishesStayUntilTheyAreMended(t *testing.T) {
	const label, limit, demand = api.LabelDistribution, "@" + api.AnnotationOverloadLimit, "@" + api.AnnotationDemand
	synctest.Test(t, func(t *testing.T) {
		w := start(t, feed.Options{}, service("web", label+"=Auto", limit+"=0.5", demand+"=a=1"))
		w.state()
		w.set(service("web", label+"=Blanced", limit+"=lots", demand+"=a=b", "@weir.dev/strategy=Hazl"))
		r := w.record("web")
		s := r.Service
		if s.Mode != topology.ModeAuto || s.OverloadLimit != 0.5 || len(s.Demand) != 1 || !r.Managed || len(r.Refused()) != 3 {
			t.Errorf("want the last valid settings and three problems, got %+v of %+v", r, s)
		}
		if s.Overflow.Strategy != "Hazl" {
			t.Errorf("want the valid setting, got %q", s.Overflow.Strategy)
		}
		equal(t, "what counts instead", []string{"Auto stays", "the last good value stays", "the last good value stays"}, instead(r))
		w.set(service("web", label+"=Blanced")) // a second time, and a setting is removed
		if r = w.record("web"); r.Service.Mode != topology.ModeAuto || r.Service.OverloadLimit != 0 {
			t.Errorf("want Auto without a limit, got %+v", r.Service)
		}
		w.set(service("web", label+"=Balanced"))
		if r = w.record("web"); r.Service.Mode != topology.ModeBalanced || len(r.Refused()) != 0 {
			t.Errorf("want it mended, got %+v", r.Service)
		}
		w.drop(w.services["shop/web"])
		reborn := service("web", label+"=Blanced")
		reborn.UID = "another"
		w.set(reborn)
		if r = w.record("web"); r.Managed {
			t.Error("a new service of the same name inherited settings")
		}
		equal(t, "what counts instead", []string{"the hints are left alone"}, instead(r))
	})
}

// instead lists what counts in the place of what is refused.
func instead(r *feed.Record) []string {
	var texts []string
	for _, p := range r.Refused() {
		texts = append(texts, p.Instead)
	}
	return texts
}

func TestTheOverflowsLastGoodWishesStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const drain = "@weir.dev/drain-zone=a=2026-11-20T12:00:00Z"
		o := feed.Options{Convert: convert.Options{Strategies: []string{"Weir", "Hazl"}}}
		w := start(t, o, service("web", "@weir.dev/strategy=Hazl", "@weir.dev/prefer=cost", "@weir.dev/overload=shed", drain))
		want := w.record("web").Service.Overflow
		if want.Strategy != "Hazl" || want.Prefer != "cost" || !want.Shed || len(want.Drains) != 1 {
			t.Fatalf("the settings are not understood: %+v", want)
		}
		w.set(service("web", "@weir.dev/strategy=x", "@weir.dev/prefer=x", "@weir.dev/overload=x", "@weir.dev/drain-zone=x"))
		equal(t, "settings", want, w.record("web").Service.Overflow)
	})
}

func TestAfterARestartTheMarkTellsTheLastGoodMode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		marked := slice("web-1", "web", "10.1.0.1")
		marked.Annotations = map[string]string{api.AnnotationHints: "PreferSameNode"}
		w := start(t, feed.Options{}, service("web", api.LabelDistribution+"=PreferSomeNode"), marked)
		r := w.record("web")
		if !r.Managed || r.Service.Mode != topology.ModePreferSameNode {
			t.Errorf("want mode PreferSameNode of the mark, got %s, managed %v", r.Service.Mode, r.Managed)
		}
	})
}

func TestProblemsOfNodesAreLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		w := start(t, feed.Options{Logger: slog.New(slog.NewTextHandler(&text, nil))}, node("n1", ""))
		w.state()
		w.set(node("n2", "a"))
		w.state()
		if n := strings.Count(text.String(), "has no zone label"); n != 1 {
			t.Errorf("want the problem once, got it %d times:\n%s", n, text.String())
		}
		w.set(node("n1", "a"))
		w.state()
		w.set(node("n1", ""))
		w.state()
		if n := strings.Count(text.String(), "has no zone label"); n != 2 {
			t.Errorf("want the problem again when it is back, got it %d times:\n%s", n, text.String())
		}
	})
}

func TestMetricsTellOfTheState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewPedanticRegistry()
		w := start(t, feed.Options{Registerer: registry}, node("n1", "a"), node("n2", ""), service("web"),
			slice("web-1", "web", "10.1.0.1@n1", "10.1.0.2@n9"))
		w.state()
		w.set(service("api"))
		w.state()
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := make(map[string]float64)
		for _, f := range families {
			m := f.GetMetric()[0]
			got[f.GetName()] = value(m)
		}
		want := map[string]float64{
			"weir_feed_updates_total": 2, "weir_feed_services": 2, "weir_feed_endpoints": 2, "weir_feed_nodes": 2,
			"weir_feed_problems":                      2, // a node without a zone, an endpoint without a node
			"weir_feed_last_update_timestamp_seconds": got["weir_feed_last_update_timestamp_seconds"],
		}
		equal(t, "metrics", want, got)
		if at := got["weir_feed_last_update_timestamp_seconds"]; at < float64(time.Now().Add(-time.Minute).Unix()) {
			t.Errorf("the last update is said to be at %v", at)
		}
		if _, err := feed.New(&w.cache, feed.Options{Registerer: registry}); err == nil {
			t.Error("metrics were registered twice")
		}
	})
}

func value(m *dto.Metric) float64 {
	if m.Counter != nil {
		return m.GetCounter().GetValue()
	}
	return m.GetGauge().GetValue()
}
