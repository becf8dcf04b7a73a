package h2

import "golang.org/x/net/http2/hpack"

// Encoder makes header blocks and their frames. It is one connection's: blocks must be sent in the order in which they were made.
// One goroutine at a time.
type Encoder struct {
	hpack *hpack.Encoder
	block []byte
}

// NewEncoder makes an encoder.
func NewEncoder() *Encoder {
	e := new(Encoder)
	e.hpack = hpack.NewEncoder(e)
	return e
}

// Write is for the compression.
func (e *Encoder) Write(p []byte) (int, error) {
	e.block = append(e.block, p...)
	return len(p), nil
}

// SetTableSize follows the peer's SETTINGS_HEADER_TABLE_SIZE, up to the default size.
func (e *Encoder) SetTableSize(n uint32) { e.hpack.SetMaxDynamicTableSize(n) }

// Add adds a field to the block.
func (e *Encoder) Add(name, value string) {
	e.AddField(Field{Name: name, Value: value})
}

// AddField adds a field to the block; one that is sensitive is never indexed.
func (e *Encoder) AddField(f Field) {
	_ = e.hpack.WriteField(f) // Write does not fail
}

// keptBlock is what is kept of a block's memory for the next one: usual heads are smaller.
const keptBlock = 4 << 10

// Append appends the block to dst in as many frames as it needs, and begins the next block.
func (e *Encoder) Append(dst []byte, stream uint32, flags Flags, maxPayload int) []byte {
	rest, t := e.block, Headers
	for {
		n := min(len(rest), maxPayload)
		if n == len(rest) {
			flags |= EndHeaders
		}
		dst = Frame{Type: t, Flags: flags, Stream: stream}.AppendHeader(dst, n)
		dst = append(dst, rest[:n]...)
		if rest = rest[n:]; len(rest) == 0 {
			break
		}
		t, flags = Continuation, flags&^EndStream
	}
	e.block = e.block[:0]
	if cap(e.block) > keptBlock {
		e.block = nil
	}
	return dst
}
