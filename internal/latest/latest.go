// Package latest holds the newest value of something and signals when it is replaced.
//
// It is the one shared state between the source of changes and their consumers. Values in between may be
// missed: a reader always finds the newest, never a queue.
package latest

import "sync"

// Value holds the newest T. Use New. It is safe for concurrent use.
type Value[T any] struct {
	mu      sync.Mutex
	value   T
	changed chan struct{}
}

// New makes a Value that holds first.
func New[T any](first T) *Value[T] {
	return &Value[T]{value: first, changed: make(chan struct{})}
}

// Store replaces the value and wakes all that wait on the channel of an earlier Load.
func (v *Value[T]) Store(next T) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.value = next
	close(v.changed)
	v.changed = make(chan struct{})
}

// Load gives the value and a channel that closes at the next Store.
func (v *Value[T]) Load() (T, <-chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.value, v.changed
}
