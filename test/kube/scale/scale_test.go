//go:build scale

package scale_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-lb/weir/test/kube"
	"github.com/weir-lb/weir/test/kube/scale"
)

const (
	// user is the user as which weir writes.
	user = "system:serviceaccount:weir-system:weir-controller"
	// limit is how long a phase may take; weir writes 500 times a second at most.
	limit = 15 * time.Minute
	// quiet is how long nothing has been written when a phase is over: longer than weir's retries and delays.
	quiet = 15 * time.Second
)

// large is the size that the controller is made for.
func large() scale.Size {
	return scale.Size{
		Nodes: 5000, Services: 10000, Endpoints: 150000,
		Zones: []string{"zone-a", "zone-b", "zone-c"},
		Modes: []string{"Balanced", "Auto", "PreferSameZone", "PreferSameNode"},
	}
}

// measurement is a running controller that is watched.
type measurement struct {
	cluster    *kube.Cluster
	load       *scale.Load
	controller *kube.Process
	admin      string // URL of its admin pages
}

func TestALargeClusterFitsIntoAGibibyteAndIsHintedAlsoAfterANodeAndAZoneAreGone(t *testing.T) {
	c := kube.Start(t, kube.Options{})
	const manifests = "../../../deploy/manifests/"
	c.Apply(manifests + "0-namespace.yaml")
	c.Apply(manifests + "rbac.yaml")
	m := &measurement{cluster: c, load: scale.Fill(t, c, large())}
	m.start(t)

	m.phase(t, "the first decisions", func() error { return nil })
	m.phase(t, "a node of 5,000 is gone", func() error { return m.load.RemoveNode(t.Context(), 1) })
	m.phase(t, "a zone is gone", func() error { return m.load.FailZone(t.Context(), "zone-b") })
	if _, peak, err := m.controller.Memory(); err != nil || peak > 1<<30 {
		t.Errorf("the controller took %d MiB at most, %v; want less than 1,024", peak>>20, err)
	}
}

// start starts weir as it is deployed, but for a higher rate of requests, and waits until it has decided for all Services.
func (m *measurement) start(t *testing.T) {
	t.Helper()
	c := m.cluster
	t.Setenv("GOMEMLIMIT", "920MiB")
	address := fmt.Sprintf("127.0.0.1:%d", c.Port())
	m.admin = "http://" + address
	m.controller = c.Weir("weir-controller", "controller",
		"--kubeconfig="+c.ServiceAccountKubeconfig("weir-system", "weir-controller"),
		"--kube-api-qps=500", "--kube-api-burst=1000",
		"--webhook=false", "--leader-elect-resource-namespace=weir-system",
		"--admin-bind-address="+address, "--health-probe-bind-address=")
	took := c.UntilWithin(limit, "weir has decided for all Services", func() error {
		if err := m.controller.Running(); err != nil {
			t.Fatal(err)
		}
		_, err := c.Fetch(m.admin+"/readyz", "")
		return err
	})
	resident, _, err := m.controller.Memory()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the first full decision took %.1f s from the start of the process, which then has %d MiB resident", took.Seconds(), resident>>20)
}

// phase makes something happen, waits until weir has written nothing for a while, tells what it did, and sees that the
// hints are right.
func (m *measurement) phase(t *testing.T, what string, happen func() error) {
	t.Helper()
	before, started := len(m.writes()), time.Now()
	if err := happen(); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	happened, last, seen := time.Now(), started, before
	m.cluster.UntilWithin(limit, "weir writes nothing more after "+what, func() error {
		if writes := m.writes(); len(writes) > seen {
			seen, last = len(writes), writes[len(writes)-1].At
		}
		if since := time.Since(later(last, happened)); since < quiet {
			return fmt.Errorf("the last of %d writes was %s ago", seen-before, since)
		}
		return m.hintsAreRight(t)
	})
	resident, peak, err := m.controller.Memory()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: it took %.1f s to bring about; weir's last write was %.1f s after its beginning and %.1f s after its end; "+
		"%d MiB resident, %d at most; writes: %s", what, happened.Sub(started).Seconds(), last.Sub(started).Seconds(),
		max(0, last.Sub(happened).Seconds()), resident>>20, peak>>20, summary(m.writes()[before:]))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// writes are those of weir.
func (m *measurement) writes() []kube.Write {
	return slices.DeleteFunc(m.cluster.Writes(), func(w kube.Write) bool { return w.User != user })
}

// summary counts writes by what was written and how it was answered.
func summary(writes []kube.Write) string {
	counts := make(map[string]int)
	for _, w := range writes {
		counts[fmt.Sprintf("%s %s %d", w.Verb, w.Resource, w.Code)]++
	}
	if len(counts) == 0 {
		return "none"
	}
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		lines = append(lines, fmt.Sprintf("%s: %d", key, counts[key]))
	}
	return strings.Join(lines, ", ")
}

// hintsAreRight sees that each ready endpoint of the Services whose mode leaves no choice carries its hints.
func (m *measurement) hintsAreRight(t *testing.T) error {
	t.Helper()
	list, err := m.load.Slices(t.Context())
	if err != nil {
		return err
	}
	checked := 0
	for i := range list {
		s := &list[i]
		if mode := s.Labels["weir.dev/distribution"]; mode != "PreferSameZone" && mode != "PreferSameNode" {
			continue
		}
		for _, e := range s.Endpoints {
			if !*e.Conditions.Ready {
				continue
			}
			checked++
			if e.Hints == nil || len(e.Hints.ForZones) != 1 || e.Hints.ForZones[0].Name != *e.Zone {
				return fmt.Errorf("slice %s: %s is in %s and hinted by %v", s.Name, e.Addresses[0], *e.Zone, e.Hints)
			}
		}
	}
	if checked == 0 {
		return fmt.Errorf("none of %d slices has a ready endpoint to check", len(list))
	}
	return nil
}
