package l7

import (
	"runtime"
	"slices"
)

// batch is what one goroutine has made others write: each connection once, however many frames were appended to it. One goroutine at a time.
type batch struct {
	outlets []*outlet
	origins []*origin // with calls that wait for a stream, and a stream that has become free
}

func (b *batch) serve(o *origin) {
	if !slices.Contains(b.origins, o) {
		b.origins = append(b.origins, o)
	}
}

// flush writes everything. It gives other goroutines one chance to append to the same outlets before, where others do: what they bring costs no call of its own.
// The caller holds no lock.
func (b *batch) flush() {
	for len(b.origins)+len(b.outlets) > 0 {
		for i := 0; i < len(b.origins); i++ {
			b.origins[i].serve(b)
			b.origins[i] = nil
		}
		b.origins = b.origins[:0]
		if slices.ContainsFunc(b.outlets, func(l *outlet) bool { return l.isShared }) {
			runtime.Gosched()
		}
		for i := 0; i < len(b.outlets); i++ {
			b.outlets[i].flush(b)
			b.outlets[i] = nil
		}
		b.outlets = b.outlets[:0]
	}
}
