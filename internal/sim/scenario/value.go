package scenario

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// kind is how values are written, and which of them make sense.
type kind[T any] struct {
	parse  func(text string) (T, error)
	format func(T) string // as parse reads it
	check  func(T) error
}

// between is a kind of values from least to most.
func between[T cmp.Ordered](what string, k kind[T], least, most T) kind[T] {
	k.check = func(v T) error {
		if v >= least && v <= most {
			return nil
		}
		return fmt.Errorf("is %s: want %s from %s to %s", k.format(v), what, k.format(least), k.format(most))
	}
	return k
}

func whole(least, most int) kind[int] {
	return between("a whole number", kind[int]{parse: parseInt, format: strconv.Itoa}, least, most)
}

func number(least, most float64) kind[float64] {
	return between("a number", kind[float64]{parse: parseNumber, format: formatNumber}, least, most)
}

func duration(least, most time.Duration) kind[time.Duration] {
	return between("a time", kind[time.Duration]{parse: parseTime, format: formatTime}, least, most)
}

// above is a kind of numbers that are more than least.
func above(least, most float64) kind[float64] {
	k := number(least, most)
	k.check = func(f float64) error {
		if f > least && f <= most {
			return nil
		}
		return fmt.Errorf("is %s: want more than %s and at most %s", formatNumber(f), formatNumber(least), formatNumber(most))
	}
	return k
}

// factor is a number with an x before it.
func factor(k kind[float64]) kind[float64] {
	of := k
	k.format = func(f float64) string { return "x" + of.format(f) }
	k.parse = func(text string) (float64, error) {
		if n, found := strings.CutPrefix(text, "x"); found {
			if f, err := of.parse(n); err == nil {
				return f, nil
			}
		}
		return 0, fmt.Errorf("bad factor %q: want x and a number, as in x3 or x0.5", text)
	}
	return k
}

// key is a value of a scenario or a step, by the name that it has in the text.
type key struct {
	name  string
	flag  bool // it is written without a value, and means yes
	parse func(text string) error
	print func() string // as parse reads it
	check func() error
}

// at is the key of a value of some kind.
func at[T any](name string, v *T, k kind[T]) key {
	return key{
		name: name,
		parse: func(text string) error {
			value, err := k.parse(text)
			if err == nil { // what is there stays otherwise
				*v = value
			}
			return err
		},
		print: func() string { return k.format(*v) },
		check: func() error { return k.check(*v) },
	}
}

// flag is a key that is its own value.
func flag(name string, v *bool) key {
	k := at(name, v, kind[bool]{
		func(string) (bool, error) { return true, nil }, strconv.FormatBool, func(bool) error { return nil },
	})
	k.flag = true
	return k
}

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
	return text != "" && strings.Trim(text, "0123456789"+others) == ""
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
	before, after, _ := strings.Cut(formatNumber(f), ".")
	after += "00"
	before, after = strings.TrimLeft(before+after[:2], "0"), strings.TrimRight(after[2:], "0")
	return strings.TrimSuffix(cmp.Or(before, "0")+"."+after, ".")
}

// parseTime reads a duration with its unit.
func parseTime(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || strings.ContainsAny(text[:1], "+-") || isPlain(text, ".") {
		return 0, fmt.Errorf("bad time %q: want a number and its unit, as in 30s, 20ms or 300us", text)
	}
	return d, nil
}

// formatTime writes a duration in the largest unit, hours or from seconds down, that needs no fraction.
func formatTime(d time.Duration) string {
	for _, unit := range []struct {
		name string
		is   time.Duration
	}{{"h", time.Hour}, {"s", time.Second}, {"ms", time.Millisecond}, {"us", time.Microsecond}} {
		if d%unit.is == 0 && (d != 0 || unit.is == time.Second) {
			return strconv.FormatInt(int64(d/unit.is), 10) + unit.name
		}
	}
	return strconv.FormatInt(int64(d), 10) + "ns"
}

// unit is a unit of bytes.
type unit struct {
	name  string
	bytes float64
}

// units of bytes, the larger of two that end alike first.
func units() []unit {
	return []unit{
		{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1},
	}
}

// size is a number of bytes.
func size() kind[float64] {
	return kind[float64]{parseBytes, formatBytes, func(b float64) error {
		if b >= 0 && b <= maxBytes {
			return nil
		}
		return fmt.Errorf("is %s: want a size from 0B to %sB", formatNumber(b), formatNumber(maxBytes))
	}}
}

// parseBytes reads a number of bytes with its unit.
func parseBytes(text string) (float64, error) {
	for _, unit := range units() {
		if n, found := strings.CutSuffix(text, unit.name); found {
			if f, err := parseNumber(n); err == nil {
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
