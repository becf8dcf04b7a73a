package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
)

// broken is the error that a file cannot be read.
func broken(at reason.Position, field, format string, args ...any) error {
	return &reason.Finding{
		Position: at, Field: field, Severity: reason.Refused, Reason: reason.Unreadable, Message: fmt.Sprintf(format, args...),
	}
}

// typeError says what a field wants and has, in the words of a manifest rather than in those of Go.
func typeError(err error) string {
	mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return err.Error()
	}
	return fmt.Sprintf("want %s, got %s", wanted(mismatch.Type, mismatch.Value), gotten(mismatch.Value))
}

// wanted names what a field of type t takes. Where value, what it got, is a number, the advice is how to write that one.
func wanted(t reflect.Type, value string) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	number, length := "0.8", "30"
	// What the patterns of both types take.
	if found := regexp.MustCompile(`^number ([0-9]{1,9}(\.[0-9]{1,9})?)$`).FindStringSubmatch(value); found != nil {
		number, length = found[1], found[1]
	}
	switch t {
	case reflect.TypeFor[policy.Number]():
		return fmt.Sprintf("a whole number, or text in quotes: %q", number)
	case reflect.TypeFor[policy.Duration]():
		return fmt.Sprintf("a duration with a unit: %ss", length)
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "text (in quotes, if it looks like something else)"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "a mapping"
	case reflect.Float32, reflect.Float64:
		return "a number"
	default:
		return fmt.Sprintf("a whole number (%s)", t.Kind())
	}
}

func gotten(value string) string {
	kind, detail, _ := strings.Cut(value, " ")
	switch kind {
	case "string":
		return "text"
	case "object":
		return "a mapping"
	case "array":
		return "a list"
	case "bool":
		return "true or false"
	default:
		return strings.TrimSpace("a number " + detail)
	}
}
