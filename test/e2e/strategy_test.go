package e2e_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/patience"
)

// strategy makes a document of the type that was shipped, about shop/backend, of what it says of localities.
func strategy(locality string) string {
	return `type: MeshLoadBalancingStrategy
name: near
mesh: default
spec:
  targetRef: {kind: Mesh}
  to:
  - targetRef: {kind: MeshService, name: backend, namespace: shop}
    default:
      loadBalancer: {type: RoundRobin}
      localityAwareness:
        ` + strings.ReplaceAll(strings.TrimSpace(locality), "\n", "\n        ") + "\n"
}

func TestK11AndK46AffinityTagsAreFollowedWithinThreePercent(t *testing.T) {
	const requests = 4000
	for i, c := range []struct {
		name, tag string
		first     int // the part of who shares the node, in percent
	}{
		{"K-47 without a weight", "{key: kubernetes.io/hostname}", 90},
		{"with a weight", "{key: kubernetes.io/hostname, weight: 3}", 75},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMesh(t, 30+i, ownZoneThrice...)
			for _, p := range m.pods[1:3] {
				p.node = "far-us-east"
			}
			m.write(t)
			got := m.follow(t, strategy("localZone: {affinityTags: ["+c.tag+"]}")).asker(t, "").counts(requests)
			first := requests * c.first / 100
			rest := (requests - first) / 2
			if d := got["pod-0"] - first; d > requests*3/100 || d < -requests*3/100 {
				t.Errorf("the pod of the node got %d of %d, want %d ± 3 %%", got["pod-0"], requests, first)
			}
			delete(got, "pod-0")
			within(t, got, map[string]int{"pod-1": rest, "pod-2": rest}, requests*3/100)
		})
	}
}

// answers waits until a zone answers; empty: until none does.
func (m *mesh) answers(t *testing.T, c *asker, zone string) {
	t.Helper()
	patience.Until(t, "zone "+zone+" answers", func() bool {
		got := m.zoneOf(c.get("/"))
		return got == zone || zone == "" && isRefusal(got)
	})
}

// isRefusal tells whether an answer is weir's own: no endpoint may have the request, or none takes it.
func isRefusal(answer string) bool { return answer == "503" || answer == "502" }

// lose takes all pods of a zone away.
func (m *mesh) lose(zone string) {
	for _, p := range m.in(zone) {
		p.stop()
	}
}

// The zones of a chain are lost one after the other: each has to answer everything when those before it are gone, and the
// others never get a request.
func TestK12AndK50FailoverChains(t *testing.T) {
	for i, c := range []struct{ name, locality, chain, never string }{
		{"K-44 localZone alone", "localZone: {}", "us-east", "us-west eu-north"},
		{"None", "crossZone: {failover: [{to: {type: None}}]}", "us-east", "us-west eu-north"},
		{"K-50 no rule", "crossZone: {}", "us-east", "us-west eu-north"},
		{"Only", "crossZone: {failover: [{to: {type: Only, zones: [eu-north]}}]}", "us-east eu-north", "us-west"},
		{"AnyExcept", "crossZone: {failover: [{to: {type: AnyExcept, zones: [us-west]}}]}", "us-east eu-north", "us-west"},
		{"Any in an order", "crossZone: {failover: [{to: {type: Only, zones: [eu-north]}}, {to: {type: Any}}]}", "us-east eu-north us-west", ""},
		{"K-53 None ends the list", "crossZone: {failover: [{to: {type: Only, zones: [us-west]}}, {to: {type: None}}]}", "us-east us-west", "eu-north"},
		{"from.zones: this zone's", `
crossZone:
  failover:
  - {from: {zones: [us-west, eu-north]}, to: {type: Any}}
  - {from: {zones: [us-east]}, to: {type: Only, zones: [us-west]}}
`, "us-east us-west", "eu-north"},
		{"from.zones: K-51 another zone's leave no gap", `
crossZone:
  failover:
  - {from: {zones: [us-west]}, to: {type: Only, zones: [us-west]}}
  - {from: {zones: [us-east]}, to: {type: Only, zones: [eu-north]}}
  - {to: {type: Any}}
`, "us-east eu-north us-west", ""},
		{"K-43 crossZone wins over disabled", "disabled: true\ncrossZone: {failover: [{to: {type: Only, zones: [us-west]}}]}", "us-east us-west", "eu-north"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMesh(t, 40+i, meshZones...) // one endpoint each, so that the second zone to be lost may not be ejected
			client := m.follow(t, strategy(c.locality)).asker(t, "")
			for zone := range strings.FieldsSeq(c.chain) {
				// At first retries hide that the zone before is lost, until their budget is used up or the law acts.
				patience.Within(t, 5*time.Second, zone+" answers everything", func() bool {
					for began := time.Now(); time.Since(began) < 200*time.Millisecond; {
						if m.zones(client, 30)[zone] < 30 {
							return false
						}
					}
					return true
				})
				m.lose(zone)
			}
			m.answers(t, client, "")
			client.counts(30)
			for zone := range strings.FieldsSeq(c.never) {
				if n := m.hits(zone); n > 0 {
					t.Errorf("%s got %d requests and may get none", zone, n)
				}
			}
		})
	}
}

func TestK50FromZonesAreTheClients(t *testing.T) {
	m := newMesh(t, 60, meshZones...)
	m.put(t, "policy.yaml", strategy(`
crossZone:
  failover:
  - {from: {zones: [us-east]}, to: {type: Only, zones: [eu-north]}}
  - {from: {zones: [us-west]}, to: {type: Only, zones: [us-east]}}
`))
	west := m.start(t, "us-west", "shop/backend").asker(t, "")
	north := m.start(t, "eu-north", "shop/backend").asker(t, "")
	m.answers(t, west, "us-west")
	m.answers(t, north, "eu-north")
	m.lose("us-west")
	m.answers(t, west, "us-east")
	m.lose("eu-north")
	m.answers(t, north, "") // no rule is for it
	if n := m.hits("us-east"); n == 0 {
		t.Error("nobody went to us-east")
	}
	patience.Stays(t, time.Second, "clients in eu-north are refused", func() bool { return isRefusal(north.get("/")) })
}

// Of four pods at home some are not ready. Source: A-72.
func TestK13AndA72TheThresholdMovesAShare(t *testing.T) {
	const requests = 1000
	for i, c := range []struct {
		name      string
		threshold string
		ready     int
		home      int // requests
	}{
		{"the default of 50: half is enough", "", 2, 1000},
		{"the default of 50: a quarter is half of that", "", 1, 500},
		{"90: three quarters are not enough", ", failoverThreshold: {percentage: 90}", 3, 840},
		{"text", `, failoverThreshold: {percentage: "25"}`, 1, 1000},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMesh(t, 70+i, "us-east", "us-east", "us-east", "us-east", "us-west", "eu-north")
			for _, p := range m.in("us-east")[c.ready:] {
				p.unready = true
			}
			m.write(t)
			rules := "failover: [{to: {type: Only, zones: [eu-north]}}, {to: {type: Any}}]"
			got := m.zones(m.follow(t, strategy("crossZone: {"+rules+c.threshold+"}")).asker(t, ""), requests)
			if d := got["us-east"] - c.home; d > 80 || d < -80 {
				t.Errorf("home got %d, want %d ± 80 (all: %v)", got["us-east"], c.home, got)
			}
			if got["us-east"]+got["eu-north"] != requests {
				t.Errorf("the rest is not in eu-north: %v", got)
			}
		})
	}
}

func TestK24APortsServiceMaySpanZones(t *testing.T) {
	m := newMesh(t, 80, meshZones...)
	text := strings.Replace(strategy("crossZone: {failover: [{to: {type: Only, zones: [us-west]}}]}"), "namespace: shop", "namespace: shop, sectionName: http", 1)
	client := m.follow(t, text).asker(t, "")
	m.answers(t, client, "us-east")
	m.lose("us-east")
	m.answers(t, client, "us-west")
}
