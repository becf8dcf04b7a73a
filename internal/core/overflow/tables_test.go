package overflow_test

import (
	"fmt"
	"testing"
	"time"

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

// mean runs a scenario with several seeds. A moment that never came counts as 30 s, as in the study.
func mean(tb testing.TB, sc scenario, p policy, seeds ...uint64) result {
	tb.Helper()
	const missed = 30 * time.Second
	var m result
	n := float64(len(seeds))
	for _, seed := range seeds {
		r := sc.run(tb, p, fullCourse(), seed)
		if r.react == never {
			r.react = missed
		}
		if r.back == never {
			r.back = missed
		}
		m.good += r.good / n
		m.ok += r.ok / n
		m.cross += r.cross / n
		m.calmCross += r.calmCross / n
		m.oscillation += r.oscillation / n
		m.shed += r.shed / n
		m.react += r.react / time.Duration(len(seeds))
		m.back += r.back / time.Duration(len(seeds))
		m.p99 += r.p99 / time.Duration(len(seeds))
		m.neighbourP99 += r.neighbourP99 / time.Duration(len(seeds))
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
		{"without larger first share", constant(func(k *overflow.Constants) { k.FirstShareFailed = 0 })},
	}
}

func BenchmarkAblation(b *testing.B) {
	for b.Loop() {
		fmt.Println("| variant | bad % | cross % | calm cross % | react s | back s | osc | others' p99 ms |")
		for _, v := range variants() {
			k := overflow.DefaultConstants()
			p := policy{name: "Weir"}
			v.change(&k, &p)
			p.config.Constants = k
			fmt.Println(row(b, v.name, p))
		}
	}
}

// row sums up all scenarios: means over those with stress, and the cross-zone share over those that are calm or in
// which no zone is better.
func row(tb testing.TB, name string, p policy) string {
	tb.Helper()
	var stress result
	var calmCross, stresses, calms, neighbours, withNeighbours float64
	for _, sc := range scenarios() {
		r := mean(tb, sc, p, 1, 2)
		if sc.begin == nil && sc.name != "5/1/1" || sc.name == "all 60 ms slower" {
			calmCross += r.cross
			calms++
			continue
		}
		stresses++
		stress.good += r.good
		stress.cross += r.cross
		stress.oscillation += r.oscillation
		stress.react += r.react
		stress.back += r.back
		if r.neighbourP99 > 0 {
			neighbours += float64(r.neighbourP99.Milliseconds())
			withNeighbours++
		}
	}
	return fmt.Sprintf("| %s | %.1f | %.1f | %.2f | %.1f | %.1f | %.1f | %.0f |", name, 100-stress.good/stresses*100,
		stress.cross/stresses*100, calmCross/calms*100, stress.react.Seconds()/stresses, stress.back.Seconds()/stresses,
		stress.oscillation/stresses*100, neighbours/withNeighbours)
}
