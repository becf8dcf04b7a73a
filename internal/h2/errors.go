package h2

import "strconv"

// Code is an error code of RFC 9113 section 7.
type Code uint32

// The error codes.
const (
	NoError            Code = 0
	ProtocolError      Code = 1
	InternalError      Code = 2
	FlowControlError   Code = 3
	SettingsTimeout    Code = 4
	StreamClosed       Code = 5
	FrameSizeError     Code = 6
	RefusedStream      Code = 7
	Cancel             Code = 8
	CompressionError   Code = 9
	ConnectError       Code = 10
	EnhanceYourCalm    Code = 11
	InadequateSecurity Code = 12
	HTTP11Required     Code = 13
)

// String gives the code's name as RFC 9113 has it.
func (c Code) String() string {
	names := [...]string{
		"NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT", "STREAM_CLOSED", "FRAME_SIZE_ERROR",
		"REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM", "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED",
	}
	if int(c) < len(names) {
		return names[c]
	}
	return "error " + strconv.FormatUint(uint64(c), 10)
}

// Error is a fault of the peer: of a stream, or of the whole connection if Stream is 0.
type Error struct {
	Code   Code
	Stream uint32
	Fault  string // what was wrong, as logs have it
}

// Error describes the fault.
func (e *Error) Error() string { return e.Code.String() + ": " + e.Fault }

// connectionError is a fault that ends the connection.
func connectionError(code Code, fault string) error { return &Error{Code: code, Fault: fault} }

// MalformedError is why a head or a trailer section is malformed (RFC 9113 section 8.1.1).
type MalformedError string

// Error describes the fault.
func (m MalformedError) Error() string { return string(m) }
