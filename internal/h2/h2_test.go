package h2_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/weir-lb/weir/internal/h2"
)

// written gives the bytes of frames that golang.org/x/net writes.
func written(write func(*http2.Framer)) []byte {
	var b bytes.Buffer
	f := http2.NewFramer(&b, nil)
	f.AllowIllegalWrites = true
	write(f)
	return b.Bytes()
}

func TestFramesAreThoseOfXNet(t *testing.T) {
	ping := [8]byte{1, 2, 3, 4, 5, 6, 7, 8}
	for name, c := range map[string]struct{ got, want []byte }{
		"data": {
			h2.AppendData(nil, 3, h2.EndStream, []byte("hello")),
			written(func(f *http2.Framer) { _ = f.WriteData(3, true, []byte("hello")) }),
		},
		"reset": {
			h2.AppendReset(nil, 3, h2.Cancel),
			written(func(f *http2.Framer) { _ = f.WriteRSTStream(3, http2.ErrCodeCancel) }),
		},
		"window update": {
			h2.AppendWindowUpdate(nil, 3, 1<<20),
			written(func(f *http2.Framer) { _ = f.WriteWindowUpdate(3, 1<<20) }),
		},
		"ping": {
			h2.AppendPing(nil, h2.Ack, ping),
			written(func(f *http2.Framer) { _ = f.WritePing(true, ping) }),
		},
		"goaway": {
			h2.AppendGoAway(nil, 7, h2.EnhanceYourCalm, "why"),
			written(func(f *http2.Framer) { _ = f.WriteGoAway(7, http2.ErrCodeEnhanceYourCalm, []byte("why")) }),
		},
		"settings": {
			h2.AppendSettings(nil, h2.Setting{ID: h2.InitialWindowSize, Value: 7}, h2.Setting{ID: h2.MaxFrameSize, Value: 1 << 14}),
			written(func(f *http2.Framer) {
				_ = f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 7}, http2.Setting{ID: http2.SettingMaxFrameSize, Val: 1 << 14})
			}),
		},
		"settings acknowledged": {
			h2.AppendSettingsAck(nil),
			written(func(f *http2.Framer) { _ = f.WriteSettingsAck() }),
		},
	} {
		if d := cmp.Diff(c.want, c.got); d != "" {
			t.Errorf("%s: -want +got\n%s", name, d)
		}
	}
}

func TestBlocksOfAnySizeComeBack(t *testing.T) {
	e, d := h2.NewEncoder(), h2.NewDecoder(1<<20, 100)
	for _, size := range []int{0, 10, 16 << 10, 100 << 10} {
		want := []h2.Field{{Name: ":method", Value: "GET"}, {Name: "x", Value: strings.Repeat("~", size)}, {Name: "secret", Value: "s", Sensitive: true}}
		for _, f := range want {
			e.AddField(f)
		}
		raw := e.Append(nil, 5, h2.EndStream, h2.MaxPayload)
		complete := false
		for len(raw) > 0 {
			f, n, err := h2.Next(raw)
			if err != nil || n == 0 {
				t.Fatalf("%d bytes: %d, %v", size, n, err)
			}
			if complete, err = d.Add(&f); err != nil {
				t.Fatal(err)
			}
			if raw = raw[n:]; complete != (len(raw) == 0) {
				t.Fatalf("%d bytes: the block ended at %d from its end", size, len(raw))
			}
		}
		if d := cmp.Diff(want, d.Fields); d != "" || !complete {
			t.Errorf("-want +got\n%s", d)
		}
		if !d.EndsStream() || d.TooLarge || d.Stream() != 0 {
			t.Errorf("ends %v, too large %v, stream %d", d.EndsStream(), d.TooLarge, d.Stream())
		}
	}
}

// TestAListAboveTheLimitsKeepsTheTable: a block is too large, and the next one refers to what it brought.
func TestAListAboveTheLimitsKeepsTheTable(t *testing.T) {
	for name, d := range map[string]*h2.Decoder{"bytes": h2.NewDecoder(100, 0), "fields": h2.NewDecoder(0, 2)} {
		e := h2.NewEncoder()
		add := func(fields ...h2.Field) bool {
			for _, f := range fields {
				e.AddField(f)
			}
			f, _, err := h2.Next(e.Append(nil, 1, 0, h2.MaxPayload))
			if err != nil {
				t.Fatal(err)
			}
			complete, err := d.Add(&f)
			if err != nil || !complete {
				t.Fatalf("%s: %v, %v", name, complete, err)
			}
			return d.TooLarge
		}
		known := h2.Field{Name: "x", Value: "known"}
		if !add(h2.Field{Name: "a", Value: "1"}, h2.Field{Name: "b", Value: "2"}, h2.Field{Name: "c", Value: "3"}, known) {
			t.Errorf("%s: the limit was not kept", name)
		}
		if add(known) || len(d.Fields) != 1 || d.Fields[0] != known {
			t.Errorf("%s: got %v", name, d.Fields)
		}
	}
}

func TestFramesThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		raw  []byte
		want h2.Code
	}{
		"too long":               {h2.Frame{Type: h2.Data, Stream: 1}.AppendHeader(nil, 1<<14+1), h2.FrameSizeError},
		"DATA of no stream":      {h2.Frame{Type: h2.Data}.AppendHeader(nil, 0), h2.ProtocolError},
		"SETTINGS of a stream":   {h2.Frame{Type: h2.SettingsType, Stream: 1}.AppendHeader(nil, 0), h2.ProtocolError},
		"SETTINGS of 5 bytes":    {h2.Frame{Type: h2.SettingsType}.AppendHeader(nil, 5), h2.FrameSizeError},
		"an ACK with settings":   {h2.Frame{Type: h2.SettingsType, Flags: h2.Ack}.AppendHeader(nil, 6), h2.FrameSizeError},
		"PING of 7 bytes":        {h2.Frame{Type: h2.Ping}.AppendHeader(nil, 7), h2.FrameSizeError},
		"RST_STREAM of 5 bytes":  {h2.Frame{Type: h2.Reset, Stream: 1}.AppendHeader(nil, 5), h2.FrameSizeError},
		"RST_STREAM of none":     {h2.Frame{Type: h2.Reset}.AppendHeader(nil, 4), h2.ProtocolError},
		"GOAWAY of 7 bytes":      {h2.Frame{Type: h2.GoAway}.AppendHeader(nil, 7), h2.FrameSizeError},
		"WINDOW_UPDATE, 3 bytes": {h2.Frame{Type: h2.WindowUpdate}.AppendHeader(nil, 3), h2.FrameSizeError},
	} {
		_, _, err := h2.Next(c.raw)
		if fault, ok := errors.AsType[*h2.Error](err); !ok || fault.Code != c.want || fault.Stream != 0 {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
	for name, f := range map[string]h2.Frame{
		"padded without a length":   {Type: h2.Data, Flags: h2.Padded, Stream: 1},
		"more padding than payload": {Type: h2.Data, Flags: h2.Padded, Stream: 1, Payload: []byte{2, 0}},
		"too short for a priority":  {Type: h2.Headers, Flags: h2.HasPriority, Stream: 1, Payload: []byte{0, 0, 0, 0}},
		"it depends on itself":      {Type: h2.Headers, Flags: h2.HasPriority, Stream: 1, Payload: []byte{0, 0, 0, 1, 0}},
	} {
		if _, _, err := f.Body(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestSettingsOutOfRange(t *testing.T) {
	for _, c := range []h2.Setting{
		{ID: h2.EnablePush, Value: 2}, {ID: h2.InitialWindowSize, Value: 1 << 31}, {ID: h2.MaxFrameSize, Value: 1<<14 - 1}, {ID: h2.MaxFrameSize, Value: 1 << 24},
	} {
		s := h2.DefaultSettings()
		if err := s.Apply(h2.AppendSettings(nil, c)[h2.HeaderLen:]); err == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
}

// TestCodecMakesNoGarbage: reading a frame, decoding and judging a head of known fields, and encoding it.
func TestCodecMakesNoGarbage(t *testing.T) {
	e, d := h2.NewEncoder(), h2.NewDecoder(64<<10, 128)
	fields := []h2.Field{
		{Name: ":method", Value: "POST"},
		{Name: ":scheme", Value: "http"},
		{Name: ":authority", Value: "h"},
		{Name: ":path", Value: "/a"},
		{Name: "content-type", Value: "application/grpc"},
		{Name: "te", Value: "trailers"},
		{Name: "content-length", Value: "7"},
	}
	var out []byte
	once := func() {
		for i := range fields {
			e.AddField(fields[i])
		}
		out = e.Append(out[:0], 1, h2.EndStream, h2.MaxPayload)
		f, _, err := h2.Next(out)
		if err != nil {
			t.Fatal(err)
		}
		if complete, err := d.Add(&f); !complete || err != nil {
			t.Fatal(complete, err)
		}
		if h, err := h2.ParseRequest(d.Fields); err != nil || h.Length != 7 || h.Path != "/a" {
			t.Fatal(h, err)
		}
		out = h2.AppendWindowUpdate(h2.AppendData(out[:0], 1, h2.EndStream, out), 1, 7)
	}
	once()
	if got := testing.AllocsPerRun(100, once); got != 0 {
		t.Errorf("%v allocations", got)
	}
}

// FuzzFrames compares with golang.org/x/net: what both read is the same, and what it refuses is refused here, at the latest when the frame is used.
func FuzzFrames(f *testing.F) {
	f.Add(h2.AppendData(nil, 3, h2.EndStream, []byte("hello")))
	f.Add(h2.AppendSettings(nil, h2.Setting{ID: 4, Value: 1}))
	f.Add(h2.Frame{Type: h2.Headers, Flags: h2.Padded | h2.HasPriority | h2.EndHeaders, Stream: 1}.AppendHeader(nil, 2))
	f.Fuzz(func(t *testing.T, raw []byte) {
		reference := http2.NewFramer(nil, bytes.NewReader(raw))
		reference.SetMaxReadFrameSize(h2.MaxPayload)
		reference.AllowIllegalReads = true
		for len(raw) > 0 {
			got, n, err := h2.Next(raw)
			want, refErr := reference.ReadFrame()
			if n == 0 && err == nil {
				if refErr == nil {
					t.Fatalf("%x is whole: %v", raw, want)
				}
				return
			}
			if err != nil {
				return // stricter is allowed
			}
			if h := want; refErr == nil {
				if hd := h.Header(); uint8(hd.Type) != uint8(got.Type) || uint8(hd.Flags) != uint8(got.Flags) || hd.StreamID != got.Stream || int(hd.Length) != len(got.Payload) {
					t.Fatalf("got %+v, want %v", got, hd)
				}
			}
			switch got.Type {
			case h2.Data, h2.Headers:
				body, padding, err := got.Body()
				if d, ok := want.(*http2.DataFrame); refErr == nil && ok && (err != nil || !bytes.Equal(d.Data(), body) || padding+len(body) != len(got.Payload)) {
					t.Fatalf("got %x %d %v, want %x", body, padding, err, d.Data())
				}
				if refErr != nil && err == nil && got.Type == h2.Data {
					t.Fatalf("%x: accepted, but %v", raw[:n], refErr)
				}
			case h2.Priority:
				_ = got.CheckPriority()
			case h2.WindowUpdate:
				_, _ = got.Increment()
			case h2.Reset, h2.GoAway:
				_ = got.Code()
			case h2.SettingsType:
				s := h2.DefaultSettings()
				_ = s.Apply(got.Payload)
			default:
			}
			if raw = raw[n:]; refErr != nil {
				return
			}
		}
	})
}

// FuzzHeads: no block makes the decoder or the rules fail, and what is accepted can be written as HTTP/1 without saying anything else.
func FuzzHeads(f *testing.F) {
	block := func(fields ...string) []byte {
		var b bytes.Buffer
		e := hpack.NewEncoder(&b)
		for _, field := range fields {
			name, value, _ := strings.Cut(field, "=")
			_ = e.WriteField(hpack.HeaderField{Name: name, Value: value})
		}
		return b.Bytes()
	}
	f.Add(block(":method=GET", ":scheme=http", ":authority=h", ":path=/", "a=b", "host=h"), true)
	f.Add(block(":status=200", "content-length=5"), false)
	f.Add(block(":method=GET", ":path=/\r\n", "Upper=1", "te=gzip"), true)
	f.Fuzz(func(t *testing.T, raw []byte, request bool) {
		d := h2.NewDecoder(1<<14, 64)
		complete, err := d.Add(&h2.Frame{Type: h2.Headers, Flags: h2.EndHeaders, Stream: 1, Payload: raw})
		if err != nil || !complete || d.TooLarge {
			return
		}
		judge := h2.ParseResponse
		if request {
			judge = h2.ParseRequest
		}
		h, err := judge(d.Fields)
		if err != nil {
			return
		}
		if request && h.Method != "CONNECT" && (h.Path == "" || h.Authority == "" || strings.ContainsAny(h.Method+h.Path+h.Authority, " \r\n\x00")) {
			t.Fatalf("accepted %+v", h)
		}
		lengths := 0
		for _, field := range h.Fields {
			if field.Name == "" || field.Name != strings.ToLower(field.Name) || strings.ContainsAny(field.Name, ": \r\n\x00") || strings.ContainsAny(field.Value, "\r\n\x00") {
				t.Fatalf("accepted the field %q: %q", field.Name, field.Value)
			}
			if field.Name == "content-length" {
				lengths++
			}
			if field.Name == "transfer-encoding" || request && field.Name == "host" {
				t.Fatalf("accepted %q", field.Name)
			}
		}
		if lengths > 1 || (lengths == 1) != (h.Length >= 0) {
			t.Fatalf("%d lengths, %d", lengths, h.Length)
		}
		if h2.CheckTrailer(h.Fields) == nil && lengths > 0 {
			t.Fatal("a trailer with a length")
		}
	})
}
