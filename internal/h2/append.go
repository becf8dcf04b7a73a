package h2

import "encoding/binary"

// AppendHeader appends the header of a frame whose payload of that length follows.
func (f Frame) AppendHeader(dst []byte, length int) []byte {
	dst = append(dst, byte(length>>16), byte(length>>8), byte(length), byte(f.Type), byte(f.Flags))
	return binary.BigEndian.AppendUint32(dst, f.Stream)
}

// AppendData appends a Data frame.
func AppendData(dst []byte, stream uint32, flags Flags, payload []byte) []byte {
	dst = Frame{Type: Data, Flags: flags, Stream: stream}.AppendHeader(dst, len(payload))
	return append(dst, payload...)
}

// AppendReset appends a RST_STREAM frame.
func AppendReset(dst []byte, stream uint32, code Code) []byte {
	dst = Frame{Type: Reset, Stream: stream}.AppendHeader(dst, 4)
	return binary.BigEndian.AppendUint32(dst, uint32(code))
}

// AppendWindowUpdate appends a WINDOW_UPDATE frame, of the connection if stream is 0.
func AppendWindowUpdate(dst []byte, stream, increment uint32) []byte {
	dst = Frame{Type: WindowUpdate, Stream: stream}.AppendHeader(dst, 4)
	return binary.BigEndian.AppendUint32(dst, increment)
}

// AppendPing appends a PING frame.
func AppendPing(dst []byte, flags Flags, data [8]byte) []byte {
	dst = Frame{Type: Ping, Flags: flags}.AppendHeader(dst, len(data))
	return append(dst, data[:]...)
}

// AppendGoAway appends a GOAWAY frame; text is for people who debug the peer.
func AppendGoAway(dst []byte, last uint32, code Code, text string) []byte {
	dst = Frame{Type: GoAway}.AppendHeader(dst, 8+len(text))
	dst = binary.BigEndian.AppendUint32(dst, last)
	dst = binary.BigEndian.AppendUint32(dst, uint32(code))
	return append(dst, text...)
}
