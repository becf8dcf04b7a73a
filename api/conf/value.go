package conf

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Number is a number that need not be whole: an integer or quoted text, because numbers with a point do not survive every
// reader of JSON.
//
// +kubebuilder:validation:XIntOrString
// +kubebuilder:validation:Type=int-or-string
type Number float64

// MarshalJSON writes whole numbers as such and others as text.
func (n Number) MarshalJSON() ([]byte, error) {
	f := float64(n)
	if f == math.Trunc(f) && math.Abs(f) <= math.MaxInt32 {
		return strconv.AppendInt(nil, int64(f), 10), nil
	}
	return strconv.AppendQuote(nil, strconv.FormatFloat(f, 'f', -1, 64)), nil
}

// UnmarshalJSON reads an integer of 32 bits, or text like 0.8.
func (n *Number) UnmarshalJSON(data []byte) error {
	if len(data) == 0 || data[0] != '"' {
		var whole int32
		err := json.Unmarshal(data, &whole)
		*n = Number(whole)
		return mistyped[Number](err, data)
	}
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	// What the patterns of the CustomResourceDefinition take at most.
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !regexp.MustCompile(`^[0-9]{1,9}(\.[0-9]{1,12})?$`).MatchString(text) {
		return fmt.Errorf(`bad number %q, want one as 85 or "0.8"`, text)
	}
	*n = Number(f)
	return nil
}

// mistyped is an error about the type of data, with T as the type that is wanted and the number, if it is one.
func mistyped[T any](err error, data []byte) error {
	mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return err
	}
	e := *mismatch
	e.Type = reflect.TypeFor[T]()
	if kind, _, _ := strings.Cut(e.Value, " "); kind == "number" {
		e.Value = "number " + string(data)
	}
	return &e
}

// String gives the shortest form.
func (n Number) String() string { return strconv.FormatFloat(float64(n), 'g', -1, 64) }

// Duration is a length of time, written as 1h or 30s.
//
// +kubebuilder:validation:XValidation:rule="duration(self) <= duration('1000000h')",message="want at most 1000000h"
// +kubebuilder:validation:Type=string
// +kubebuilder:validation:Pattern=`^([0-9]{1,9}(\.[0-9]{1,9})?(h|m|s|ms|us|µs|ns)){1,6}$`
// +kubebuilder:validation:MaxLength=64
type Duration time.Duration

// MarshalJSON writes the form of package time, as metav1.Duration does.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// UnmarshalJSON reads the form of package time. What is too long for that, and may have been stored by an earlier version, becomes
// the longest Duration, which is no valid one: an error would keep all objects of a list from being read.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return mistyped[Duration](err, data)
	}
	parsed, err := time.ParseDuration(text)
	if err != nil && regexp.MustCompile(`^([0-9]{1,9}(\.[0-9]{1,9})?(h|m|s|ms|us|µs|ns)){1,6}$`).MatchString(text) {
		parsed, err = math.MaxInt64, nil
	}
	*d = Duration(parsed)
	return err
}

// String gives the shortest form: 1h, not 1h0m0s.
func (d Duration) String() string {
	text := time.Duration(d).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
