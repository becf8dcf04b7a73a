// Package h1 is the codec of HTTP/1.1: heads, and the framing of bodies. It parses what a peer has sent and judges it; it reads and writes no
// connection.
//
// It promises that whatever two parsers could read in two ways is refused with a reason and never repaired, and that parsing makes no garbage.
// It refuses to know what a message is for: which fields are added, and where it goes, is its user's business.
//
// Source: RFC 9110 and RFC 9112. Stricter than them where they leave a choice: bare LF, folded lines, Content-Length beside Transfer-Encoding,
// repeated equal Content-Length, and Transfer-Encoding in HTTP/1.0 are refused.
package h1
