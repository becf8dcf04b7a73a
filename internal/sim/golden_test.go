package sim_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/golden"
)

// Floating point is the same in every run on one architecture. Others may fuse multiplications with additions, and then
// some request is a nanosecond later: the digests are those of amd64.
func TestDigestsAreThoseOfTheGolden(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the golden is of amd64, on which CI runs")
	}
	t.Parallel()
	var text strings.Builder
	for _, name := range overflow.Names() {
		r := run(t, brownout(t), balance(t, name), 1)
		fmt.Fprintf(&text, "%-7s requests=%d events=%d digest=%016x good=%.4f in-zone=%.4f p99=%v\n",
			name, r.Requests, r.Events, r.Digest, r.Affected.Good, r.Window.InZone, r.Window.P99)
	}
	golden.Check(t, "digests.golden", text.String())
}
