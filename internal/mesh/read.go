package mesh

import (
	"fmt"
	"math"
	"reflect"
	"strings"

	"github.com/weir-lb/weir/internal/core/policy"
)

const keyHashPolicies = "hashPolicies"

// read fills a struct of the model from a mapping with the same names, and notes where each part of it stands; at is the model's
// path. Other keys that the mapping may have are for the caller. Nil: the mapping is missing, or refused.
func (e *entry) read(at string, v value, to any, other ...string) *mapping {
	target := reflect.ValueOf(to).Elem()
	// The mesh has hash policies in the blocks of the algorithms that hash, too.
	isHashing := target.Type() == reflect.TypeFor[policy.RingHashConf]() || target.Type() == reflect.TypeFor[policy.MaglevConf]()
	if isHashing {
		other = append(other, keyHashPolicies)
	}
	var known []string
	for i := range target.NumField() {
		if name := nameOf(target.Type().Field(i)); name != "-" {
			known = append(known, name)
		}
	}
	m := v.fields(append(known, other...)...)
	if m == nil {
		return nil
	}
	e.spell(at, v)
	for i := range target.NumField() {
		if name := nameOf(target.Type().Field(i)); name != "-" {
			e.readField(at+"."+name, m.at(name), target.Field(i))
		}
	}
	if isHashing {
		e.hashPolicies(m.at(keyHashPolicies))
	}
	return m
}

func nameOf(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// readField reads one field. What is missing stays nil; a text that is no pointer has to be there.
func (e *entry) readField(at string, v value, to reflect.Value) {
	switch field := to.Addr().Interface().(type) {
	case **bool:
		*field = v.flag()
	case **int32:
		if n := v.whole(math.MaxInt32); n != nil {
			*field = new(int32(*n)) //nolint:gosec // it is at most MaxInt32.
		}
	case **int64:
		if n := v.whole(math.MaxInt64); n != nil {
			*field = new(int64(*n)) //nolint:gosec // it is at most MaxInt64.
		}
	case **policy.Number:
		*field = v.decimal()
	case **policy.Duration:
		*field = v.duration()
	case *[]string:
		*field = v.texts()
	default:
		e.readKind(at, v, to)
		return
	}
	e.spell(at, v)
}

// readKind reads what is of a type of the model's own: a text, a block, or a list of blocks.
func (e *entry) readKind(at string, v value, to reflect.Value) {
	isPointer := to.Kind() == reflect.Pointer
	switch {
	case to.Kind() == reflect.String:
		to.SetString(v.required())
		e.spell(at, v)
	case to.Kind() == reflect.Struct:
		if !v.isThere() {
			e.refuse(v.path, "missing")
		}
		e.read(at, v, to.Addr().Interface())
	case to.Kind() == reflect.Slice:
		items, isList := v.list()
		if !isList {
			return
		}
		e.spell(at, v)
		to.Set(reflect.MakeSlice(to.Type(), len(items), len(items)))
		for i, item := range items {
			e.readItem(fmt.Sprintf("%s[%d]", at, i), item, to.Index(i).Addr().Interface())
		}
	case isPointer && to.Type().Elem().Kind() == reflect.String:
		if text := v.text(); text != "" {
			to.Set(reflect.New(to.Type().Elem()))
			to.Elem().SetString(text)
		}
		e.spell(at, v)
	case isPointer:
		if block := reflect.New(to.Type().Elem()); e.read(at, v, block.Interface()) != nil {
			to.Set(block)
		}
	default:
		panic("mesh: the model has a field of type " + to.Type().String())
	}
}

// readItem reads an element of a list, which has to be there.
func (e *entry) readItem(at string, item value, to any) {
	e.spell(at, item)
	if e.read(at, item, to) == nil {
		e.refuseNothing(item)
	}
}

// refuseNothing refuses an element of a list that is null; others that are no mapping are refused already.
func (e *entry) refuseNothing(item value) {
	if !item.isThere() {
		e.refuse(item.path, "want a mapping, got nothing")
	}
}
