package mesh

import (
	"cmp"
	"fmt"
	"math"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/topology"
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
			l.Failover = []policy.Failover{{To: policy.FailoverNone}} // other zones are for those who ask for them
			e.spell("locality.failover", m.at("localZone"))
		}
		e.matchers(m.at("matchers"))
	}
	if extra != nil {
		e.matchers(extra.at("matchers"))
	}
	e.settle(m)
}

// settle lets what is said about localities win over disabled, as the mesh has it.
func (e *entry) settle(m *mapping) {
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
	items, ok := m.at("affinityTags").list()
	if !ok {
		return
	}
	e.spell("locality.affinity", m.at("affinityTags"))
	l := &e.rule.Conf.Locality
	l.Affinity = []policy.Affinity{}
	for i, item := range items {
		e.spell(fmt.Sprintf("locality.affinity[%d]", i), item)
		tag := item.fields("key", "weight")
		if tag == nil {
			e.refuseNothing(item)
			continue
		}
		l.Affinity = append(l.Affinity, policy.Affinity{Key: label(tag.at("key").required()), Weight: tag.at("weight").weight()})
	}
}

// refuseNothing refuses an element of a list that is null; others that are no mapping are refused already.
func (e *entry) refuseNothing(item value) {
	if !item.isThere() {
		e.refuse(item.path, "want a mapping, got nothing")
	}
}

// label gives the label that a tag stands for.
func label(tag string) string {
	if tag == tagZone {
		return labelZone
	}
	return tag
}

func (v value) weight() *uint32 {
	n := v.whole(math.MaxUint32)
	if n == nil {
		return nil
	}
	w := uint32(*n) //nolint:gosec // it is at most MaxUint32.
	return &w
}

func (e *entry) crossZone(v value) {
	m := v.fields("failover", "failoverThreshold")
	if m == nil {
		return
	}
	l := &e.rule.Conf.Locality
	e.spell("locality.failover", m.at("failover"))
	items, _ := m.at("failover").list()
	for i, item := range items {
		e.spell(fmt.Sprintf("locality.failover[%d]", i), item)
		e.failover(item)
	}
	if len(items) == 0 {
		l.Failover = []policy.Failover{{To: policy.FailoverNone}} // a zone that no rule names is not used
		e.spell("locality.failover", v)
	}
	threshold := float64(defaultThreshold)
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

func (e *entry) failover(item value) {
	m := item.fields("from", "to")
	if m == nil {
		e.refuseNothing(item)
		return
	}
	var rule policy.Failover
	if from := m.at("from").fields("zones"); from != nil {
		if rule.From = zones(from.at("zones")); rule.From == nil {
			rule.From = []topology.Zone{} // which is not "any"
		}
	}
	to := m.at("to").fields("type", "zones")
	if to == nil {
		if !m.at("to").isThere() {
			e.refuse(m.at("to").path, "missing: it says where the traffic goes")
		}
		return
	}
	rule.To = policy.FailoverType(to.at("type").required())
	rule.Zone = zones(to.at("zones"))
	e.rule.Conf.Locality.Failover = append(e.rule.Conf.Locality.Failover, rule)
}

func zones(v value) []topology.Zone {
	texts := v.texts()
	if texts == nil {
		return nil
	}
	zones := make([]topology.Zone, 0, len(texts))
	for _, text := range texts {
		zones = append(zones, topology.Zone(text))
	}
	return zones
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
		if weight := m.at("weight").weight(); weight != nil {
			w.Weight = *weight
		}
		l.Weights = append(l.Weights, w)
	}
}
