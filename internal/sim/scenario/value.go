package scenario

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// parseInt reads a whole number without a sign.
func parseInt(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || !isPlain(text, "") {
		return 0, fmt.Errorf("bad number %q: want a whole number without unit, as in 4", text)
	}
	return n, nil
}

// parseNumber reads a number without sign, exponent and unit.
func parseNumber(text string) (float64, error) {
	if percent, found := strings.CutSuffix(text, "%"); found && isPlain(percent, ".") {
		return 0, fmt.Errorf("bad number %q: write a fraction, as in 0.5 for 50 %%", text)
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !isPlain(text, ".") {
		return 0, fmt.Errorf("bad number %q: want a number without unit, as in 0.25 or 660", text)
	}
	return f, nil
}

func formatNumber(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// isPlain tells whether text is made of digits and the characters of others.
func isPlain(text, others string) bool {
	for _, r := range text {
		if (r < '0' || r > '9') && !strings.ContainsRune(others, r) {
			return false
		}
	}
	return text != ""
}

// parsePercent reads hundredths, without the sign. It is exact: 7 gives the same as the fraction 0.07.
func parsePercent(text string) (float64, error) {
	f, err := strconv.ParseFloat(text+"e-2", 64)
	if err != nil || !isPlain(text, ".") {
		return 0, fmt.Errorf("bad percentage %q: want a number, as in 30 or 12.5", text)
	}
	return f, nil
}

// formatPercent is the inverse of parsePercent: it moves the point, because to multiply would round.
func formatPercent(f float64) string {
	whole, decimals, _ := strings.Cut(formatNumber(f), ".")
	decimals += "00"
	whole = strings.TrimLeft(whole+decimals[:2], "0")
	decimals = strings.TrimRight(decimals[2:], "0")
	if whole == "" {
		whole = "0"
	}
	if decimals == "" {
		return whole
	}
	return whole + "." + decimals
}

// parseTime reads a duration with its unit.
func parseTime(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	isSigned := strings.HasPrefix(text, "-") || strings.HasPrefix(text, "+")
	if err != nil || isSigned || isPlain(text, ".") {
		return 0, fmt.Errorf("bad time %q: want a number and its unit, as in 30s, 20ms or 300us", text)
	}
	return d, nil
}

// formatTime writes a duration in the largest unit, hours or from seconds down, that needs no fraction.
func formatTime(d time.Duration) string {
	switch {
	case d != 0 && d%time.Hour == 0:
		return strconv.FormatInt(int64(d/time.Hour), 10) + "h"
	case d%time.Second == 0:
		return strconv.FormatInt(int64(d/time.Second), 10) + "s"
	case d%time.Millisecond == 0:
		return strconv.FormatInt(int64(d/time.Millisecond), 10) + "ms"
	case d%time.Microsecond == 0:
		return strconv.FormatInt(int64(d/time.Microsecond), 10) + "us"
	default:
		return strconv.FormatInt(int64(d), 10) + "ns"
	}
}

// units of bytes, the larger of two that end alike first.
func units() []struct {
	name  string
	bytes float64
} {
	return []struct {
		name  string
		bytes float64
	}{
		{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1},
	}
}

// parseBytes reads a number of bytes with its unit.
func parseBytes(text string) (float64, error) {
	for _, unit := range units() {
		if number, found := strings.CutSuffix(text, unit.name); found {
			if f, err := parseNumber(number); err == nil {
				return f * unit.bytes, nil
			}
			break
		}
	}
	return 0, fmt.Errorf("bad size %q: want a number and its unit, as in 500B, 20KiB or 2MB", text)
}

// formatBytes writes whole KiB as such and everything else in bytes.
func formatBytes(f float64) string {
	const kib = 1 << 10
	if n := int64(min(f, maxBytes) / kib); n > 0 && float64(n)*kib == f {
		return strconv.FormatInt(n, 10) + "KiB"
	}
	return formatNumber(f) + "B"
}
