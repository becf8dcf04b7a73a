package l7

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// body is a client's request body on its way to endpoints. It remembers the little it read first, so that a short body
// can be sent again, and what went wrong on the client's side. Its methods are called by the engine's goroutines.
type body struct {
	source  io.Reader
	keep    bool          // whether to remember: the method may be repeated
	stall   time.Duration // how long the client may stall; 0: it may
	control *http.ResponseController
	trailer func() // called once, at the end, by the reader

	mu    sync.Mutex
	kept  []byte
	whole bool // kept is all that was read
	read  int64
	end   error  // what source said last; nil while there may be more
	ended func() // called once, at the end or the first error
	gone  bool   // the exchange is over: reading is no longer allowed
}

// keptBody bounds what is remembered of a body: one read's worth. Larger bodies of idempotent requests are uploads,
// which their clients repeat themselves.
const keptBody = 16 << 10

var (
	errTakenBack  = errors.New("the request was taken back")
	errUnreadable = errors.New("the request's body cannot be sent again")
)

// view is one attempt's reading of a body.
type view struct {
	*body
	at   int64 // how much this attempt has read
	dead atomic.Bool
}

// open begins the body for one attempt.
func (b *body) open() *view { return &view{body: b} }

// Read replays what is kept and then goes on with the client's bytes.
func (v *view) Read(p []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.dead.Load() || v.gone {
		return 0, errTakenBack
	}
	if v.at < v.read {
		if !v.whole {
			return 0, errUnreadable
		}
		n := copy(p, v.kept[v.at:])
		v.at += int64(n)
		return n, nil
	}
	if v.end != nil {
		return 0, v.end
	}
	n, err := v.fetch(p)
	v.at += int64(n)
	return n, err
}

// Close does nothing: the client's body outlives an attempt.
func (v *view) Close() error { return nil }

func (b *body) fetch(p []byte) (int, error) {
	if b.stall > 0 {
		// An engine that cannot set deadlines has limits of its own.
		_ = b.control.SetReadDeadline(time.Now().Add(b.stall))
	}
	n, err := b.source.Read(p)
	if b.whole = b.keep && len(b.kept)+n <= keptBody && int64(len(b.kept)) == b.read; b.whole {
		b.kept = append(b.kept, p[:n]...)
	}
	b.read += int64(n)
	if err != nil {
		b.finish(err)
	}
	return n, err
}

func (b *body) finish(err error) {
	b.end = err
	if err == io.EOF { //nolint:errorlint // io.Reader returns it bare
		b.trailer()
		if b.stall > 0 {
			_ = b.control.SetReadDeadline(time.Time{})
		}
	}
	b.ended()
}

// onEnd has f called once the body was read, which may be at once. There may be no reader.
func (b *body) onEnd(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = f
	if b.end != nil {
		f()
	}
}

// takeBack ends an attempt's reading. What a read under way still brings is kept for the next attempt.
func (v *view) takeBack() { v.dead.Store(true) }

// isRepeatable tells whether another attempt could read the body from its beginning. A read under way means no: what it
// brings would be lost.
func (b *body) isRepeatable() bool {
	if !b.mu.TryLock() {
		return false
	}
	defer b.mu.Unlock()
	return b.end == nil && b.read == 0 || (b.end == nil || b.end == io.EOF) && b.whole //nolint:errorlint // as above
}

// failure gives what went wrong on the client's side; nil if nothing did. It waits for a read under way.
func (b *body) failure() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.end == io.EOF { //nolint:errorlint // as above
		return nil
	}
	return b.end
}

// isBroken tells whether something went wrong on the client's side so far.
func (b *body) isBroken() bool {
	if !b.mu.TryLock() {
		return false // still reading
	}
	defer b.mu.Unlock()
	return b.end != nil && b.end != io.EOF //nolint:errorlint // as above
}

// isWhole tells whether all of the body was read. A read under way means no.
func (b *body) isWhole() bool {
	if !b.mu.TryLock() {
		return false
	}
	defer b.mu.Unlock()
	return b.end == io.EOF //nolint:errorlint // as above
}

// close forbids further reading and tells how much was read, and whether that was all. It does not wait for a read under
// way; ending the exchange breaks that.
func (b *body) close() (read int64, all bool) {
	if !b.mu.TryLock() {
		return 0, false
	}
	defer b.mu.Unlock()
	b.gone = true
	return b.read, b.end == io.EOF //nolint:errorlint // as above
}
