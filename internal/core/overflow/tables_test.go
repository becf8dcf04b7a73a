package overflow_test

import (
	"fmt"
	"testing"

	"github.com/weir-lb/weir/internal/core/overflow"
)

// The two benchmarks below print the tables of docs/adr/0006-overflow-law.md. They take minutes:
//
//	go test -run '^$' -bench 'Scenarios|Ablation' -benchtime 1x ./internal/core/overflow

func BenchmarkScenarios(b *testing.B) {
	for b.Loop() {
		fmt.Println("| scenario | strategy | good % | ok % | cross % | calm % | react s | back s | osc | p99 ms | others |")
		for _, sc := range scenarios() {
			for _, p := range policies() {
				r := mean(b, sc, p, 1, 2)
				fmt.Printf("| %s | %s | %.1f | %.1f | %.1f | %.2f | %.1f | %.1f | %.1f | %d | %d |\n", sc.name, p.name,
					r.good*100, r.ok*100, r.cross*100, r.calmCross*100, r.react.Seconds(), r.back.Seconds(),
					r.oscillation*100, r.p99.Milliseconds(), r.neighbourP99.Milliseconds())
			}
		}
	}
}

// mean runs a scenario with several seeds. A moment that never came counts as 30 s, as in the reference.
func mean(tb testing.TB, sc scenario, p policy, seeds ...uint64) result {
	tb.Helper()
	var m result
	n := float64(len(seeds))
	for _, seed := range seeds {
		r := sc.run(tb, p, fullCourse(), seed)
		if r.react == never {
			r.react = 30e9
		}
		if r.back == never {
			r.back = 30e9
		}
		m.good += r.good / n
		m.ok += r.ok / n
		m.cross += r.cross / n
		m.calmCross += r.calmCross / n
		m.oscillation += r.oscillation / n
		m.shed += r.shed / n
		m.react += r.react / 2
		m.back += r.back / 2
		m.p99 += r.p99 / 2
		m.neighbourP99 += r.neighbourP99 / 2
	}
	return m
}

// variant is the law without one of its parts.
type variant struct {
	name   string
	change func(k *overflow.Constants, p *policy)
}

const unlimited = 1e9

func variants() []variant {
	constant := func(change func(k *overflow.Constants)) func(*overflow.Constants, *policy) {
		return func(k *overflow.Constants, _ *policy) { change(k) }
	}
	return []variant{
		{"whole", constant(func(*overflow.Constants) {})},
		{"without remote comparison", constant(func(k *overflow.Constants) { k.OutsiderSlowdown = unlimited })},
		{"outsiders do not yield", constant(func(k *overflow.Constants) { k.OutsiderSlowdown = k.HomeSlowdown })},
		{"without ages", func(_ *overflow.Constants, p *policy) { p.options.noAges = true }},
		{"without noise-aware arming", constant(func(k *overflow.Constants) { k.NoiseBand = 0 })},
		{"without crisis cuts", constant(func(k *overflow.Constants) { k.CrisisAbove = unlimited })},
		{"without ceiling", constant(func(k *overflow.Constants) { k.CeilingForget = 0 })},
		{"outsiders judged alone", constant(func(k *overflow.Constants) { k.HomeComparison = 0 })},
		{"without escape", constant(func(k *overflow.Constants) { k.EscapeMax = 1 })},
		{"without faster return", constant(func(k *overflow.Constants) { k.ReturnAfter = unlimited })},
		{"without fast recovery", constant(func(k *overflow.Constants) { k.RecoverGrowth = 0 })},
		{"without emergency growth", constant(func(k *overflow.Constants) { k.GrowthFailed, k.FirstShareFailed = 0, 0 })},
	}
}

func BenchmarkAblation(b *testing.B) {
	for b.Loop() {
		fmt.Println("| variant | stress bad % | stress cross % | calm cross % | react s | back s | osc |")
		for _, v := range variants() {
			k := overflow.DefaultConstants()
			p := policy{name: "Weir"}
			v.change(&k, &p)
			p.config.Constants = k
			var bad, cross, calm, react, back, osc, stressed, calms float64
			for _, sc := range scenarios() {
				r := mean(b, sc, p, 1, 2)
				if sc.begin == nil && sc.name != "5/1/1" || sc.name == "all 60 ms slower" {
					calm += r.cross
					calms++
					continue
				}
				stressed++
				bad += 1 - r.good
				cross += r.cross
				react += r.react.Seconds()
				back += r.back.Seconds()
				osc += r.oscillation
			}
			fmt.Printf("| %s | %.2f | %.1f | %.2f | %.2f | %.1f | %.1f |\n", v.name, bad/stressed*100, cross/stressed*100,
				calm/calms*100, react/stressed, back/stressed, osc/stressed*100)
		}
	}
}
