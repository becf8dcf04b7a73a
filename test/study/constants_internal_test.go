package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/core/overflow"
)

func TestAConstantIsSetByNameAndWrittenAsItIsRead(t *testing.T) {
	for _, c := range []struct{ name, value string }{
		{"HomeSlowdown", "1.2"},
		{"homeslowdown", "1.25"},
		{"MemoryMin", "200ms"},
		{"CutFactors", "0.9/0.5/0.3/0.1/0"},
	} {
		k := overflow.DefaultConstants()
		name, err := set(&k, c.name, c.value)
		if err != nil || !strings.EqualFold(name, c.name) {
			t.Errorf("Set(%s, %s): %q, %v", c.name, c.value, name, err)
		}
		if got, err := value(k, c.name); err != nil || got != c.value {
			t.Errorf("%s is %q, %v; want %q", c.name, got, err, c.value)
		}
		back := overflow.DefaultConstants()
		was, err := value(back, c.name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := set(&k, c.name, was); err != nil || k != back {
			t.Errorf("%s: setting %q again does not restore the constants: %v", c.name, was, err)
		}
	}
}

func TestAConstantThatCannotBeIsRefused(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"HomeSlow", "1", `unknown constant "HomeSlow": did you mean HomeSlowdown`},
		{"HomeSlowdown", "fast", `HomeSlowdown: "fast" is no number`},
		{"HomeSlowdown", "NaN", `"NaN" is no number`},
		{"HomeSlowdown", "-1", `"-1" is no number`},
		{"memorymin", "5", `MemoryMin: "5" is no duration`},
		{"MemoryMin", "-1s", "no duration above 0"},
		{"CutFactors", "1/2", `"1/2" has 2 numbers: want 5`},
		{"CutFactors", "1/2/x/0/0", `CutFactors: "x" is no number`},
	} {
		k := overflow.DefaultConstants()
		if _, err := set(&k, c.name, c.value); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Set(%s, %s): %v, want an error with %q", c.name, c.value, err, c.want)
		}
	}
}

func TestHalvingAndDoublingKeepsTheMeaningOfAConstant(t *testing.T) {
	for _, c := range []struct{ name, half, double string }{
		{"HomeSlowdown", "1.2", "1.8"},                          // of 1.4: the excess over 1
		{"GoodShare", "0.95", "0.8"},                            // of 0.9: what it lacks to 1
		{"LoopGain", "0.1", "0.4"},                              // of 0.2
		{"CutFactors", "0.4/0.3/0.175/0.05/0", "1/1/0.7/0.2/0"}, // shares: at most 1
	} {
		for factor, want := range map[float64]string{0.5: c.half, 2: c.double} {
			k, err := times(overflow.DefaultConstants(), c.name, factor)
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := value(k, c.name); got != want {
				t.Errorf("%s × %v is %s, want %s", c.name, factor, got, want)
			}
		}
	}
	k, err := times(overflow.DefaultConstants(), "MemoryMin", 0.5)
	if err != nil || k.MemoryMin != 200*time.Millisecond {
		t.Errorf("MemoryMin × 0.5 is %v, %v", k.MemoryMin, err)
	}
	if _, err := times(k, "none", 2); err == nil {
		t.Error("a constant that there is not was doubled")
	}
}

func TestEveryConstantChangesWhenItIsDoubledAndNoneIsForgotten(t *testing.T) {
	names := constantNames()
	if !slices.Contains(names, "HomeSlowdown") || len(names) < 50 {
		t.Fatalf("constants: %v", names)
	}
	for _, name := range names {
		for _, factor := range []float64{0.5, 2} {
			k, err := times(overflow.DefaultConstants(), name, factor)
			if err != nil {
				t.Fatal(err)
			}
			if k == overflow.DefaultConstants() {
				t.Errorf("%s × %v changes nothing", name, factor)
			}
		}
	}
}
