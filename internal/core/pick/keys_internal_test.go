package pick

import (
	"math/rand/v2"
	"testing"
)

// sizes adds up what each allocation has.
func sizes(ranges []keyRange) map[*group]uint64 {
	has := map[*group]uint64{}
	begin := uint64(0)
	for _, p := range ranges {
		has[p.group] += p.end - begin
		begin = p.end
	}
	return has
}

// movedKeys measures the keyRange of the interval that belongs to another group than before, by walking over all ends.
func movedKeys(before, after []keyRange) uint64 {
	var moved, at uint64
	for i, j := 0, 0; i < len(before) && j < len(after); {
		next := min(before[i].end, after[j].end)
		if before[i].group != after[j].group {
			moved += next - at
		}
		at = next
		if before[i].end == next {
			i++
		}
		if after[j].end == next {
			j++
		}
	}
	return moved
}

// claimsOf divides the interval at random, some wanted being empty.
func claimsOf(random *rand.Rand, groups []*group) []allocation {
	wanted := make([]allocation, len(groups))
	left := uint64(whole)
	for i, g := range groups {
		wanted[i].group = g
		if random.IntN(3) > 0 {
			wanted[i].size = random.Uint64N(left + 1)
			left -= wanted[i].size
		}
	}
	wanted[random.IntN(len(wanted))].size += left
	return wanted
}

func TestChangeOfSharesMovesNoKeyThatNeedNotMove(t *testing.T) {
	random := rand.New(rand.NewPCG(61, 62))
	anew := 0
	for range 300 {
		groups := make([]*group, 1+random.IntN(5))
		for i := range groups {
			groups[i] = &group{}
		}
		if random.IntN(2) == 0 {
			groups = append(groups, nil) // what is shed
		}
		var ranges []keyRange
		for step := range 40 {
			wanted := claimsOf(random, groups)
			next := apportion(ranges, wanted)
			has, least := sizes(next), uint64(0)
			for _, c := range wanted {
				if has[c.group] != c.size {
					t.Fatalf("a group has %d, wanted %d: %v", has[c.group], c.size, next)
				}
				if had := sizes(ranges)[c.group]; had > c.size {
					least += had - c.size
				}
			}
			if n := len(next); next[n-1].end != whole || n > rangesEach*len(wanted) {
				t.Fatalf("%d ranges up to %d for %d wanted", n, next[n-1].end, len(wanted))
			}
			if moved := movedKeys(ranges, next); step > 0 && moved != least {
				if len(next) > len(wanted) {
					t.Fatalf("%d moved, %d need to: %v, then %v", moved, least, ranges, next)
				}
				anew++ // laid out anew, to have few ranges
			}
			ranges = next
		}
	}
	if anew > 300*40/10 {
		t.Errorf("%d of 12000 changes laid all out anew: want few", anew)
	}
}

func TestHomeGetsBackTheKeysThatItGaveUp(t *testing.T) {
	home, b := &group{}, &group{}
	ranges := []keyRange{{end: whole, group: home}}
	for _, h := range []float64{0.9, 0.7, 0.8, 0.5, 0.95, 0.6} {
		ranges = apportion(ranges, []allocation{{home, position(h)}, {b, whole - position(h)}})
		if ranges[0].group != home || ranges[0].end != position(h) {
			t.Fatalf("home has %v at a share of %v: want one keyRange from 0", ranges, h)
		}
	}
}

func TestKeysOfGroupsThatWentAreTakenOver(t *testing.T) {
	a, b, c := &group{}, &group{}, &group{}
	before := apportion(nil, []allocation{{a, whole / 2}, {b, whole / 4}, {c, whole / 4}})
	after := apportion(before, []allocation{{a, whole / 2}, {c, whole / 2}})
	if moved := movedKeys(before, after); moved != whole/4 {
		t.Errorf("%d of %d keys moved, want a quarter: %v", moved, uint64(whole), after)
	}
}
