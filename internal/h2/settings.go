package h2

import "encoding/binary"

// SettingID names a setting of RFC 9113 section 6.5.2.
type SettingID uint16

// The settings.
const (
	HeaderTableSize      SettingID = 1
	EnablePush           SettingID = 2
	MaxConcurrentStreams SettingID = 3
	InitialWindowSize    SettingID = 4
	MaxFrameSize         SettingID = 5
	MaxHeaderListSize    SettingID = 6
)

// Setting is one setting.
type Setting struct {
	ID    SettingID
	Value uint32
}

// AppendSettings appends a SETTINGS frame.
func AppendSettings(dst []byte, settings ...Setting) []byte {
	const each = 6
	dst = Frame{Type: SettingsType}.AppendHeader(dst, each*len(settings))
	for _, s := range settings {
		dst = binary.BigEndian.AppendUint16(dst, uint16(s.ID))
		dst = binary.BigEndian.AppendUint32(dst, s.Value)
	}
	return dst
}

// AppendSettingsAck appends the acknowledgement of a SETTINGS frame.
func AppendSettingsAck(dst []byte) []byte {
	return Frame{Type: SettingsType, Flags: Ack}.AppendHeader(dst, 0)
}

// Settings are a peer's settings that concern what it is sent.
type Settings struct {
	HeaderTable uint32 // what its decoder keeps at most
	Streams     uint32 // what it lets be open at once
	Window      int64  // of a new stream
	Frame       int    // the longest payload
	HeaderList  uint32 // the largest list of fields; 0: it did not say
}

// DefaultSettings hold until the peer says otherwise.
func DefaultSettings() Settings {
	const tableSize, manyStreams = 4_096, 1<<32 - 1
	return Settings{HeaderTable: tableSize, Streams: manyStreams, Window: DefaultWindow, Frame: MaxPayload}
}

// Apply takes a SETTINGS frame's settings over, in their order.
//
// Errors: values out of range, of the connection. What is unknown is ignored.
func (s *Settings) Apply(payload []byte) error {
	for ; len(payload) >= 6; payload = payload[6:] {
		value := binary.BigEndian.Uint32(payload[2:])
		switch SettingID(binary.BigEndian.Uint16(payload)) {
		case HeaderTableSize:
			s.HeaderTable = value
		case EnablePush:
			if value > 1 {
				return connectionError(ProtocolError, "SETTINGS_ENABLE_PUSH above 1")
			}
		case MaxConcurrentStreams:
			s.Streams = value
		case InitialWindowSize:
			if value > MaxWindow {
				return connectionError(FlowControlError, "SETTINGS_INITIAL_WINDOW_SIZE above 2^31-1")
			}
			s.Window = int64(value)
		case MaxFrameSize:
			if value < MaxPayload || value >= 1<<24 {
				return connectionError(ProtocolError, "SETTINGS_MAX_FRAME_SIZE out of range")
			}
			s.Frame = int(value)
		case MaxHeaderListSize:
			s.HeaderList = value
		default:
		}
	}
	return nil
}
