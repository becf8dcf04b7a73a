package h2

import "encoding/binary"

// Type is a frame's type.
type Type uint8

// The types of RFC 9113 section 6.
const (
	Data         Type = 0
	Headers      Type = 1
	Priority     Type = 2
	Reset        Type = 3 // RST_STREAM
	SettingsType Type = 4
	PushPromise  Type = 5
	Ping         Type = 6
	GoAway       Type = 7
	WindowUpdate Type = 8
	Continuation Type = 9
)

// Flags are a frame's flags; what they mean depends on its type.
type Flags uint8

// The flags of RFC 9113 section 6.
const (
	EndStream   Flags = 0x1 // of Data and Headers
	Ack         Flags = 0x1 // of SettingsType and Ping
	EndHeaders  Flags = 0x4
	Padded      Flags = 0x8
	HasPriority Flags = 0x20
)

const (
	// Preface is what a client's connection begins with (section 3.4).
	Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	// HeaderLen is the length of a frame's header.
	HeaderLen = 9
	// MaxPayload is the longest payload that may be sent without asking (SETTINGS_MAX_FRAME_SIZE).
	MaxPayload = 16 << 10
	// DefaultWindow is a stream's and a connection's window at its beginning.
	DefaultWindow = 65_535
	// MaxWindow is what a window may be at most.
	MaxWindow = 1<<31 - 1
	// MaxStream is the highest stream number; a GOAWAY with it announces that another one follows.
	MaxStream = 1<<31 - 1

	streamMask = 1<<31 - 1
)

// Frame is one frame. Its payload is part of the bytes that it was read from.
type Frame struct {
	Type    Type
	Flags   Flags
	Stream  uint32
	Payload []byte
}

// Has tells whether a flag is set.
func (f *Frame) Has(flag Flags) bool { return f.Flags&flag != 0 }

// Next splits the first frame off b and tells how long it is with its header; 0 means that b does not hold all of it yet.
//
// Errors: a payload longer than MaxPayload, and a length or stream number that the type does not allow, both of the connection.
func Next(b []byte) (f Frame, n int, err error) {
	if len(b) < HeaderLen {
		return f, 0, nil
	}
	length := int(b[0])<<16 | int(b[1])<<8 | int(b[2])
	f.Type, f.Flags = Type(b[3]), Flags(b[4])
	f.Stream = binary.BigEndian.Uint32(b[5:]) & streamMask
	if length > MaxPayload {
		return f, 0, connectionError(FrameSizeError, "a frame above SETTINGS_MAX_FRAME_SIZE")
	}
	if err := f.check(length); err != nil {
		return f, 0, err
	}
	if len(b) < HeaderLen+length {
		return f, 0, nil
	}
	f.Payload = b[HeaderLen : HeaderLen+length]
	return f, HeaderLen + length, nil
}

// check refuses lengths and stream numbers that a type does not allow.
func (f *Frame) check(length int) error {
	ofStream := false
	switch f.Type {
	case Data, Headers, Continuation, PushPromise:
		ofStream = true
	case Priority: // its length is a matter of the stream: ParsePriority
		ofStream = true
	case Reset:
		if ofStream = true; length != 4 {
			return connectionError(FrameSizeError, "RST_STREAM of a wrong length")
		}
	case SettingsType:
		if length%6 != 0 || f.Has(Ack) && length != 0 {
			return connectionError(FrameSizeError, "SETTINGS of a wrong length")
		}
	case Ping:
		if length != 8 {
			return connectionError(FrameSizeError, "PING of a wrong length")
		}
	case GoAway:
		if length < 8 {
			return connectionError(FrameSizeError, "GOAWAY of a wrong length")
		}
	case WindowUpdate:
		if length != 4 {
			return connectionError(FrameSizeError, "WINDOW_UPDATE of a wrong length")
		}
		return nil // of a stream or of the connection
	default:
		return nil // unknown types are ignored (section 5.5)
	}
	if ofStream != (f.Stream != 0) {
		return connectionError(ProtocolError, "a frame on a stream number that its type does not allow")
	}
	return nil
}

// Body gives a Data or Headers frame's payload without padding and priority; padding is how much was taken off.
//
// Errors: padding or priority that the payload has no room for, and a stream that depends on itself.
func (f *Frame) Body() (body []byte, padding int, err error) {
	body = f.Payload
	if f.Has(Padded) {
		if len(body) == 0 {
			return nil, 0, connectionError(FrameSizeError, "a padded frame without a length of its padding")
		}
		pad := int(body[0])
		if pad >= len(body) {
			return nil, 0, connectionError(ProtocolError, "more padding than payload")
		}
		padding = pad + 1
		body = body[1 : len(body)-pad]
	}
	if f.Type == Headers && f.Has(HasPriority) {
		const priorityLen = 5
		if len(body) < priorityLen {
			return nil, 0, connectionError(FrameSizeError, "HEADERS too short for its priority")
		}
		if binary.BigEndian.Uint32(body)&streamMask == f.Stream {
			return nil, 0, connectionError(ProtocolError, "a stream that depends on itself")
		}
		body = body[priorityLen:]
	}
	return body, padding, nil
}

// CheckPriority judges a Priority frame, which has no other effect (section 5.3.2).
func (f *Frame) CheckPriority() error {
	if len(f.Payload) != 5 {
		return &Error{Code: FrameSizeError, Stream: f.Stream, Fault: "PRIORITY of a wrong length"}
	}
	if binary.BigEndian.Uint32(f.Payload)&streamMask == f.Stream {
		return &Error{Code: ProtocolError, Stream: f.Stream, Fault: "a stream that depends on itself"}
	}
	return nil
}

// Code gives a Reset frame's code, or a GoAway frame's.
func (f *Frame) Code() Code {
	return Code(binary.BigEndian.Uint32(f.Payload[f.codeAt():]))
}

func (f *Frame) codeAt() int {
	if f.Type == GoAway {
		return 4
	}
	return 0
}

// LastStream gives a GoAway frame's last stream: what is above it was not and will not be processed.
func (f *Frame) LastStream() uint32 { return binary.BigEndian.Uint32(f.Payload) & streamMask }

// Increment gives a WindowUpdate frame's increment.
//
// Errors: 0, of the stream or the connection.
func (f *Frame) Increment() (int64, error) {
	n := int64(binary.BigEndian.Uint32(f.Payload) & streamMask)
	if n == 0 {
		return 0, &Error{Code: ProtocolError, Stream: f.Stream, Fault: "WINDOW_UPDATE by 0"}
	}
	return n, nil
}
