package main

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/topology"
)

// constantNames lists the constants of weir's law, in the order of overflow.Constants.
func constantNames() []string {
	t := reflect.TypeFor[overflow.Constants]()
	names := make([]string, 0, t.NumField())
	for f := range t.Fields() {
		names = append(names, f.Name)
	}
	return names
}

// constant finds the field of k that has that name, in upper or lower case.
func constant(k *overflow.Constants, name string) (reflect.Value, string, error) {
	names := constantNames()
	i := slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
	if i < 0 {
		return reflect.Value{}, "", fmt.Errorf("unknown constant %q: did you mean %s?",
			name, strings.Join(topology.Near(name, names), ", "))
	}
	return reflect.ValueOf(k).Elem().Field(i), names[i], nil
}

// set gives a constant another value: a number, a duration where the constant is one, or numbers with slashes between
// them where it is several. It gives the constant's own spelling.
func set(k *overflow.Constants, name, text string) (string, error) {
	field, name, err := constant(k, name)
	if err != nil {
		return "", err
	}
	switch field.Kind() {
	case reflect.Float64:
		n, err := number(text)
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		field.SetFloat(n)
	case reflect.Array:
		parts := strings.Split(text, "/")
		if len(parts) != field.Len() {
			return "", fmt.Errorf("%s: %q has %d numbers: want %d, with slashes between them", name, text, len(parts), field.Len())
		}
		for i, part := range parts {
			n, err := number(part)
			if err != nil {
				return "", fmt.Errorf("%s: %w", name, err)
			}
			field.Index(i).SetFloat(n)
		}
	default:
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return "", fmt.Errorf("%s: %q is no duration above 0, such as 400ms", name, text)
		}
		field.SetInt(int64(d))
	}
	return name, nil
}

func number(text string) (float64, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) || n < 0 {
		return 0, fmt.Errorf("%q is no number of at least 0", text)
	}
	return n, nil
}

// value writes a constant as set reads it.
func value(k overflow.Constants, name string) (string, error) {
	field, _, err := constant(&k, name)
	if err != nil {
		return "", err
	}
	switch field.Kind() {
	case reflect.Float64:
		return round(field.Float()), nil
	case reflect.Array:
		var parts []string
		for i := range field.Len() {
			parts = append(parts, round(field.Index(i).Float()))
		}
		return strings.Join(parts, "/"), nil
	default:
		return time.Duration(field.Int()).String(), nil
	}
}

// round writes a number without the noise of its last bits.
func round(n float64) string {
	const digits = 6
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(n, 'g', digits, 64), 64)
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

// scale says what it means to halve or double a constant.
type scale int

const (
	whole  scale = iota // itself
	excess              // what it is above 1: a slowdown or a growth of 1 is none at all
	lack                // what it lacks to 1: it is most of a whole, and cannot be more than that
)

// scaleOf gives the scale of a constant.
func scaleOf(name string) scale {
	switch name {
	case "HomeSlowdown", "OutsiderSlowdown", "EscapeBelow", "DisarmAt", "Growth":
		return excess
	case "GoodShare", "RecoverUntil", "Falling", "KeepStayed", "HomeComparison", "OutsiderCut":
		return lack
	default:
		return whole
	}
}

// times gives k with one constant multiplied by factor, in the sense that suits it: a slowdown by what it is above 1, a
// share that is nearly all by what it lacks to 1. A factor above 1 makes the distance larger.
func times(k overflow.Constants, name string, factor float64) (overflow.Constants, error) {
	field, name, err := constant(&k, name)
	if err != nil {
		return k, err
	}
	scaled := func(n float64) float64 {
		switch scaleOf(name) {
		case excess:
			return 1 + (n-1)*factor
		case lack:
			return max(0, 1-(1-n)*factor)
		default:
			return n * factor
		}
	}
	switch field.Kind() {
	case reflect.Float64:
		field.SetFloat(scaled(field.Float()))
	case reflect.Array: // shares
		for i := range field.Len() {
			field.Index(i).SetFloat(min(1, scaled(field.Index(i).Float())))
		}
	default:
		field.SetInt(int64(math.Round(float64(field.Int()) * factor)))
	}
	return k, nil
}
