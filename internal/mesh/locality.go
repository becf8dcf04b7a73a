package mesh

import (
	"cmp"
	"fmt"
	"math"
	"reflect"

	"github.com/weir-lb/weir/internal/core/policy"
)

// defaultThreshold is the percentage of healthy local endpoints below which a policy with crossZone lets other zones take
// a part.
const defaultThreshold = 50

// locality reads which endpoints are near. The value more has matchers that come after those of v.
func (e *entry) locality(v, more value) {
	l := &e.rule.Conf.Locality
	m := v.fields("disabled", "localZone", "crossZone", "matchers")
	extra := more.fields("matchers")
	if m == nil && extra == nil {
		return
	}
	e.spell("locality", more)
	if m != nil {
		e.spell("locality", v)
		e.spell("locality.disabled", m.at("disabled"))
		l.Disabled = m.at("disabled").flag()
		e.localZone(m.at("localZone"))
		e.crossZone(m.at("crossZone"))
		if m.at("localZone").isThere() && !m.at("crossZone").isThere() {
			l.Failover = nowhere() // other zones are used if crossZone names them
			e.spell("locality.failover", m.at("localZone"))
		}
		e.matchers(m.at("matchers"))
	}
	if extra != nil {
		e.matchers(extra.at("matchers"))
	}
	e.enable(m)
}

// enable lets what is said about localities win over disabled, as the mesh has it.
func (e *entry) enable(m *mapping) {
	l := &e.rule.Conf.Locality
	if l.Failover == nil && l.Affinity == nil && l.Weights == nil {
		return
	}
	if l.Disabled != nil && *l.Disabled {
		e.warn(m.at("disabled").path, "is not followed: localZone, crossZone and matchers win over it")
	}
	enabled := false
	l.Disabled = &enabled
}

func (e *entry) localZone(v value) {
	m := v.fields("affinityTags")
	if m == nil {
		return
	}
	l := &e.rule.Conf.Locality
	e.readKind("locality.affinity", m.at("affinityTags"), reflect.ValueOf(&l.Affinity).Elem())
	for i := range l.Affinity {
		l.Affinity[i].Key = label(l.Affinity[i].Key)
	}
}

// label gives the label that a tag stands for.
func label(tag string) string {
	if tag == tagZone {
		return labelZone
	}
	return tag
}

func (e *entry) crossZone(v value) {
	m := v.fields("failover", "failoverThreshold")
	if m == nil {
		return
	}
	l := &e.rule.Conf.Locality
	e.spell("locality.failover", m.at("failover"))
	e.readKind("locality.failover", m.at("failover"), reflect.ValueOf(&l.Failover).Elem())
	if len(l.Failover) == 0 {
		l.Failover = nowhere() // a zone that no rule names is not used
		e.spell("locality.failover", v)
	}
	threshold := policy.Number(defaultThreshold)
	l.FailoverThreshold = &threshold
	e.spell("locality.failoverThreshold", m.at("failoverThreshold"))
	if t := m.at("failoverThreshold").fields("percentage"); t != nil {
		e.spell("locality.failoverThreshold", t.at("percentage"))
		if !t.at("percentage").isThere() {
			e.refuse(t.at("percentage").path, "missing")
		}
		l.FailoverThreshold = cmp.Or(t.at("percentage").decimal(), &threshold)
	}
}

// nowhere is failover to no zone.
func nowhere() []policy.Failover {
	return []policy.Failover{{To: policy.FailoverTo{Type: policy.FailoverNone}}}
}

// matchers reads the fixed weights of the specification's outlook: endpoints by a tag, in place of the client's zone.
func (e *entry) matchers(v value) {
	items, ok := v.list()
	if !ok {
		return
	}
	l := &e.rule.Conf.Locality
	if l.Weights == nil {
		l.Weights = []policy.Weight{}
		e.spell("locality.weights", v)
	}
	for _, item := range items {
		at := fmt.Sprintf("locality.weights[%d]", len(l.Weights))
		e.spell(at, item)
		m := item.fields("tagEqual", "weight")
		if m == nil {
			e.refuseNothing(item)
			continue
		}
		tag := m.at("tagEqual").fields("name", "value")
		if tag == nil {
			if !m.at("tagEqual").isThere() {
				e.refuse(m.at("tagEqual").path, "missing: it says which endpoints are meant")
			}
			continue
		}
		e.spell(at+".key", tag.at("name"))
		e.spell(at+".value", tag.at("value"))
		w := policy.Weight{Key: label(tag.at("name").required()), Value: tag.at("value").required(), Weight: 1}
		if weight := m.at("weight").whole(math.MaxUint32); weight != nil {
			w.Weight = int64(*weight) //nolint:gosec // it is at most MaxUint32.
		}
		l.Weights = append(l.Weights, w)
	}
}
