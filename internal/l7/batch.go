package l7

import (
	"runtime"
	"slices"
)

// batch is what one goroutine has made others write: each link once, however many frames were appended to it. One goroutine at a time.
type batch struct {
	links   []*link
	origins []*origin // with calls that wait for a stream, and a stream that has become free
}

func (b *batch) serve(o *origin) {
	if !slices.Contains(b.origins, o) {
		b.origins = append(b.origins, o)
	}
}

// flush writes everything. It gives other goroutines one chance to append to the same links before: what they bring costs no call of its own.
// The caller holds no lock.
func (b *batch) flush() {
	for len(b.origins)+len(b.links) > 0 {
		for i := 0; i < len(b.origins); i++ {
			b.origins[i].serve(b)
			b.origins[i] = nil
		}
		b.origins = b.origins[:0]
		if len(b.links) > 0 {
			runtime.Gosched()
		}
		for i := 0; i < len(b.links); i++ {
			b.links[i].flush(b)
			b.links[i] = nil
		}
		b.links = b.links[:0]
	}
}
