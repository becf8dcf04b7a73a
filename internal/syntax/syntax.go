// Package syntax has the rules of syntax that all versions of HTTP share. It accepts what RFC 9110 section 5 and RFC 3986 allow, but for bytes
// above ASCII in targets, which curl sends, and repairs nothing.
package syntax

import "math"

// Text is what rules are asked about.
type Text interface{ string | []byte }

// The token characters of RFC 9110 section 5.6.2 as bits, those below 64 and those above.
const (
	tokenLow  = 0x03ff6cfa00000000 // !#$%&'*+-. and digits
	tokenHigh = 0x57ffffffc7fffffe // letters, ^_`|~
	upperHigh = 0x0000000007fffffe // A to Z
)

func isOf(c byte, low, high uint64) bool {
	if c < 64 {
		return low>>c&1 != 0
	}
	return c < 128 && high>>(c-64)&1 != 0
}

// IsToken tells whether s is a token of RFC 9110 section 5.6.2.
func IsToken[T Text](s T) bool {
	for i := range len(s) {
		if !isOf(s[i], tokenLow, tokenHigh) {
			return false
		}
	}
	return len(s) > 0
}

// IsLowerToken tells whether s is a token without letters in upper case, as HTTP/2 wants the names of fields.
func IsLowerToken[T Text](s T) bool {
	for i := range len(s) {
		if !isOf(s[i], tokenLow, tokenHigh&^upperHigh) {
			return false
		}
	}
	return len(s) > 0
}

// IsFieldValue tells whether s has no control characters but tabs, and no white space at its ends.
func IsFieldValue[T Text](s T) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return len(s) == 0 || !isSpace(s[0]) && !isSpace(s[len(s)-1])
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' }

// IsTarget accepts visible characters but '#', which no request target has, and bytes above ASCII. A path has no '%' but before two hexadecimal
// digits; queries have, by clients that do not encode them.
func IsTarget[T Text](s T) bool {
	inPath := true
	for i := range len(s) {
		switch c := s[i]; {
		case c <= ' ', c == 0x7f, c == '#':
			return false
		case c == '?':
			inPath = false
		case c == '%' && inPath && (i+2 >= len(s) || !isHex(s[i+1]) || !isHex(s[i+2])):
			return false
		}
	}
	return len(s) > 0
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// IsAuthority accepts a host with or without a port: no user information, and nothing that begins a path.
func IsAuthority[T Text](s T) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c == 0x7f || c == '/' || c == '?' || c == '#' || c == '@' || c == '\\' || c == ',' {
			return false
		}
	}
	return len(s) > 0
}

// ParseLength reads a Content-Length: digits only, no sign, no list, below 2^63.
func ParseLength[T Text](s T) (int64, bool) {
	var n int64
	for i := range len(s) {
		c := s[i]
		if c < '0' || c > '9' || n > (math.MaxInt64-int64(c-'0'))/10 {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, len(s) > 0
}
