package h2

import "golang.org/x/net/http2/hpack"

// Field is a field line; its name is in lower case.
type Field = hpack.HeaderField

// Decoder puts header blocks together from frames and decodes them. It is one connection's, and for one goroutine at a time.
type Decoder struct {
	// Fields are those of the last block, until the next one begins.
	Fields []Field
	// TooLarge says that the block had more than the limits allow: Fields are not all. The connection is in order.
	TooLarge bool

	hpack   *hpack.Decoder
	bytes   int // limit of a list's size, as RFC 9113 section 6.5.2 counts it
	count   int // limit of fields
	stream  uint32
	end     bool // the block ends its stream
	size    int
	encoded int
	frames  int
}

const (
	// maxFrames bounds the frames of one block: 64 KiB of fields take 5; a flood of empty ones takes as many as it may.
	maxFrames = 64
	// encodedSlack is what a block may be longer than the limit of its list before the connection ends: a sender that is told 431
	// for a list that is somewhat too large keeps its connection.
	encodedSlack = 64 << 10
	tableSize    = 4_096 // SETTINGS_HEADER_TABLE_SIZE's default, which is not changed
)

// NewDecoder makes a decoder that takes lists up to a size and a number of fields; 0 or less is no limit.
func NewDecoder(bytes, count int) *Decoder {
	const unlimited = 1 << 30
	if bytes <= 0 {
		bytes = unlimited
	}
	if count <= 0 {
		count = unlimited
	}
	d := &Decoder{bytes: bytes, count: count}
	d.hpack = hpack.NewDecoder(tableSize, d.emit)
	d.hpack.SetMaxStringLength(bytes + encodedSlack)
	return d
}

func (d *Decoder) emit(f Field) {
	d.size += int(f.Size())
	if d.size > d.bytes || len(d.Fields) >= d.count {
		d.TooLarge = true
		d.hpack.SetEmitEnabled(false)
		return
	}
	d.Fields = append(d.Fields, f)
}

// Stream is the stream of a block that has begun and not ended; 0 if there is none. Until then no other frame may come.
func (d *Decoder) Stream() uint32 { return d.stream }

// EndsStream tells whether the last block ended its stream.
func (d *Decoder) EndsStream() bool { return d.end }

// Add takes a Headers or Continuation frame in; complete tells whether the block ends with it.
//
// Errors: of the connection, since its compression is out of step from then on.
func (d *Decoder) Add(f *Frame) (complete bool, err error) {
	body := f.Payload
	if f.Type == Headers {
		if body, _, err = f.Body(); err != nil {
			return false, err
		}
		clear(d.Fields)
		d.Fields, d.TooLarge = d.Fields[:0], false
		d.stream, d.end, d.size, d.encoded, d.frames = f.Stream, f.Has(EndStream), 0, 0, 0
		d.hpack.SetEmitEnabled(true)
	}
	d.encoded += len(body)
	if d.frames++; d.frames > maxFrames || d.encoded > d.bytes+encodedSlack {
		return false, connectionError(EnhanceYourCalm, "a header block without an end (CONTINUATION flood)")
	}
	if _, err := d.hpack.Write(body); err != nil {
		return false, connectionError(CompressionError, "a header block that cannot be decoded")
	}
	if !f.Has(EndHeaders) {
		return false, nil
	}
	d.stream = 0
	if err := d.hpack.Close(); err != nil {
		return false, connectionError(CompressionError, "a header block that breaks off")
	}
	return true, nil
}
