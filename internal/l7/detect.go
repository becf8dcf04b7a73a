package l7

import (
	"bytes"
	"net"
	"time"
)

// detectSize is what is read to detect a protocol: a usual head's worth, so that it is read once.
const detectSize = 4 << 10

// detect reads a client's first bytes and tells HTTP from TCP. It gives back what it read. A client that says nothing
// for the time allowed, or has already said all, waits for the other side to speak: TCP.
func detect(conn net.Conn, wait time.Duration) (Protocol, []byte) {
	if wait > 0 {
		if conn.SetReadDeadline(time.Now().Add(wait)) != nil {
			return TCP, nil
		}
		defer func() { _ = conn.SetReadDeadline(time.Time{}) }()
	}
	b := make([]byte, 0, detectSize)
	for {
		n, err := conn.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if p, sure := protocolOfBytes(b); sure {
			return p, b
		}
		if err != nil || len(b) == cap(b) {
			return TCP, b
		}
	}
}

// protocolOfBytes tells what begins so; sure is false while a longer beginning could still be HTTP.
//
// It knows the methods of RFC 9110, RFC 5789 (PATCH) and WebDAV (RFC 4918). CONNECT is left out: a service that is asked
// to connect is a proxy itself, and its clients' bytes are its business.
func protocolOfBytes(b []byte) (p Protocol, sure bool) {
	for _, begin := range []string{
		"GET ", "POST ", "PUT ", "HEAD ", "DELETE ", "OPTIONS ", "PATCH ", "TRACE ", "PRI * HTTP/2.0\r\n",
		"PROPFIND ", "PROPPATCH ", "MKCOL ", "COPY ", "MOVE ", "LOCK ", "UNLOCK ",
	} {
		n := min(len(b), len(begin))
		if !bytes.Equal(b[:n], []byte(begin[:n])) {
			continue
		}
		if n == len(begin) {
			return HTTP, true
		}
		return TCP, false
	}
	return TCP, true
}
