package syntax_test

import (
	"strings"
	"testing"

	"golang.org/x/net/http/httpguts"

	"github.com/weir-lb/weir/internal/syntax"
)

func TestLengthsAreDigits(t *testing.T) {
	for s, want := range map[string]int64{
		"0": 0, "007": 7, "9223372036854775807": 1<<63 - 1,
		"": -1, "+1": -1, "-1": -1, "1,1": -1, " 1": -1, "0x1": -1, "9223372036854775808": -1, "99999999999999999999": -1,
	} {
		got, ok := syntax.ParseLength(s)
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("%q: got %d, want %d", s, got, want)
		}
		if _, same := syntax.ParseLength([]byte(s)); same != ok {
			t.Errorf("%q differs as bytes", s)
		}
	}
}

// TestTokensAreThoseOfAnotherImplementation compares every byte.
func TestTokensAreThoseOfAnotherImplementation(t *testing.T) {
	for c := range 256 {
		s := "a" + string([]byte{byte(c)})
		if got, want := syntax.IsToken(s), httpguts.ValidHeaderFieldName(s); got != want {
			t.Errorf("%q: got %v, want %v", s, got, want)
		}
		if got, want := syntax.IsLowerToken([]byte(s)), httpguts.ValidHeaderFieldName(s) && (c < 'A' || c > 'Z'); got != want {
			t.Errorf("%q in lower case: got %v, want %v", s, got, want)
		}
		if got, want := syntax.IsFieldValue(s+"a"), httpguts.ValidHeaderFieldValue(s+"a"); got != want {
			t.Errorf("%q as a value: got %v, want %v", s, got, want)
		}
	}
	for _, s := range []string{" a", "a ", "\ta", "a\t"} {
		if syntax.IsFieldValue(s) {
			t.Errorf("%q is accepted", s)
		}
	}
}

func TestTargetsAndAuthorities(t *testing.T) {
	const bad = " \t\r\n\x00\x7f#"
	for _, c := range bad {
		if syntax.IsTarget("/a"+string(c)) || syntax.IsAuthority("h"+string(c)) {
			t.Errorf("%q is accepted", c)
		}
	}
	for _, s := range []string{"", "a/b", "u@h", "h?x", `h\x`, "h,i"} {
		if syntax.IsAuthority(s) {
			t.Errorf("the authority %q is accepted", s)
		}
	}
	for _, s := range []string{"/%", "/%2", "/%zz", "/a%2?b=c"} {
		if syntax.IsTarget(s) {
			t.Errorf("the target %q is accepted", s)
		}
	}
	for s := range strings.FieldsSeq("/ * /%2F?a=b|[c] /?a=100% /\xc3\xa4 http://h/") {
		if !syntax.IsTarget(s) {
			t.Errorf("the target %q is refused", s)
		}
	}
}
