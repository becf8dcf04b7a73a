package l7_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/l7"
)

// numbered gives n bytes that differ by seed and place.
func numbered(seed uint64, n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16)}).Read(b)
	return b
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:8])
}

// mood is whether clients leave and endpoints break off now and then.
type mood int

const (
	calm mood = iota
	moody
)

// mirror gives a body back, with its checksum as a trailer; sometimes it breaks the stream, or the whole connection, instead.
func mirror(m mood) http.HandlerFunc {
	var asked atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "Sum")
		w.Header().Set("Id", r.Header.Get("Id"))
		n := asked.Add(1)
		if m == moody && n%17 == 0 {
			panic(http.ErrAbortHandler)
		}
		h := sha256.New()
		b := make([]byte, 1+rand.IntN(40_000))
		_ = http.NewResponseController(w).EnableFullDuplex()
		for {
			got, err := r.Body.Read(b)
			h.Write(b[:got])
			if _, err := w.Write(b[:got]); err != nil {
				return
			}
			if m == moody && n%19 == 0 && got > 0 {
				w.(http.Flusher).Flush()
				panic(http.ErrAbortHandler)
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return
			}
		}
		w.Header().Set("Sum", hex.EncodeToString(h.Sum(nil)[:8]))
	}
}

// slowly reads in pieces, with pauses now and then.
type slowly struct {
	io.Reader
	pause time.Duration
}

func (s slowly) Read(p []byte) (int, error) {
	if rand.IntN(8) == 0 {
		time.Sleep(s.pause)
	}
	return s.Reader.Read(p[:1+rand.IntN(len(p))])
}

// TestNoByteIsLostDoubledOrMixedUp sends bodies of many sizes both ways at once on many streams, with clients that read slowly, that leave, and
// endpoints that break off. Whatever arrives whole has its checksum, and belongs to its request.
func TestNoByteIsLostDoubledOrMixedUp(t *testing.T) {
	for name, c := range map[string]struct {
		mood
		protocol l7.Protocol
		h2       bool
	}{
		"calm HTTP/2": {calm, l7.HTTP, true}, "moody HTTP/2": {moody, l7.HTTP, true},
		"calm HTTP/1": {calm, l7.HTTP, false}, "moody HTTP/1": {moody, l7.HTTP, false},
		"calm HTTP/1 to HTTP/2": {calm, l7.H2C, false}, "moody HTTP/1 to HTTP/2": {moody, l7.H2C, false},
		"calm HTTP/2 to HTTP/1": {calm, l7.WebSocket, true}, "moody HTTP/2 to HTTP/1": {moody, l7.WebSocket, true},
	} {
		t.Run(name, func(t *testing.T) {
			m := c.mood
			endpoints := []netip.AddrPort{serve(t, mirror(m)), serve(t, mirror(m)), serve(t, mirror(m))}
			p := start(t, l7.Options{Protocol: c.protocol, Upstreams: only(poolOf(endpoints...), nil)})
			each := 5
			var asking sync.WaitGroup
			var whole, broken atomic.Int64
			for conn := range 4 {
				asker := soaker{client(t, c.h2), p.url, m}
				asker.Timeout = 0
				for stream := range 10 {
					asking.Go(func() {
						for i := range each {
							seed := uint64(conn*1_000_000 + stream*1_000 + i)
							switch err := asker.exchange(t.Context(), seed); {
							case err == nil:
								whole.Add(1)
							case errors.Is(err, errMixedUp):
								t.Errorf("seed %d: %v", seed, err)
							default:
								if broken.Add(1); m == calm {
									t.Errorf("seed %d: %v", seed, err)
								}
							}
						}
					})
				}
			}
			asking.Wait()
			if whole.Load() < int64(each)*20 {
				t.Errorf("only %d exchanges were whole, %d broke", whole.Load(), broken.Load())
			}
			t.Logf("%d whole, %d broke", whole.Load(), broken.Load())
			if pool := p.pool.Status(); pool.Endpoints != nil {
				waitFor(t, func() bool {
					inFlight := int64(0)
					for _, e := range p.pool.Status().Endpoints {
						inFlight += e.InFlight
					}
					return inFlight == 0
				})
			}
		})
	}
}

var errMixedUp = errors.New("not what was sent")

// soaker sends requests of all kinds.
type soaker struct {
	*http.Client
	url string
	mood
}

func (s *soaker) exchange(ctx context.Context, seed uint64) error {
	r := rand.New(rand.NewPCG(seed, 2))
	size := []int{0, 1, 100, 5_000, 70_000, 300_000}[r.IntN(6)]
	body := numbered(seed, size)
	var source io.Reader = bytes.NewReader(body)
	if r.IntN(4) == 0 {
		source = slowly{source, 200 * time.Microsecond}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if s.mood == moody && r.IntN(10) == 0 {
		time.AfterFunc(time.Duration(r.IntN(5))*time.Millisecond, cancel)
	}
	ask, err := http.NewRequestWithContext(ctx, "POST", s.url, source)
	if err != nil {
		return err
	}
	ask.Header.Set("Id", fmt.Sprint(seed))
	if r.IntN(2) == 0 {
		ask.ContentLength = int64(size)
	} else {
		ask.ContentLength = -1
	}
	if size == 0 {
		ask.Body, ask.ContentLength = http.NoBody, 0
	}
	resp, err := s.Do(ask)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != 200 {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	if got := resp.Header.Get("Id"); got != fmt.Sprint(seed) {
		return fmt.Errorf("%w: the answer is that of %s", errMixedUp, got)
	}
	var sink io.Reader = resp.Body
	if r.IntN(4) == 0 {
		sink = slowly{sink, 200 * time.Microsecond}
	}
	got, err := io.ReadAll(sink)
	if !bytes.HasPrefix(body, got) {
		return fmt.Errorf("%w: %d bytes that differ", errMixedUp, len(got))
	}
	if err != nil {
		return err
	}
	if len(got) != size || resp.Trailer.Get("Sum") != sum(body) {
		return fmt.Errorf("%w: %d bytes of %d with sum %q", errMixedUp, len(got), size, resp.Trailer.Get("Sum"))
	}
	return nil
}
