package demo

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-lb/weir/internal/golden"
	"github.com/weir-lb/weir/internal/sim/scenario"
)

func TestManifestsOfTheWorld(t *testing.T) {
	for _, c := range []struct {
		name   string
		layout layout
	}{
		{"many-addresses", manyAddresses(18080)},
		{"one-address", oneAddress(18080)},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.layout.mode = "Balanced"
			files, err := c.layout.manifests()
			if err != nil {
				t.Fatal(err)
			}
			var all strings.Builder
			for _, name := range []string{"nodes.yaml", "service.yaml", "endpointslices.yaml"} {
				all.WriteString("# " + name + "\n")
				all.Write(files[name])
			}
			golden.Check(t, c.name+".yaml", all.String())
		})
	}
}

func TestEveryListenerHasItsOwnAddress(t *testing.T) {
	for _, l := range []layout{manyAddresses(18080), oneAddress(18080)} {
		seen := map[netip.AddrPort]bool{l.service: true}
		for _, p := range append(l.agents[:], l.endpoints...) {
			if seen[p.addr] {
				t.Errorf("%s has the address %s of another", p.name, p.addr)
			}
			seen[p.addr] = true
			if !p.addr.Addr().IsLoopback() {
				t.Errorf("%s leaves this machine with %s", p.name, p.addr)
			}
		}
		if len(seen) != 1+zoneCount+zoneCount*endpointsPerZone || len(seen) > portStep {
			t.Errorf("%d listeners", len(seen))
		}
	}
}

func TestManifestsAreWrittenIntoANewFolder(t *testing.T) {
	l := manyAddresses(18080)
	dir := filepath.Join(t.TempDir(), "new", "folder")
	if err := l.writeManifests(dir); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 3 {
		t.Errorf("got %v, %v: want three files", files, err)
	}
}

func TestASecondDemoFindsOtherPorts(t *testing.T) {
	first, err := newLayout("Balanced")
	if err != nil {
		t.Fatal(err)
	}
	e := newTestEndpoint(first.endpoints[0].addr)
	if err := e.set(scenario.Condition{}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.close(); err != nil {
			t.Error(err)
		}
	}()
	second, err := newLayout("Balanced")
	if err != nil {
		t.Fatal(err)
	}
	if second.service == first.service {
		t.Errorf("both have %s", second.service)
	}
}
