package explain_test

import (
	"math"
	"testing"

	"github.com/weir-lb/weir/internal/explain"
)

func TestTrafficIsReadAsAnAmountOrARate(t *testing.T) {
	for text, want := range map[string]float64{
		"1000":          1000,
		"1000GB":        1000,
		"1.5TB":         1500,
		"1.5T/month":    1500,
		"250MB/month":   0.25,
		"1MB/s":         2628,
		"8Mbit/s":       2628,
		" 20kB/s ":      52.56,
		"0":             0,
		"1 GB":          1,
		"1Gbit":         0.125,
		"1e3GB":         1000,
		"0.001TB/month": 1,
	} {
		got, err := explain.ParseTraffic(text)
		if err != nil {
			t.Errorf("ParseTraffic(%q): %v", text, err)
		}
		if math.Abs(float64(got)-want) > 1e-9*want {
			t.Errorf("ParseTraffic(%q) = %v, want %v", text, got, want)
		}
	}
}

func TestTrafficThatMakesNoSenseIsRefused(t *testing.T) {
	for _, text := range []string{"", "much", "-1GB", "1XB", "NaN", "InfGB", "1GB/h", "1e300TB", "GB", "1b", "1 G B"} {
		if got, err := explain.ParseTraffic(text); err == nil {
			t.Errorf("ParseTraffic(%q) = %v, want an error", text, got)
		}
	}
}
