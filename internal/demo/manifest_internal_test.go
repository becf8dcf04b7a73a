package demo

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/weir-lb/weir/internal/golden"
)

func TestManifestsOfTheScript(t *testing.T) {
	for name, at := range map[string]func(int) netip.AddrPort{"many-addresses": ownAddress(18080), "one-address": ownPort(18080)} {
		t.Run(name, func(t *testing.T) {
			l := &layout{scenario: scriptOf(t, ScriptOptions{})}
			l.list()
			l.assign(at)
			l.compile()
			files := manifests(l.snapshot(Player{}.withDefaults(), apiState{}))
			var all strings.Builder
			for _, name := range []string{"nodes.yaml", "service.yaml", "endpointslices.yaml"} {
				all.WriteString("# " + name + "\n" + files[name])
			}
			golden.Check(t, name+".yaml", all.String())
		})
	}
}

func TestEveryListenerHasItsOwnAddress(t *testing.T) {
	for _, at := range []func(int) netip.AddrPort{ownAddress(18080), ownPort(18080)} {
		seen := make(map[netip.AddrPort]bool)
		for i := range 700 {
			addr := at(i)
			if seen[addr] || !addr.Addr().IsLoopback() {
				t.Fatalf("listener %d has %s", i, addr)
			}
			seen[addr] = true
		}
	}
}
