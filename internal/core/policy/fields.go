package policy

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// field is one field of a Conf that is set as a whole, and where it stands. A bit set holds one bit for each, so there are at
// most 64.
type field struct {
	path string // of JSON names
	at   []int  // the indexes of the struct fields from Conf down, through pointers
	// isSwitch: the field is a block that says something by being there. Unless it is empty, the fields in it stand for it.
	isSwitch bool
	isPart   bool // it is set with a field that it is a part of
}

// The paths that notes and findings name.
const (
	pathLoadBalancer    = "loadBalancer"
	pathHashPolicies    = "hashPolicies"
	pathEndpointHashKey = "endpointHashKey"
	pathAffinity        = "locality.affinity"
	pathFailover        = "locality.failover"
	pathThreshold       = "locality.failoverThreshold"
	pathMaxSkew         = "locality.maxSkew"
	pathWeights         = "locality.weights"
	pathZoneKey         = "locality.zoneKey"
	pathCosts           = "locality.costs"
	pathDisabled        = "locality.disabled"
	pathOverflowMode    = "locality.overflow.mode"
	pathLoadBand        = "locality.overflow.loadBand"
	pathSlowStart       = "slowStart"
	pathPanic           = "panicThreshold"
	pathType            = "loadBalancer.type"
	pathMinRingSize     = "loadBalancer.ringHash.minRingSize"
	pathMaxRingSize     = "loadBalancer.ringHash.maxRingSize"
	pathTableSize       = "loadBalancer.maglev.tableSize"
	pathBaseEjection    = "outlierDetection.baseEjectionTime"
	pathMaxEjection     = "outlierDetection.maxEjectionTime"
)

// The tags of api/conf that say how a field merges.
const (
	tagMerge    = "merge"
	mergeWhole  = "whole"
	mergeSwitch = "switch"
)

// fieldTable lists every field that is set as a whole in the order of the CRD.
func fieldTable() []field {
	return slices.DeleteFunc(allFields(), func(f field) bool { return f.isPart })
}

// allFields lists those, and after each the fields that are set with it.
func allFields() []field { return fieldsBelow(reflect.TypeFor[Conf](), field{}) }

func fieldsBelow(t reflect.Type, parent field) []field {
	var table []field
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		one := field{isPart: parent.isPart, path: name, at: append(slices.Clip(parent.at), i)}
		if parent.path != "" {
			one.path = parent.path + "." + name
		}
		merge, block := f.Tag.Get(tagMerge), f.Type
		if block.Kind() == reflect.Pointer {
			block = block.Elem()
		}
		one.isSwitch = merge == mergeSwitch
		isBlock := block.Kind() == reflect.Struct
		if !isBlock || merge != "" {
			table = append(table, one)
		}
		if isBlock {
			one.isPart = one.isPart || merge == mergeWhole
			table = append(table, fieldsBelow(block, one)...)
		}
	}
	return table
}

// of gives the field's value in c; false: nothing was said.
func (f *field) of(c *Conf) (reflect.Value, bool) {
	v := reflect.ValueOf(c).Elem()
	for _, i := range f.at {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return v, false
			}
			v = v.Elem()
		}
		v = v.Field(i)
	}
	if v.IsZero() {
		return v, false
	}
	return v, !f.isSwitch || v.Elem().IsZero()
}

// text gives what c says there, for people.
func (f *field) text(c *Conf) string {
	v, _ := f.of(c)
	switch {
	case f.isSwitch:
		return "on"
	case v.Kind() == reflect.Pointer:
		return fmt.Sprint(v.Elem())
	case v.Kind() != reflect.Slice:
		return fmt.Sprint(v)
	}
	texts := make([]string, v.Len())
	for i := range texts {
		texts[i] = fmt.Sprint(v.Index(i))
	}
	if len(texts) == 0 {
		return "none"
	}
	return strings.Join(texts, ", ")
}

// block gives what p points at, or an object in which nothing is said.
func block[T any](p *T) *T {
	if p == nil {
		return new(T)
	}
	return p
}

// value gives what was said, else the default.
func value[T any](said *T, otherwise T) T {
	if said == nil {
		return otherwise
	}
	return *said
}
