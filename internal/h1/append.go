package h1

import "strconv"

// AppendField appends a field line, its name as HTTP/1 usually spells it: the first letter, and each behind a hyphen, in upper case.
func AppendField(dst []byte, name, value string) []byte {
	upper := true
	for i := range len(name) {
		c := name[i]
		if upper && 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		upper = c == '-'
		dst = append(dst, c)
	}
	dst = append(dst, ": "...)
	dst = append(dst, value...)
	return append(dst, "\r\n"...)
}

// AppendChunk appends a chunk of bytes, of which there is one at least.
func AppendChunk(dst, data []byte) []byte {
	dst = strconv.AppendInt(dst, int64(len(data)), 16)
	dst = append(dst, "\r\n"...)
	dst = append(dst, data...)
	return append(dst, "\r\n"...)
}

// LastChunk ends a body in chunks that has no trailer section.
const LastChunk = "0\r\n\r\n"
