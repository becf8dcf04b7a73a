package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

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
	return fmt.Sprintf("want %s, got %s", wanted(mismatch.Type), gotten(mismatch.Value))
}

func wanted(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
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
