package l7_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/summerwind/h2spec/config"
	"github.com/summerwind/h2spec/generic"
	"github.com/summerwind/h2spec/hpack"
	"github.com/summerwind/h2spec/http2"
	"github.com/summerwind/h2spec/spec"

	"github.com/weir-lb/weir/internal/l7"
)

// TestH2Spec runs the conformance suite for HTTP/2 servers, strict cases included, against the proxy. One case fails, and has to: a client
// that begins with anything but HTTP/2's preface is answered in HTTP/1.1 on a port that speaks both, with 400 and a closed connection.
func TestH2Spec(t *testing.T) {
	text := strings.Repeat("x", 1_000)
	p := start(t, l7.Options{Upstreams: only(poolOf(serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // an early answer would be as good as the fault that some cases wait for
		say(w, text)
	})), nil)})
	c := &config.Config{
		Host: "127.0.0.1", Port: int(p.Addr().Port()), Path: "/", Timeout: 2 * time.Second, MaxHeaderLen: 4_000, Strict: true,
	}
	passed, all := 0, 0
	for _, group := range []*spec.TestGroup{generic.Spec(), http2.Spec(), hpack.Spec()} {
		group.Test(c)
		passed += group.PassedCount
		all += group.PassedCount + group.FailedCount + group.SkippedCount
		faults(t, group)
	}
	if passed < 145 || all != 146 {
		t.Errorf("%d of %d passed, want 145 of 146", passed, all)
	}
}

func faults(t *testing.T, group *spec.TestGroup) {
	t.Helper()
	for _, c := range append(slices.Clip(group.Tests), group.StrictTests...) {
		if group.ID() == "http2/3.5" && strings.Contains(c.Desc, "invalid connection preface") {
			continue
		}
		if c.Result == nil || c.Result.Failed || c.Result.Skipped {
			t.Errorf("%s %s: %+v", group.ID(), c.Desc, c.Result)
		}
	}
	for _, inner := range group.Groups {
		faults(t, inner)
	}
}
