package mesh

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/topology"
)

// value is a part of a document and where it stands. Whoever asks it for what it is not gets nothing, and a finding says
// so; what is missing, or null, is nothing without a finding.
type value struct {
	*parser
	path string
	raw  json.RawMessage // nil: missing
}

func (v value) isThere() bool { return len(v.raw) > 0 && string(v.raw) != "null" }

// decode reads the value into target, which wants what the words of want say.
func decode[T any](v value, want string) (target T, ok bool) {
	if !v.isThere() {
		return target, false
	}
	if err := json.Unmarshal(v.raw, &target); err != nil {
		v.mismatch(want)
		return *new(T), false
	}
	return target, true
}

// mismatch says that something else was wanted.
func (v value) mismatch(want string) {
	var text string
	if json.Unmarshal(v.raw, &text) == nil && isGrammar(text) {
		v.refuse(v.path, quote(text)+" is grammar, not a value: write "+want)
		return
	}
	v.refuse(v.path, fmt.Sprintf("want %s, got %s", want, kindOf(v.raw)))
}

// isGrammar tells whether a text is what a specification has in the place of values: A | B, ..., <a name>.
func isGrammar(text string) bool {
	return text == "..." || text == "…" || strings.Contains(text, " | ") ||
		strings.HasPrefix(text, "<") && strings.HasSuffix(text, ">")
}

func kindOf(raw json.RawMessage) string {
	switch bytes.TrimLeft(raw, " \t\r\n")[0] {
	case '{':
		return "a mapping"
	case '[':
		return "a list"
	case '"':
		return "text"
	case 't', 'f':
		return "true or false"
	default:
		return "the number " + short(string(raw))
	}
}

// maxQuoted is how much of a value a message repeats.
const maxQuoted = 64

func short(text string) string {
	if len(text) <= maxQuoted {
		return text
	}
	return strings.ToValidUTF8(text[:maxQuoted], "") + "…"
}

func quote(text string) string { return strconv.Quote(short(text)) }

// mapping is a value that has keys.
type mapping struct {
	value
	fields map[string]json.RawMessage
}

// fields gives the value as a mapping that may have these keys; nil: it is missing or no mapping.
func (v value) fields(known ...string) *mapping {
	m := v.keys()
	if m == nil {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(m.fields)) {
		if !slices.Contains(known, key) {
			v.refuse(m.at(key).path, unknownField(key, known))
		}
	}
	return m
}

// keys gives the value as a mapping with any keys.
func (v value) keys() *mapping {
	fields, ok := decode[map[string]json.RawMessage](v, "a mapping")
	if !ok {
		return nil
	}
	return &mapping{value: v, fields: fields}
}

// withoutCounterpart tells what to do about a field that the mesh has and weir has no use for; empty: it is none of those.
func withoutCounterpart(key string) string {
	switch key {
	case "from":
		return "load is balanced where requests start: write to"
	case "proxyTypes":
		return "weir has one kind of proxy: leave it out"
	default:
		return ""
	}
}

func unknownField(key string, known []string) string {
	if advice := withoutCounterpart(key); advice != "" {
		return "not a field of weir: " + advice
	}
	return fmt.Sprintf("unknown field: did you mean %s? All that may be here: %s",
		topology.Near(key, known)[0], strings.Join(known, ", "))
}

// at gives the value of a key.
func (m *mapping) at(key string) value {
	path := key
	switch {
	case strings.ContainsAny(key, ".[]"):
		path = m.path + "[" + key + "]"
	case m.path != "":
		path = m.path + "." + key
	}
	return value{parser: m.parser, path: path, raw: m.fields[key]}
}

// list gives the elements of a list.
func (v value) list() ([]value, bool) {
	raws, ok := decode[[]json.RawMessage](v, "a list")
	values := make([]value, 0, len(raws))
	for i, raw := range raws {
		values = append(values, value{parser: v.parser, path: fmt.Sprintf("%s[%d]", v.path, i), raw: raw})
	}
	return values, ok
}

// texts gives the elements of a list of texts; nil if it is missing.
func (v value) texts() []string {
	items, ok := v.list()
	if !ok {
		return nil
	}
	texts := []string{}
	for _, item := range items {
		if !item.isThere() {
			v.refuse(item.path, "want text, got nothing")
			continue
		}
		texts = append(texts, item.text())
	}
	return texts
}

func (v value) text() string { return v.textOf("text (in quotes, if it looks like something else)") }

// textOf gives a text that has to be what want says.
func (v value) textOf(want string) string {
	text, _ := decode[string](v, want)
	if isGrammar(text) {
		v.refuse(v.path, quote(text)+" is grammar, not a value: write one value")
		return ""
	}
	return text
}

// required gives a text that has to be there.
func (v value) required() string {
	text := v.text()
	if text == "" && (!v.isThere() || string(v.raw) == `""`) {
		v.refuse(v.path, "missing")
	}
	return text
}

func (v value) flag() *bool {
	b, ok := decode[bool](v, "true or false")
	if !ok {
		return nil
	}
	return &b
}

// whole gives a whole number from 0 to most.
func (v value) whole(most uint64) *uint64 {
	n, ok := decode[json.Number](v, "a whole number")
	if !ok {
		return nil
	}
	u, err := strconv.ParseUint(n.String(), 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange), err == nil && u > most:
		v.mismatch(fmt.Sprintf("at most %d", most))
	case err != nil, v.raw[0] == '"':
		v.mismatch("a whole number of at least 0")
	default:
		return &u
	}
	return nil
}

// decimal gives a number, which may be written as text.
func (v value) decimal() *policy.Number {
	const want = `a number, or text like "12.5"`
	n, ok := decode[json.RawMessage](v, want)
	if !ok {
		return nil
	}
	text := string(n)
	if n[0] == '"' {
		text = v.text()
	}
	f, err := strconv.ParseFloat(text, 64)
	switch {
	case err == nil && !math.IsInf(f, 0) && !math.IsNaN(f):
		return new(policy.Number(f))
	case n[0] == '"' && text != "":
		v.refuse(v.path, "want "+want+", got "+quote(text))
	case text != "":
		v.mismatch(want)
	}
	return nil
}

func (v value) duration() *policy.Duration {
	const want = "a duration like 1h or 30s"
	text := v.textOf(want)
	if text == "" {
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		v.refuse(v.path, "want "+want+", got "+quote(text))
		return nil
	}
	return new(policy.Duration(d))
}
