// Package h2 is the part of HTTP/2 (RFC 9113) that needs no connection: frames out of bytes and into bytes, header blocks out of
// frames and into frames, and the rules by which a head or a trailer section is malformed.
//
// It promises that whatever a peer sends is either understood or refused with an Error, and that a frame and a known field cost no
// allocation. It keeps no streams and no windows: those are a connection's. It refuses to repair: what section 8 calls malformed
// is an error here.
package h2
