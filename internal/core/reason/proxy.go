package reason

// Codes of package l7: why the proxy answered a request itself.
const (
	RequestShed        Code = "RequestShed"
	PendingLimit       Code = "PendingLimit"
	ConnectionLimit    Code = "ConnectionLimit"
	ConnectFailed      Code = "ConnectFailed"
	ConnectTimeout     Code = "ConnectTimeout"
	EndpointReset      Code = "EndpointReset"
	ResponseTimeout    Code = "ResponseTimeout"
	RequestTimeout     Code = "RequestTimeout"
	ClientGone         Code = "ClientGone"
	HeadTimeout        Code = "HeadTimeout"
	BodyTimeout        Code = "BodyTimeout"
	HeadTooLarge       Code = "HeadTooLarge"
	TargetTooLong      Code = "TargetTooLong"
	MalformedRequest   Code = "MalformedRequest"
	UnsupportedCoding  Code = "UnsupportedCoding"
	UnsupportedVersion Code = "UnsupportedVersion"
	UnsupportedMethod  Code = "UnsupportedMethod"
	ClientFlood        Code = "ClientFlood"
)

func proxyTexts() map[Code]string {
	return map[Code]string{
		RequestShed:        "the service is overloaded in every zone and sheds what it cannot take",
		PendingLimit:       "too many requests wait for an answer already",
		ConnectionLimit:    "too many connections are open already",
		ConnectFailed:      "no endpoint that was tried accepted a connection",
		ConnectTimeout:     "no endpoint that was tried accepted a connection in time",
		EndpointReset:      "the endpoint broke the connection before it answered",
		ResponseTimeout:    "the endpoint did not answer in time",
		RequestTimeout:     "the request took longer than the service allows",
		ClientGone:         "the client gave up before there was an answer",
		HeadTimeout:        "the request's head did not arrive in time",
		BodyTimeout:        "the request's body stalled",
		HeadTooLarge:       "the request's head is too large",
		TargetTooLong:      "the request's target is too long",
		MalformedRequest:   "the request is malformed or its length is ambiguous",
		UnsupportedCoding:  "the request's transfer coding is not supported",
		UnsupportedVersion: "the request's HTTP version is not supported",
		ClientFlood:        "the client's connection was closed because it flooded it with frames",
		UnsupportedMethod:  "the request's method is not supported by a proxy for services",
	}
}
