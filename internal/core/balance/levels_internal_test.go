package balance

import "testing"

func TestK54FactorOfAThreshold(t *testing.T) {
	for percent, want := range map[float64]int{
		25: 400, 34: 295, 40: 250, 50: 200, 60: 167, 70: 143, 90: 112, 100: 100, 1: 10_000, 200: 100, 0: defaultFactor, -5: defaultFactor,
	} {
		if got := factor(percent / 100); got != want {
			t.Errorf("%v %%: want %d, got %d", percent, want, got)
		}
	}
	for percent := 1; percent <= 100; percent++ {
		if spill := 10_000 / float64(factor(float64(percent)/100)); spill > float64(percent) || spill < float64(percent)-1 {
			t.Errorf("%d %% spills at %v %%", percent, spill)
		}
	}
}
