package overflow_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/core/overflow"
)

func TestDbg(t *testing.T) {
	if os.Getenv("DBG") == "" {
		return
	}
	want, _ := strconv.Atoi(os.Getenv("CL"))
	from, _ := strconv.Atoi(os.Getenv("FROM"))
	to, _ := strconv.Atoi(os.Getenv("TO"))
	for _, sc := range scenarios() {
		if sc.name != os.Getenv("DBG") {
			continue
		}
		l := sc.layout
		l.seed = 1
		l.make = func(w *world, client int) balancer {
			s, _ := overflow.New("Weir", overflow.Config{Rotate: uint64(client)})
			m := newMirror(w, client, s, mirrorOptions{})
			if client == want {
				m.trace = func(now time.Duration, d *overflow.Decision) {
					if now < time.Duration(from)*time.Second || now > time.Duration(to)*time.Second {
						return
					}
					fmt.Printf("t=%.1f %-9s B=%.1fms", now.Seconds(), d.State, d.Baseline.Seconds()*1000)
					for _, g := range d.Groups {
						fmt.Printf(" | %.3f S=%.2f rho=%.2f r=%.1f", g.Share, g.Slowdown, g.Delivered, g.Allowed)
					}
					fmt.Printf(" dem %.1f\n", d.Groups[0].Demand)
				}
			}
			return m
		}
		w := l.build()
		for _, a := range sc.start {
			w.shift = append(w.shift, at{calmFor + a.when, a.do})
		}
		w.watch = func(*request, time.Duration, bool) {}
		w.run(time.Duration(to) * time.Second)
	}
}
