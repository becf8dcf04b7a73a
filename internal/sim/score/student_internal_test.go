package score

import (
	"math"
	"testing"
)

// The two-sided 95 % points of Student's t: Abramowitz and Stegun, table 26.10, column A = 0.95.
func TestStudentMeetsThePublishedTable(t *testing.T) {
	for freedom, want := range map[int]float64{
		1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 10: 2.228,
		11: 2.201, 15: 2.131, 19: 2.093, 20: 2.086, 25: 2.060, 29: 2.045, 30: 2.042, 40: 2.021, 60: 2.000, 120: 1.980,
	} {
		if got := student(freedom); math.Abs(got-want) > 0.0005001 {
			t.Errorf("student(%d) = %.5f, want %.3f", freedom, got, want)
		}
	}
	if got := student(100_000); math.Abs(got-1.95996) > 0.0001 {
		t.Errorf("student(100000) = %.5f, want the normal distribution's 1.95996", got)
	}
}

func TestIntervalOfAMeanMeetsAWorkedExample(t *testing.T) {
	// 1 2 3 4 5: standard deviation √2.5, standard error √0.5, times t(4) = 2.77645.
	mean, half := meanAndHalf([]float64{1, 2, 3, 4, 5})
	if math.Abs(mean-3) > 1e-12 || math.Abs(half-2.77645*math.Sqrt(0.5)) > 1e-5 {
		t.Errorf("mean and half are %v and %v, want 3 and 1.96324", mean, half)
	}
}

func TestOneValueHasNoInterval(t *testing.T) {
	if mean, half := meanAndHalf([]float64{7}); mean != 7 || half != 0 {
		t.Errorf("mean and half are %v and %v, want 7 and 0", mean, half)
	}
	if mean, half := meanAndHalf(nil); mean != 0 || half != 0 {
		t.Errorf("mean and half of nothing are %v and %v, want 0 and 0", mean, half)
	}
}
