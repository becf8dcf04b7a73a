package simulate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/sim/strategy"
)

// weirName is weir's own strategy among the strategies.
const weirName = "weir"

// Sweep is one constant of weir's law at several values.
type Sweep struct {
	Name   string
	Values []string // as Set reads them
}

// maxSweep bounds how many values a sweep has: more is not a table any longer.
const maxSweep = 50

// ParseSweep reads NAME=FROM..TO/COUNT, evenly spaced values with both ends, or NAME=VALUE,VALUE,….
func ParseSweep(text string) (Sweep, error) {
	name, values, ok := strings.Cut(text, "=")
	if !ok {
		return Sweep{}, fmt.Errorf("sweep %q: want NAME=FROM..TO/COUNT or NAME=VALUE,VALUE,…", text)
	}
	s := Sweep{Name: name, Values: strings.Split(values, ",")}
	if from, rest, ok := strings.Cut(values, ".."); ok {
		to, count, _ := strings.Cut(rest, "/")
		n, err := strconv.Atoi(count)
		if err != nil || n < 2 || n > maxSweep {
			return Sweep{}, fmt.Errorf("sweep %q: want 2 to %d values, as in HomeSlowdown=1.2..2.0/5", text, maxSweep)
		}
		if s.Values, err = between(from, to, n); err != nil {
			return Sweep{}, fmt.Errorf("sweep %q: %w", text, err)
		}
	}
	if n := len(s.Values); n < 2 || n > maxSweep {
		return Sweep{}, fmt.Errorf("sweep %q: want 2 to %d values, not %d", text, maxSweep, n)
	}
	for i, value := range s.Values {
		k := overflow.DefaultConstants()
		exact, err := Set(&k, name, value)
		if err != nil {
			return Sweep{}, fmt.Errorf("sweep: %w", err)
		}
		s.Name = exact
		if s.Values[i], err = Value(k, exact); err != nil {
			return Sweep{}, err
		}
		if slices.Contains(s.Values[:i], s.Values[i]) { // two rows of one name
			return Sweep{}, fmt.Errorf("sweep %q: the value %s is there twice", text, s.Values[i])
		}
	}
	return s, nil
}

// between gives n values from one to the other, numbers or durations.
func between(from, to string, n int) ([]string, error) {
	var values []string
	if first, err := time.ParseDuration(from); err == nil && first != 0 {
		last, err := time.ParseDuration(to)
		if err != nil {
			return nil, fmt.Errorf("%q is no duration", to)
		}
		for i := range n {
			step := time.Duration(float64(last-first) * float64(i) / float64(n-1))
			values = append(values, (first + step).Round(time.Microsecond).String())
		}
		return values, nil
	}
	first, err := number(from)
	if err != nil {
		return nil, err
	}
	last, err := number(to)
	if err != nil {
		return nil, err
	}
	for i := range n {
		values = append(values, round(first+(last-first)*float64(i)/float64(n-1)))
	}
	return values, nil
}

// Strategies are weir with each of the values, named NAME=VALUE.
func (s Sweep) Strategies(c overflow.Config) ([]strategy.Strategy, error) {
	all := make([]strategy.Strategy, 0, len(s.Values))
	for _, value := range s.Values {
		k := constantsOf(c)
		if _, err := Set(&k, s.Name, value); err != nil {
			return nil, err
		}
		name := s.Name + "=" + value
		all = append(all, weirWith(c, k, name))
	}
	return all, nil
}

// constantsOf gives the constants that a config asks for.
func constantsOf(c overflow.Config) overflow.Constants {
	if c.Constants == (overflow.Constants{}) {
		return overflow.DefaultConstants()
	}
	return c.Constants
}

// weirWith makes weir's strategy with these constants, under a name of its own.
func weirWith(c overflow.Config, k overflow.Constants, name string) strategy.Strategy {
	c.Constants = k
	for _, made := range strategy.With(c) {
		if made.Name == weirName {
			made.Name, made.Title = name, name
			return made
		}
	}
	panic("simulate: weir is not among the strategies")
}
