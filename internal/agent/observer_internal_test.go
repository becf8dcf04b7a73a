package agent

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/l7"
)

var web = topology.ServiceName{Namespace: "shop", Name: "web"}

func TestResultsAreCountedUnderTheirCodes(t *testing.T) {
	m := newMetrics()
	o := m.observer(web, "a")
	addr := netip.MustParseAddrPort("10.0.0.1:80")
	for _, r := range []l7.Result{
		{Protocol: l7.HTTP, Endpoint: addr, Zone: "a", Code: 204, Status: l7.NoStatus},
		{Protocol: l7.HTTP, Endpoint: addr, Zone: "b", Code: 503, Status: l7.NoStatus, Outcome: pick.Failure},
		{Protocol: l7.HTTP, Code: 503, Status: l7.NoStatus, Outcome: pick.Failure},
		{Protocol: l7.HTTP, Endpoint: addr, Zone: "a", Status: l7.NoStatus, Outcome: pick.Canceled},
		{Protocol: l7.GRPC, Endpoint: addr, Zone: "a", Code: 200, Status: 14, Outcome: pick.Failure},
		{Protocol: l7.GRPC, Endpoint: addr, Zone: "a", Code: 200, Status: 77},
		{Protocol: l7.TCP, Endpoint: addr, Status: l7.NoStatus},
		{Protocol: l7.TCP, Endpoint: addr, Status: l7.NoStatus, Outcome: pick.LocalError},
	} {
		o.Request(r)
	}
	want := map[string]float64{
		"http a 2xx":         1,
		"http b 5xx":         1,
		"http none 5xx":      1,
		"http a canceled":    1,
		"grpc a UNAVAILABLE": 1,
		"grpc a 2xx":         1, // a status that gRPC does not have
		"tcp unknown ok":     1,
		"tcp unknown failed": 1,
	}
	if diff := cmp.Diff(want, values(t, m.requests, "protocol", "endpoint_zone", "code")); diff != "" {
		t.Errorf("weir_requests_total (-want +got)\n%s", diff)
	}
}

func TestBytesCostAndRetriesAddUp(t *testing.T) {
	m := newMetrics()
	o := m.observer(web, "")
	addr := netip.MustParseAddrPort("10.0.0.1:80")
	for range 3 {
		o.Request(l7.Result{
			Endpoint: addr, Zone: "b", Cost: 2, Attempts: 3, Code: 200, Status: l7.NoStatus, In: 10, Out: 100,
		})
	}
	o.Request(l7.Result{Code: 503, Status: l7.NoStatus, Reason: reason.PendingLimit})
	o.Connections(1)
	o.Connections(1)
	o.Connections(-1)
	for name, c := range map[string]struct {
		vec  prometheus.Collector
		want map[string]float64
	}{
		"bytes": {m.bytes, map[string]float64{
			"unknown b in ": 30, "unknown b out ": 300, "unknown none in ": 0, "unknown none out ": 0,
		}},
		"cost":        {m.cost, map[string]float64{"unknown b  ": 6, "unknown none  ": 0}},
		"cost bytes":  {m.costBytes, map[string]float64{"unknown b  ": 660, "unknown none  ": 0}},
		"retries":     {m.retries, map[string]float64{"   ": 6}},
		"refusals":    {m.refusals, map[string]float64{"   PendingLimit": 1}},
		"connections": {m.connections, map[string]float64{"   ": 1}},
	} {
		if diff := cmp.Diff(c.want, values(t, c.vec, "client_zone", "endpoint_zone", "direction", "reason")); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
	m.forget(web)
	for _, c := range m.all() {
		if got := values(t, c, "service"); len(got) != 0 {
			t.Errorf("a service that is gone leaves %v", got)
		}
	}
}

// values gathers a collector's series by the values of these labels.
func values(t *testing.T, c prometheus.Collector, labels ...string) map[string]float64 {
	t.Helper()
	r := prometheus.NewRegistry()
	r.MustRegister(c)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]float64)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			key := ""
			for i, name := range labels {
				if i > 0 {
					key += " "
				}
				for _, l := range m.GetLabel() {
					if l.GetName() == name {
						key += l.GetValue()
					}
				}
			}
			all[key] += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return all
}

func result() l7.Result {
	return l7.Result{
		Protocol: l7.HTTP, Endpoint: netip.MustParseAddrPort("10.0.0.1:80"), Zone: "zone-b", Cost: 1, Attempts: 1,
		Code: 200, Status: l7.NoStatus, Duration: 3 * time.Millisecond, In: 100, Out: 1000,
	}
}

func TestCountingARequestAllocatesNothing(t *testing.T) {
	o := newMetrics().observer(web, "zone-a")
	r := result()
	o.Request(r) // looks the series up
	if n := testing.AllocsPerRun(100, func() { o.Request(r) }); n != 0 {
		t.Errorf("%v allocations for each request", n)
	}
}

func BenchmarkCountingARequest(b *testing.B) {
	o := newMetrics().observer(web, "zone-a")
	r := result()
	b.ReportAllocs()
	for b.Loop() {
		o.Request(r)
	}
}
