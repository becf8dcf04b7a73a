package webhook

import "bytes"

// cursor goes over JSON by its brackets and quotes. It proves nothing: what it steps over may be no JSON at all.
type cursor struct {
	whole []byte
	rest  []byte // what is ahead: the end of whole
	out   []byte // whole up to copied, with null for what was lifted
	// copied is an index in whole.
	copied int
}

// lift steps over the value ahead, gives it, and leaves null in its place.
func (c *cursor) lift() []byte {
	c.next()
	c.out = append(c.out, c.whole[c.copied:len(c.whole)-len(c.rest)]...)
	v := c.value()
	c.out = append(c.out, "null"...)
	c.copied = len(c.whole) - len(c.rest)
	return v
}

// left is the whole without what was lifted.
func (c *cursor) left() []byte { return append(c.out, c.whole[c.copied:]...) }

// next gives the byte ahead after white space; 0 at the end.
func (c *cursor) next() byte {
	for i, b := range c.rest {
		if b != ' ' && b != '\t' && b != '\r' && b != '\n' {
			c.rest = c.rest[i:]
			return b
		}
	}
	c.rest = nil
	return 0
}

// take steps over a byte if it is ahead.
func (c *cursor) take(b byte) bool {
	if c.next() != b {
		return false
	}
	c.rest = c.rest[1:]
	return true
}

// members calls each with the key, quotes off and escapes as they are, of each member of the object ahead; each has to
// step over the value.
func (c *cursor) members(each func(key []byte)) {
	if !c.take('{') {
		c.value()
		return
	}
	for c.next() == '"' {
		key := c.text()
		if !c.take(':') {
			return
		}
		each(key[1 : len(key)-1])
		if !c.take(',') {
			break
		}
	}
	c.take('}')
}

// value steps over the value ahead and gives it.
func (c *cursor) value() []byte {
	first, start := c.next(), c.rest
	switch first {
	case '"':
		return c.text()
	case '{', '[':
		c.nest()
	default:
		if end := bytes.IndexAny(c.rest, ",]} \t\r\n"); end >= 0 {
			c.rest = c.rest[end:]
		} else {
			c.rest = nil
		}
	}
	return start[:len(start)-len(c.rest)]
}

// nest steps over the object or array ahead.
func (c *cursor) nest() {
	depth := 0
	for len(c.rest) > 0 {
		switch c.rest[0] {
		case '"':
			c.text()
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		c.rest = c.rest[1:]
		if depth == 0 {
			return
		}
	}
}

// text steps over the string ahead and gives it with its quotes. One without an end is given one, and ends the rest.
func (c *cursor) text() []byte {
	for end := 1; ; end++ {
		n := bytes.IndexByte(c.rest[end:], '"')
		if n < 0 {
			c.rest = nil
			return []byte(`""`)
		}
		end += n
		escapes := 0
		for c.rest[end-1-escapes] == '\\' { // ends at the quote that opens, at the latest
			escapes++
		}
		if escapes%2 == 0 {
			text := c.rest[:end+1]
			c.rest = c.rest[end+1:]
			return text
		}
	}
}
