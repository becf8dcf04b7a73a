package topology

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// none is how the text form writes that something is absent on purpose.
const none = "-"

// maxRun bounds COUNT, and maxTotal what one text may hold: more than the largest supported cluster (5,000 nodes,
// 150,000 pods), and still nothing that a short text could fill the memory with.
const (
	maxRun   = 10_000
	maxTotal = 200_000
)

// statement is a verb and its arguments.
type statement struct {
	verb token
	args []token
}

// token is a word of a text and where it begins, counted from 1 in characters.
type token struct {
	text         string
	line, column int
}

// SyntaxError says where a text is wrong, and how to mend it. A caller that embeds a text in a larger one adds to Line.
type SyntaxError struct {
	Line, Column int // from 1, in lines and characters of the text
	Message      string
}

// Error gives the place and the message.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
}

func (t token) errorf(format string, args ...any) error {
	return &SyntaxError{Line: t.line, Column: t.column, Message: fmt.Sprintf(format, args...)}
}

// wrap gives err the place of t.
func (t token) wrap(err error) error { return t.errorf("%v", err) }

// sub gives the part of t that begins at byte i and is the text s.
func (t token) sub(i int, s string) token {
	return token{text: s, line: t.line, column: t.column + utf8.RuneCountInString(t.text[:i])}
}

// cut splits t at the first sep.
func (t token) cut(sep string) (before, after token, found bool) {
	i := strings.Index(t.text, sep)
	if i < 0 {
		return t, token{}, false
	}
	return t.sub(0, t.text[:i]), t.sub(i+len(sep), t.text[i+len(sep):]), true
}

// split splits t at every sep.
func (t token) split(sep string) []token {
	var parts []token
	for {
		part, rest, found := t.cut(sep)
		parts = append(parts, part)
		if !found {
			return parts
		}
		t = rest
	}
}

// digits splits the decimal digits from the beginning of t.
func (t token) digits() (number, rest token) {
	i := strings.IndexFunc(t.text, func(r rune) bool { return !isDigit(r) })
	if i < 0 {
		i = len(t.text)
	}
	return t.sub(0, t.text[:i]), t.sub(i, t.text[i:])
}

// word takes t as a name made of letters, digits and, inside, the characters of inner.
func (t token) word(what, inner string) (string, error) {
	if err := checkWord(what, t.text, inner); err != nil {
		return "", t.wrap(err)
	}
	return t.text, nil
}

// zone takes t as the name of a zone.
func (t token) zone() (Zone, error) {
	z, err := ParseZone(t.text)
	if err != nil {
		return "", t.wrap(err)
	}
	return z, nil
}

// count takes t as a whole number from least to most, written without a leading zero.
func (t token) count(what string, least, most int) (int, error) {
	n, err := strconv.Atoi(t.text)
	if err != nil || n < least || n > most || strconv.Itoa(n) != t.text {
		return 0, t.errorf("bad %s %q: want a whole number from %d to %d", what, t.text, least, most)
	}
	return n, nil
}

// ratio takes t as a finite number of at least 0.
func (t token) ratio(what string) (float64, error) {
	f, err := strconv.ParseFloat(t.text, 64)
	if err != nil || f < 0 || math.Signbit(f) || math.IsInf(f, 0) || math.IsNaN(f) {
		return 0, t.errorf("bad %s %q: want a finite number of at least 0", what, t.text)
	}
	return f, nil
}

func formatRatio(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// scan splits a text into statements and drops comments.
func scan(text string) ([]statement, error) {
	if !utf8.ValidString(text) {
		return nil, token{line: 1, column: 1}.errorf("the text is not UTF-8: save it as UTF-8")
	}
	var statements []statement
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		for _, part := range (token{text: line, line: i + 1, column: 1}).split(";") {
			if words := part.words(); len(words) > 0 {
				statements = append(statements, statement{verb: words[0], args: words[1:]})
			}
		}
	}
	return statements, nil
}

// list reads the parts of t between commas or another separator.
func list[T any](t token, sep string, read func(token) (T, error)) ([]T, error) {
	var all []T
	for _, part := range t.split(sep) {
		one, err := read(part)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// words splits t at spaces, tabs and carriage returns.
func (t token) words() []token {
	var words []token
	begin := -1
	for i := range len(t.text) + 1 {
		blank := i == len(t.text) || strings.IndexByte(" \t\r", t.text[i]) >= 0
		switch {
		case blank && begin >= 0:
			words = append(words, t.sub(begin, t.text[begin:i]))
			begin = -1
		case !blank && begin < 0:
			begin = i
		}
	}
	return words
}
