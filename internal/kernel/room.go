package kernel

import (
	"errors"
	"time"
)

// errFull says that a map has no room left.
var errFull = errors.New("the kernel's maps are full: a new start of the agent makes larger ones")

// room gives out the elements of an array, in ranges of powers of two. What was given back is used again for the same size.
type room struct {
	size, next uint32
	free       map[uint32][]uint32 // by length of range
}

func newRoom(size uint32) *room { return &room{size: size, free: make(map[uint32][]uint32)} }

// take gives the first element of a free range.
func (r *room) take(length uint32) (uint32, error) {
	if free := r.free[length]; len(free) > 0 {
		at := free[len(free)-1]
		r.free[length] = free[:len(free)-1]
		return at, nil
	}
	if r.size-r.next < length {
		return 0, errFull
	}
	at := r.next
	r.next += length
	return at, nil
}

func (r *room) give(at, length uint32) { r.free[length] = append(r.free[length], at) }

// skip has the room begin after an element that is in use.
func (r *room) skip(at uint32) { r.next = max(r.next, min(at+1, r.size)) }

// The time for which nothing that a program may still read is used again: programs run for microseconds, a UDP flow outlasts
// its endpoint by as long as its client waits for an answer.
const (
	quiet    = 5 * time.Second
	quietUDP = time.Minute
)
