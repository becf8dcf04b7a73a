package l7

import (
	"net/http"
	"strconv"

	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/reason"
)

// ending is how an attempt at an endpoint ended.
type ending uint8

const (
	answered        ending = iota // with a response's head; its status says how
	connectFailed                 // refused, unreachable: nothing was sent
	connectTimedOut               // nothing was sent either
	starved                       // we had no file descriptor or port for a connection
	reset                         // the connection broke, or the answer was no HTTP, before the response's head
	unprocessed                   // the endpoint said that it did not process the request
	timedOut                      // no response's head in time
	overdue                       // the whole request's time, or the gRPC deadline, was over
	clientGone                    // the client gave up
)

// outcome is what an ending says about the endpoint. docs/guide/proxy.md has the table for operators.
func (e ending) outcome(status int) pick.Outcome {
	switch e {
	case answered:
		return outcomeOfStatus(status)
	case clientGone, starved:
		return pick.Canceled
	default:
		return pick.LocalError
	}
}

// outcomeOfStatus: an endpoint fails if it says that it cannot (500, 502, 503, 504) or that it has too much to do (429).
// 501 and 505 speak of the request, as does every other 4xx; 507 and 508 of the resource.
func outcomeOfStatus(status int) pick.Outcome {
	switch status {
	case http.StatusInternalServerError:
		return pick.ServerError
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return pick.GatewayError
	case http.StatusTooManyRequests:
		return pick.Failure
	default:
		return pick.Success
	}
}

// outcomeOfCall is what a gRPC call's status says; where there is none, its HTTP status does.
func outcomeOfCall(status GRPCStatus, code int) pick.Outcome {
	if status == NoStatus && code != http.StatusOK {
		return outcomeOfStatus(code)
	}
	return status.outcome()
}

// GRPCStatus is the status code of a gRPC call, or NoStatus.
type GRPCStatus int

// NoStatus is the GRPCStatus of what is no gRPC call, or of a call that ended without one.
const NoStatus GRPCStatus = -1

// The gRPC codes that the proxy tells apart, from the gRPC specification's statuscodes.md.
const (
	grpcOK                GRPCStatus = 0
	grpcCanceled          GRPCStatus = 1
	grpcUnknown           GRPCStatus = 2
	grpcDeadlineExceeded  GRPCStatus = 4
	grpcResourceExhausted GRPCStatus = 8
	grpcUnimplemented     GRPCStatus = 12
	grpcInternal          GRPCStatus = 13
	grpcUnavailable       GRPCStatus = 14
	grpcDataLoss          GRPCStatus = 15

	grpcLast = 16 // UNAUTHENTICATED
)

// parseGRPCStatus reads a grpc-status field; what is no code is UNKNOWN, as gRPC clients have it.
func parseGRPCStatus(field string) GRPCStatus {
	if field == "" {
		return NoStatus
	}
	code, err := strconv.ParseUint(field, 10, 8)
	if err != nil || code > grpcLast {
		return grpcUnknown
	}
	return GRPCStatus(code)
}

// outcome is what a call's status says about the endpoint. UNKNOWN is what servers send for an error without a status,
// so it is gRPC's 500; ABORTED speaks of a conflict between clients and is none of the endpoint's fault; a call that
// ends without a status was broken by its server. The kinds of failure are those of the HTTP statuses that gRPC's own
// mapping names: 503 for UNAVAILABLE, 504 for DEADLINE_EXCEEDED, 429 for RESOURCE_EXHAUSTED.
func (s GRPCStatus) outcome() pick.Outcome {
	switch s {
	case grpcUnavailable, grpcDeadlineExceeded:
		return pick.GatewayError
	case grpcUnknown, grpcInternal, grpcDataLoss, NoStatus:
		return pick.ServerError
	case grpcResourceExhausted:
		return pick.Failure
	case grpcCanceled:
		return pick.Canceled
	default:
		return pick.Success
	}
}

// refusal is an answer that the proxy gives itself.
type refusal struct {
	code       reason.Code
	status     int
	grpc       GRPCStatus
	retryAfter bool // the client should try again, a second later
}

// statusClientClosed is nginx's code for a client that left before the answer; it is sent to no client, metrics show it.
const statusClientClosed = 499

// refusalFor gives the answer that belongs to a reason.
func refusalFor(code reason.Code) refusal {
	r := refusal{code: code, status: http.StatusBadRequest, grpc: grpcInternal}
	switch code {
	case reason.NoEndpoints:
		r.status, r.grpc = http.StatusServiceUnavailable, grpcUnavailable
	case reason.RequestShed, reason.PendingLimit, reason.ConnectionLimit:
		r.status, r.grpc, r.retryAfter = http.StatusServiceUnavailable, grpcResourceExhausted, true
	case reason.ConnectFailed, reason.EndpointReset:
		r.status, r.grpc = http.StatusBadGateway, grpcUnavailable
	case reason.ConnectTimeout:
		r.status, r.grpc = http.StatusGatewayTimeout, grpcUnavailable
	case reason.ResponseTimeout, reason.RequestTimeout:
		r.status, r.grpc = http.StatusGatewayTimeout, grpcDeadlineExceeded
	case reason.HeadTimeout, reason.BodyTimeout:
		r.status = http.StatusRequestTimeout
	case reason.HeadTooLarge:
		r.status = http.StatusRequestHeaderFieldsTooLarge
	case reason.TargetTooLong:
		r.status = http.StatusRequestURITooLong
	case reason.UnsupportedCoding, reason.UnsupportedMethod:
		r.status, r.grpc = http.StatusNotImplemented, grpcUnimplemented
	case reason.UnsupportedVersion:
		r.status = http.StatusHTTPVersionNotSupported
	case reason.ClientGone:
		r.status, r.grpc = statusClientClosed, grpcCanceled
	default: // MalformedRequest
	}
	return r
}

// ends tells whether the client's connection ends with the refusal: where its next request would begin is not known.
func (r *refusal) ends() bool {
	return r.status < http.StatusInternalServerError || r.status == http.StatusNotImplemented ||
		r.status == http.StatusHTTPVersionNotSupported
}

// refusalReasons lists every reason that refusalFor knows, so that their texts are rendered once.
func refusalReasons() []reason.Code {
	return []reason.Code{
		reason.NoEndpoints, reason.RequestShed, reason.PendingLimit, reason.ConnectionLimit, reason.ConnectFailed,
		reason.ConnectTimeout, reason.EndpointReset, reason.ResponseTimeout, reason.RequestTimeout, reason.HeadTimeout,
		reason.BodyTimeout, reason.HeadTooLarge, reason.TargetTooLong, reason.MalformedRequest, reason.UnsupportedCoding,
		reason.UnsupportedVersion, reason.UnsupportedMethod, reason.ClientGone,
	}
}

// reason names why there is no answer from an endpoint.
func (e ending) reason() reason.Code {
	switch e {
	case connectFailed:
		return reason.ConnectFailed
	case connectTimedOut:
		return reason.ConnectTimeout
	case timedOut:
		return reason.ResponseTimeout
	case overdue:
		return reason.RequestTimeout
	case clientGone:
		return reason.ClientGone
	case starved:
		return reason.ConnectionLimit
	default:
		return reason.EndpointReset
	}
}
