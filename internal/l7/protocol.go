package l7

import "strings"

// Protocol is how the connections of a port are understood.
type Protocol uint8

// The protocols. HTTP, H2C, GRPC and WebSocket all accept HTTP/1 and HTTP/2 by prior knowledge from clients; they differ
// in what the endpoint hears. In a Result, HTTP is a request over HTTP/1, H2C one over HTTP/2, WebSocket an upgrade of
// any name.
const (
	Detect    Protocol = iota // HTTP or TCP, by the client's first bytes
	HTTP                      // the endpoint hears what the client speaks: HTTP/1.1 or HTTP/2
	H2C                       // the endpoint hears HTTP/2
	GRPC                      // the endpoint hears HTTP/2, and refusals are gRPC statuses
	WebSocket                 // the endpoint hears HTTP/1.1
	TCP                       // bytes
)

// ProtocolOf gives the protocol of an appProtocol, in the spellings of KEP-3726 and of the IANA names; letter case does
// not matter. Without one the protocol is detected. What is not known, and whatever is encrypted, is TCP.
func ProtocolOf(appProtocol string) Protocol {
	switch strings.ToLower(appProtocol) {
	case "":
		return Detect
	case "http", "grpc-web":
		return HTTP
	case "kubernetes.io/h2c", "h2c", "http2":
		return H2C
	case "grpc":
		return GRPC
	case "kubernetes.io/ws", "ws":
		return WebSocket
	default:
		return TCP
	}
}

// String gives the protocol's name as metrics have it.
func (p Protocol) String() string {
	return [...]string{"detect", "http", "h2c", "grpc", "websocket", "tcp"}[p]
}
