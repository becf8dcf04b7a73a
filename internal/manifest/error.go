package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// FileError is a place where a file is broken.
type FileError struct {
	File  string
	Line  int    // from 1; 0: not known
	Field string // path within the object, as in spec.ports[0].port; empty: the text itself is broken
	Err   error
}

// Error gives "file:line: field: what is wrong".
func (e *FileError) Error() string {
	text := position(e.File, e.Line) + ": "
	if e.Field != "" {
		text += e.Field + ": "
	}
	return text + e.Err.Error()
}

// Unwrap gives the cause.
func (e *FileError) Unwrap() error { return e.Err }

// position gives "file:line".
func position(file string, line int) string {
	if line == 0 {
		return file
	}
	return file + ":" + strconv.Itoa(line)
}

// typeError says what a field wants and has, in the words of a manifest rather than in those of Go.
func typeError(err error) error {
	mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return err
	}
	return fmt.Errorf("want %s, got %s", wanted(mismatch.Type), gotten(mismatch.Value))
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
