package scenario

import (
	"fmt"
	"strconv"
	"time"
)

// key is a FIELD=VALUE of a statement.
type key struct {
	name  string
	flag  bool // it is written without a value, and means yes
	parse func(s *Scenario, text string) error
	print func(s *Scenario) string // as parse reads it
	check func(s *Scenario) error  // whether the value makes sense by itself
}

// intKey is a whole number from least to most.
func intKey(name string, at func(*Scenario) *int, least, most int) key {
	return key{
		name:  name,
		parse: func(s *Scenario, text string) error { return assign(at(s), text, parseInt) },
		print: func(s *Scenario) string { return strconv.Itoa(*at(s)) },
		check: func(s *Scenario) error {
			if n := *at(s); n < least || n > most {
				return fmt.Errorf("is %d: want a whole number from %d to %d", n, least, most)
			}
			return nil
		},
	}
}

// numberKey is a number from least to most.
func numberKey(name string, at func(*Scenario) *float64, least, most float64) key {
	return key{
		name:  name,
		parse: func(s *Scenario, text string) error { return assign(at(s), text, parseNumber) },
		print: func(s *Scenario) string { return formatNumber(*at(s)) },
		check: func(s *Scenario) error {
			if f := *at(s); !(f >= least && f <= most) {
				return fmt.Errorf("is %s: want a number from %s to %s", formatNumber(f), formatNumber(least), formatNumber(most))
			}
			return nil
		},
	}
}

// timeKey is a duration from least to most.
func timeKey(name string, at func(*Scenario) *time.Duration, least, most time.Duration) key {
	return key{
		name:  name,
		parse: func(s *Scenario, text string) error { return assign(at(s), text, parseTime) },
		print: func(s *Scenario) string { return formatTime(*at(s)) },
		check: func(s *Scenario) error {
			if d := *at(s); d < least || d > most {
				return fmt.Errorf("is %s: want a time from %s to %s", formatTime(d), formatTime(least), formatTime(most))
			}
			return nil
		},
	}
}

// assign reads text and keeps what is there when that cannot be done.
func assign[T any](at *T, text string, parse func(string) (T, error)) error {
	value, err := parse(text)
	if err == nil {
		*at = value
	}
	return err
}
