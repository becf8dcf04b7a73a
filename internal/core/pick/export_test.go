package pick

import "unsafe"

// What the tests of memory layout need to see.
const (
	CacheLine      = 64
	EndpointSize   = unsafe.Sizeof(endpoint{})
	EndpointShared = unsafe.Offsetof(endpoint{}.target) // what requests write ends here
	ShardSize      = unsafe.Sizeof(shard{})
)

// Misaligned counts endpoints that share a cache line with another object.
func (p *Pool) Misaligned() int {
	n := 0
	for _, e := range p.endpoints {
		if uintptr(unsafe.Pointer(e))%CacheLine != 0 {
			n++
		}
	}
	return n
}

// Published gives the identity of the view that requests follow.
func (p *Pool) Published() any { return p.view.Load() }
