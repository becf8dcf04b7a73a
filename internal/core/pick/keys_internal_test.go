package pick

import (
	"math/rand/v2"
	"testing"
)

// sizes adds up what each claim has.
func sizes(stretches []stretch) map[*group]uint64 {
	has := map[*group]uint64{}
	begin := uint64(0)
	for _, p := range stretches {
		has[p.group] += p.end - begin
		begin = p.end
	}
	return has
}

// movedKeys measures the stretch of the interval that belongs to another group than before, by walking over all ends.
func movedKeys(before, after []stretch) uint64 {
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

// claimsOf divides the interval at random, some claims being empty.
func claimsOf(random *rand.Rand, groups []*group) []claim {
	claims := make([]claim, len(groups))
	left := uint64(whole)
	for i, g := range groups {
		claims[i].group = g
		if random.IntN(3) > 0 {
			claims[i].size = random.Uint64N(left + 1)
			left -= claims[i].size
		}
	}
	claims[random.IntN(len(claims))].size += left
	return claims
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
		var stretches []stretch
		for step := range 40 {
			claims := claimsOf(random, groups)
			next := apportion(stretches, claims)
			has, least := sizes(next), uint64(0)
			for _, c := range claims {
				if has[c.group] != c.size {
					t.Fatalf("a group has %d, claims %d: %v", has[c.group], c.size, next)
				}
				if had := sizes(stretches)[c.group]; had > c.size {
					least += had - c.size
				}
			}
			if n := len(next); next[n-1].end != whole || n > stretchesEach*len(claims) {
				t.Fatalf("%d stretches up to %d for %d claims", n, next[n-1].end, len(claims))
			}
			if moved := movedKeys(stretches, next); step > 0 && moved != least {
				if len(next) > len(claims) {
					t.Fatalf("%d moved, %d need to: %v, then %v", moved, least, stretches, next)
				}
				anew++ // laid out anew, to have few stretches
			}
			stretches = next
		}
	}
	if anew > 300*40/10 {
		t.Errorf("%d of 12000 changes laid all out anew: want few", anew)
	}
}

func TestHomeGetsBackTheKeysThatItGaveUp(t *testing.T) {
	home, b := &group{}, &group{}
	stretches := []stretch{{end: whole, group: home}}
	for _, h := range []float64{0.9, 0.7, 0.8, 0.5, 0.95, 0.6} {
		stretches = apportion(stretches, []claim{{home, position(h)}, {b, whole - position(h)}})
		if stretches[0].group != home || stretches[0].end != position(h) {
			t.Fatalf("home has %v at a share of %v: want one stretch from 0", stretches, h)
		}
	}
}

func TestKeysOfGroupsThatWentAreTakenOver(t *testing.T) {
	a, b, c := &group{}, &group{}, &group{}
	before := apportion(nil, []claim{{a, whole / 2}, {b, whole / 4}, {c, whole / 4}})
	after := apportion(before, []claim{{a, whole / 2}, {c, whole / 2}})
	if moved := movedKeys(before, after); moved != whole/4 {
		t.Errorf("%d of %d keys moved, want a quarter: %v", moved, uint64(whole), after)
	}
}
