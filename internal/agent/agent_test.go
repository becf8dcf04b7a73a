package agent_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/agent"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/latest"
	"github.com/weir-lb/weir/internal/patience"
	"github.com/weir-lb/weir/test/local"
)

func TestACalmZoneKeepsItsTraffic(t *testing.T) {
	w := newCluster(t, topology.ModePreferSameZone, 2)
	r := w.start(agent.Config{Node: "node-b"})
	if diff := cmp.Diff(map[string]int{"b": 100}, r.zones(100)); diff != "" {
		t.Errorf("answers by endpoint (-want +got)\n%s", diff)
	}
}

func TestAServiceWithoutHintsUsesEveryZone(t *testing.T) {
	w := newCluster(t, topology.ModeDisabled, 1)
	r := w.start(agent.Config{Node: "node-a"})
	counts := r.zones(90)
	for _, z := range []string{"a", "b", "c"} {
		if counts[z] == 0 {
			t.Errorf("zone %s answered nothing: %v", z, counts)
		}
	}
}

func TestSeveralAgentsInOneProcessActAsSeveralNodes(t *testing.T) {
	w := newCluster(t, topology.ModePreferSameZone, 1)
	for node, ip := range map[string]string{"a": "127.77.0.11", "b": "127.77.0.12", "c": "127.77.0.13"} {
		m, err := agent.ParseMapping("shop/web=" + ip)
		if err != nil {
			t.Fatal(err)
		}
		r := w.start(agent.Config{Node: "node-" + node, Map: []agent.Mapping{m}})
		if diff := cmp.Diff(map[string]int{node: 20}, r.zones(20)); diff != "" {
			t.Errorf("answers to node-%s (-want +got)\n%s", node, diff)
		}
	}
}

func TestAZoneThatFailsSpillsAndIsTakenBack(t *testing.T) {
	w := newCluster(t, topology.ModePreferSameZone, 2)
	r := w.start(agent.Config{Node: "node-a"})
	stopLoad := r.load(8)
	defer stopLoad()
	patience.Until(t, "zone a answers", func() bool { return hits(w.in("a")) > 200 })

	for _, e := range w.in("a") {
		e.answers(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	}
	before := hits(w.outsideA())
	patience.Until(t, "other zones answer", func() bool { return hits(w.outsideA()) > before+200 })
	patience.Until(t, "the pool says so", func() bool { return r.pool(t).State != "calm" })
	patience.Stays(t, someTicks, "the zone that fails is spared", func() bool {
		was, rest := hits(w.in("a")), hits(w.outsideA())
		patience.Until(t, "many requests are answered", func() bool { return hits(w.outsideA()) > rest+100 })
		return r.pool(t).State != "calm" && hits(w.in("a")) < was+50
	})

	for _, e := range w.in("a") {
		e.behaves()
	}
	before = hits(w.in("a"))
	patience.Until(t, "zone a answers again", func() bool { return hits(w.in("a")) > before+500 })
}

func TestTheLogTellsOfAZoneThatIsLost(t *testing.T) {
	w := newCluster(t, topology.ModePreferSameZone, 2)
	r := w.start(agent.Config{Node: "node-a"})
	stopLoad := r.load(4)
	defer stopLoad()
	patience.Until(t, "zone a answers", func() bool { return hits(w.in("a")) > 200 })
	if log := r.log.String(); strings.Contains(log, "pool changed its state") {
		t.Errorf("the log speaks of a calm pool:\n%s", log)
	}
	for _, e := range w.in("a") {
		e.stop()
	}
	const evacuated = `level=WARN msg="pool changed its state" service=shop/web`
	patience.Until(t, "the log tells the state", func() bool { return strings.Contains(r.log.String(), evacuated) })
	patience.Until(t, "the log names both endpoints", func() bool {
		log := r.log.String()
		return strings.Contains(log, "endpoints ejected") && strings.Contains(log, w.in("a")[0].addr.String()) &&
			strings.Contains(log, w.in("a")[1].addr.String())
	})
	served := hits(w.outsideA())
	lines := strings.Count(r.log.String(), "\n")
	patience.Until(t, "many more requests are served", func() bool { return hits(w.outsideA()) > served+1000 })
	if more := strings.Count(r.log.String(), "\n") - lines; more > 20 {
		t.Errorf("1000 requests cost %d lines of the log:\n%s", more, r.log)
	}
	if strings.Contains(r.log.String(), "state=evacuated before=evacuated") {
		t.Errorf("probing a lost zone is told as a change:\n%s", r.log)
	}
}

func TestAZoneThatSlowsDownSpills(t *testing.T) {
	w := newCluster(t, topology.ModePreferSameZone, 2)
	r := w.start(agent.Config{Node: "node-a"})
	stopLoad := r.load(8)
	defer stopLoad()
	patience.Until(t, "a normal latency is learned", func() bool { return hits(w.in("a")) > 3000 })

	released := make(chan struct{})
	defer close(released)
	for _, e := range w.in("a") {
		e.answers(func(w http.ResponseWriter, r *http.Request) {
			select { // far slower than the few milliseconds that are normal
			case <-time.After(200 * time.Millisecond):
			case <-released:
			case <-r.Context().Done():
			}
			_, _ = io.WriteString(w, "a")
		})
	}
	before := hits(w.outsideA())
	patience.Until(t, "other zones answer", func() bool { return hits(w.outsideA()) > before+200 })
}

func TestWhatAPlanLendsIsUsedByNeed(t *testing.T) {
	for strategy, want := range map[string]map[string]int{"Weir": {"a": 30}, "Static": nil} {
		w := newCluster(t, topology.ModeDisabled, 1)
		w.extra = func(svc *topology.Service) {
			for i := range svc.Endpoints {
				svc.Endpoints[i].Hints.Zones = []topology.Zone{"a", "b", "c"}
			}
		}
		w.snapshots.Store(w.snapshot(w.endpoints...))
		r := w.start(agent.Config{Node: "node-a", Hints: agent.HintsNative, Strategy: strategy})
		got := r.zones(30)
		if want == nil && len(got) != 3 {
			t.Errorf("%s: %v answered, want every zone that the hints name", strategy, got)
		}
		if want != nil {
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: answers by endpoint (-want +got)\n%s", strategy, diff)
			}
		}
	}
}

func TestAChangeOfHintsIsFollowedWithinASecond(t *testing.T) {
	w := newCluster(t, topology.ModeDisabled, 1)
	w.extra = func(svc *topology.Service) {
		for i := range svc.Endpoints {
			svc.Endpoints[i].Hints.Zones = []topology.Zone{svc.Endpoints[i].Zone}
		}
	}
	w.snapshots.Store(w.snapshot(w.endpoints...))
	r := w.start(agent.Config{Node: "node-a", Hints: agent.HintsNative})
	if diff := cmp.Diff(map[string]int{"a": 20}, r.zones(20)); diff != "" {
		t.Fatalf("answers by endpoint (-want +got)\n%s", diff)
	}
	w.extra = func(svc *topology.Service) {
		for i := range svc.Endpoints {
			svc.Endpoints[i].Hints.Zones = []topology.Zone{map[topology.Zone]topology.Zone{"a": "b", "b": "a", "c": "c"}[svc.Endpoints[i].Zone]}
		}
	}
	w.snapshots.Store(w.snapshot(w.endpoints...))
	r.follows("b")
}

func TestARemovedEndpointFinishesWhatItHas(t *testing.T) {
	w := newCluster(t, topology.ModePreferSameZone, 1)
	r := w.start(agent.Config{Node: "node-a"})
	entered, release := make(chan struct{}), make(chan struct{})
	w.in("a")[0].answers(func(w http.ResponseWriter, _ *http.Request) {
		close(entered)
		<-release
		_, _ = io.WriteString(w, "a, late")
	})
	type answer struct {
		status int
		body   string
		err    error
	}
	answered := make(chan answer, 1)
	go func() {
		status, body, err := r.get()
		answered <- answer{status, body, err}
	}()
	await(t, entered, "the request to be in flight")

	w.snapshots.Store(w.snapshot(w.outsideA()...))
	patience.Within(t, time.Second, "the endpoint is out of the pool", func() bool { return len(r.pool(t).Endpoints) == 2 })
	patience.Stays(t, someTicks, "only b and c answer", func() bool {
		counts := r.zones(5)
		return counts["b"]+counts["c"] == 5
	})
	close(release)
	if got := <-answered; got.err != nil || got.status != http.StatusOK || got.body != "a, late" {
		t.Errorf("the request in flight got %+v", got)
	}
}

func TestARemovedServiceIsDrainedAndItsAddressFreed(t *testing.T) {
	w := newCluster(t, topology.ModePreferSameZone, 1)
	r := w.start(agent.Config{Node: "node-a"})
	r.zones(1)
	empty := w.snapshot()
	empty.Services = nil
	w.snapshots.Store(empty)
	addr := netip.AddrPortFrom(w.serviceIP, w.port).String()
	patience.Within(t, time.Second, "the address is free", func() bool {
		l, err := net.Listen("tcp", addr) //nolint:noctx // binds at once.
		if err != nil {
			return false
		}
		_ = l.Close()
		return true
	})
	patience.Until(t, "the status lists nothing", func() bool { return len(r.Status().Services) == 0 })
	w.snapshots.Store(w.snapshot(w.endpoints...))
	r.untilHome()
}

func TestAPortThatCannotBeBoundIsReportedAndTriedAgain(t *testing.T) {
	w := newCluster(t, topology.ModePreferSameZone, 1)
	other := local.FreePort(t, "127.77.0.1")
	w.extra = func(svc *topology.Service) {
		svc.Ports = append(svc.Ports, topology.Port{Name: "http2", Protocol: topology.TCP, Port: other})
	}
	w.snapshots.Store(w.snapshot(w.endpoints...))
	taken, err := net.Listen("tcp", netip.AddrPortFrom(w.serviceIP, other).String()) //nolint:noctx // binds at once.
	if err != nil {
		t.Fatal(err)
	}
	r := w.start(agent.Config{Node: "node-a"})
	if diff := cmp.Diff(map[string]int{"a": 10}, r.zones(10)); diff != "" {
		t.Errorf("the rest is not served (-want +got)\n%s", diff)
	}
	if got := r.codes(); len(got) != 1 || got[0] != reason.AddressNotBound {
		t.Errorf("problems %v, want %s", got, reason.AddressNotBound)
	}
	_ = taken.Close()
	patience.Until(t, "the address is open", func() bool { return len(r.codes()) == 0 })
	patience.Stays(t, someTicks, "there is no problem", func() bool { return len(r.codes()) == 0 })
	if got := r.gauge(t, "weir_listeners", "state", "open"); got != 2 {
		t.Errorf("%v listeners are open, want 2", got)
	}
}

func TestWhatCannotBeServedIsReported(t *testing.T) {
	w := newCluster(t, topology.ModePreferSameZone, 1)
	w.extra = func(svc *topology.Service) {
		svc.Ports = append(svc.Ports, topology.Port{Name: "dns", Protocol: topology.UDP, Port: 53})
		svc.Overflow = topology.OverflowSettings{Strategy: "Astrology", Drains: []topology.Drain{
			{Zone: "a", Until: time.Unix(0, 0)}, {Zone: "atlantis", Until: time.Unix(0, 0)},
		}}
	}
	s := w.snapshot(w.endpoints...)
	name := func(n string) topology.ServiceName { return topology.ServiceName{Namespace: "shop", Name: n} }
	port := []topology.Port{{Protocol: topology.TCP, Port: w.port}}
	s = topology.NewSnapshot(s.Nodes, append(s.Services,
		&topology.Service{ServiceName: name("headless"), Ports: port, Headless: true},
		&topology.Service{ServiceName: name("lent"), Ports: port, ClusterIPs: []netip.Addr{w.serviceIP}, Proxy: "x"},
		&topology.Service{ServiceName: name("portless"), ClusterIPs: []netip.Addr{w.serviceIP}},
		&topology.Service{ServiceName: name("zz-twin"), Ports: port, ClusterIPs: []netip.Addr{w.serviceIP}},
	), topology.Costs{})
	w.snapshots.Store(s)
	nobody, err := agent.ParseMapping("shop/nobody=127.77.0.9")
	if err != nil {
		t.Fatal(err)
	}
	r := w.start(agent.Config{Node: "node-a", Map: []agent.Mapping{nobody}, Mode: topology.ModeAuto})
	got := make(map[string]reason.Code)
	for _, p := range r.Status().Problems {
		got[p.Service+" "+string(p.Reason.Code)] = p.Reason.Code
	}
	for _, want := range []string{
		"shop/headless NoClusterIP", "shop/lent OtherProxy", "shop/portless NoPorts", "shop/zz-twin AddressTaken", "shop/nobody MappedServiceAbsent",
		"shop/web DrainOfNoZone", "shop/web ProtocolNotServed", "shop/web StrategyRefused",
	} {
		if got[want] == "" {
			t.Errorf("not reported: %s (problems: %v)", want, got)
		}
		delete(got, want)
	}
	if len(got) > 0 {
		t.Errorf("reported besides: %v", got)
	}
	r.url = "http://" + netip.AddrPortFrom(w.serviceIP, w.port).String()
	if diff := cmp.Diff(map[string]int{"a": 5}, r.zones(5)); diff != "" {
		t.Errorf("the rest is not served (-want +got)\n%s", diff)
	}
}

func TestAnUnknownNodeIsAnErrorThatNamesThoseNearby(t *testing.T) {
	w := newCluster(t, topology.ModeAuto, 1)
	_, err := agent.New(agent.Config{Node: "nod-b"}, w.snapshots, agent.Deps{})
	var unknown *agent.UnknownNodeError
	if !errors.As(err, &unknown) || unknown.Near[0] != "node-b" || !strings.Contains(err.Error(), "did you mean node-b") {
		t.Errorf("New: %v, want an unknown node with node-b nearby", err)
	}
	if _, err := agent.New(agent.Config{Node: "elsewhere", Zone: "a"}, w.snapshots, agent.Deps{}); err != nil {
		t.Errorf("New with a zone: %v", err)
	}
	none := latest.New(topology.Snapshot{})
	if _, err := agent.New(agent.Config{Node: "n"}, none, agent.Deps{}); err == nil || !strings.Contains(err.Error(), "no nodes at all") {
		t.Errorf("New without nodes: %v", err)
	}
}

func TestANodeThatGoesAwayKeepsItsZone(t *testing.T) {
	w := newCluster(t, topology.ModePreferSameZone, 1)
	r := w.start(agent.Config{Node: "node-c"})
	s := w.snapshot(w.endpoints...)
	s.Nodes = s.Nodes[:2]
	w.snapshots.Store(s)
	patience.Until(t, "it is reported", func() bool {
		got := r.codes()
		return len(got) > 0 && got[0] == reason.NodeGone
	})
	patience.Stays(t, someTicks, "zone c answers alone", func() bool { return r.zones(5)["c"] == 5 })
}

func TestANodeThatMovesIsServedByItsNewZone(t *testing.T) {
	w := newCluster(t, topology.ModePreferSameZone, 1)
	r := w.start(agent.Config{Node: "node-a"})
	r.untilHome()
	s := w.snapshot(w.endpoints...)
	s.Nodes[0].Zone, s.Nodes[1].Zone = "b", "a"
	w.snapshots.Store(s)
	r.follows("b")
}

func TestAListenerThatIsReplacedLeavesItsAddressAtOnce(t *testing.T) {
	for name, change := range map[string]func(*topology.Snapshot){
		"the node moves":       func(s *topology.Snapshot) { s.Nodes[0].Zone = "b" },
		"the protocol changes": func(s *topology.Snapshot) { s.Services[0].Ports[0].AppProtocol = "" },
	} {
		t.Run(name, func(t *testing.T) {
			w := newCluster(t, topology.ModePreferSameZone, 1)
			r := w.start(agent.Config{Node: "node-a"})
			s := w.snapshot(w.endpoints...)
			change(&s)
			before := r.Status()
			w.snapshots.Store(s)
			patience.Until(t, "the change is seen", func() bool { return !reflect.DeepEqual(before, r.Status()) })
			if strings.Contains(r.log.String(), string(reason.AddressNotBound)) {
				t.Error("the new listener found the address taken by the old one")
			}
			if _, _, err := r.get(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestADrainedZoneGetsNothing(t *testing.T) {
	w := newCluster(t, topology.ModePreferSameZone, 1)
	r := w.start(agent.Config{Node: "node-a"})
	r.untilHome()
	w.extra = func(svc *topology.Service) {
		svc.Overflow.Drains = []topology.Drain{{Zone: "a", Until: time.Now().Add(time.Hour)}}
	}
	w.snapshots.Store(w.snapshot(w.endpoints...))
	r.spares("a")
	w.extra = nil
	w.snapshots.Store(w.snapshot(w.endpoints...))
	r.untilHome()
}

func TestAZoneThatIsDrainedFromTheStartGetsNothing(t *testing.T) {
	for name, until := range map[string]time.Time{
		"for an hour": time.Now().Add(time.Hour),
		"for ever":    time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC),
	} {
		t.Run(name, func(t *testing.T) {
			w := newCluster(t, topology.ModePreferSameZone, 1)
			w.extra = func(svc *topology.Service) {
				svc.Overflow.Drains = []topology.Drain{{Zone: "a", Until: until}}
			}
			w.snapshots.Store(w.snapshot(w.endpoints...))
			r := w.start(agent.Config{Node: "node-a"})
			r.spares("a")
		})
	}
}

func TestAServiceChangesItsStrategyWithoutClosingItsListener(t *testing.T) {
	w := newCluster(t, topology.ModePreferSameZone, 1)
	r := w.start(agent.Config{Node: "node-a"})
	stopLoad := r.load(4)
	w.extra = func(svc *topology.Service) { svc.Overflow.Strategy = "Random" }
	w.snapshots.Store(w.snapshot(w.endpoints...))
	patience.Until(t, "every zone answers", func() bool { return hits(w.in("b")) > 20 && hits(w.in("c")) > 20 })
	if failed := stopLoad(); failed > 0 {
		t.Errorf("%d requests failed during the change", failed)
	}
	if got := r.Status().Services[0].Strategy; got != "Random" {
		t.Errorf("strategy %q", got)
	}
}

func TestStoppingLetsRequestsInFlightFinish(t *testing.T) {
	w := newCluster(t, topology.ModePreferSameZone, 1)
	r := w.start(agent.Config{Node: "node-a"})
	entered, release := make(chan struct{}), make(chan struct{})
	w.in("a")[0].answers(func(w http.ResponseWriter, _ *http.Request) {
		close(entered)
		<-release
		_, _ = io.WriteString(w, "done")
	})
	body := make(chan string, 1)
	go func() {
		_, b, err := r.get()
		if err != nil {
			b = err.Error()
		}
		body <- b
	}()
	await(t, entered, "the request to be in flight")
	stopped := make(chan error, 1)
	go func() { stopped <- r.stop() }()
	patience.Until(t, "new connections are refused", func() bool {
		c, err := net.Dial("tcp", netip.AddrPortFrom(w.serviceIP, w.port).String()) //nolint:noctx // loopback.
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	})
	close(release)
	if got := <-body; got != "done" {
		t.Errorf("the request in flight got %q", got)
	}
	if err := <-stopped; err != nil {
		t.Errorf("Run: %v", err)
	}
}

// The listener of a removed service drains by itself; the end of the agent has to wait for that drain, too.
func TestStoppingWaitsForTheDrainOfARemovedService(t *testing.T) {
	w := newCluster(t, topology.ModePreferSameZone, 1)
	r := w.start(agent.Config{Node: "node-a"})
	entered, release := make(chan struct{}), make(chan struct{})
	w.in("a")[0].answers(func(w http.ResponseWriter, _ *http.Request) {
		close(entered)
		<-release
		_, _ = io.WriteString(w, "done")
	})
	body := make(chan string, 1)
	go func() {
		_, b, err := r.get()
		if err != nil {
			b = err.Error()
		}
		body <- b
	}()
	await(t, entered, "the request to be in flight")
	empty := w.snapshot()
	empty.Services = nil
	w.snapshots.Store(empty)
	patience.Until(t, "the status lists nothing", func() bool { return len(r.Status().Services) == 0 })
	stopped := make(chan error, 1)
	go func() { stopped <- r.stop() }()
	patience.Until(t, "the agent drains", func() bool { return r.Serving() != nil })
	select {
	case err := <-stopped:
		t.Errorf("Run ended before the request in flight, with %v", err)
		stopped <- err
	case <-time.After(100 * time.Millisecond): // Run ends at once if nothing keeps it
	}
	close(release)
	if got := <-body; got != "done" {
		t.Errorf("the request in flight got %q", got)
	}
	if err := <-stopped; err != nil {
		t.Errorf("Run: %v", err)
	}
}

func TestTheDrainLimitCutsOffWhoNeverEnds(t *testing.T) {
	w := newCluster(t, topology.ModePreferSameZone, 1)
	r := w.start(agent.Config{Node: "node-a", Drain: 50 * time.Millisecond})
	entered, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	w.in("a")[0].answers(func(http.ResponseWriter, *http.Request) {
		once.Do(func() { close(entered) })
		<-release
	})
	failed := make(chan struct{})
	go func() {
		defer close(failed)
		_, _, _ = r.get()
	}()
	await(t, entered, "the request to be in flight")
	if err := r.stop(); err != nil {
		t.Errorf("Run: %v", err)
	}
	close(release)
	await(t, failed, "the request to be cut off")
}
