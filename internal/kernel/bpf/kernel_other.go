//go:build !linux

package bpf

import "errors"

// Kernel is what runs in the kernel: here nothing, as it takes Linux.
type Kernel struct{ Missing []string }

var errNoLinux = errors.New("the kernel data plane needs Linux")

// Open fails.
func Open(Options) (*Kernel, error) { return nil, errNoLinux }

// Detach fails.
func Detach(string) (int, error) { return 0, errNoLinux }

// IsPinned is false.
func IsPinned(string) bool { return false }

// Capacity is none.
func (*Kernel) Capacity() Capacity { return Capacity{} }

// Beat does nothing.
func (*Kernel) Beat() {}

// Table panics: there is none.
func (*Kernel) Table(uint32) *Table { panic(errNoLinux) }

// Endpoint panics: there is none.
func (*Kernel) Endpoint(uint32) *Endpoint { panic(errNoLinux) }

// Slots are none.
func (*Kernel) Slots() []uint32 { return nil }

// Put fails.
func (*Kernel) Put(VIP, uint32) error { return errNoLinux }

// Remove fails.
func (*Kernel) Remove(VIP) error { return errNoLinux }

// Services are none.
func (*Kernel) Services() (map[VIP]uint32, error) { return nil, errNoLinux }

// Close does nothing.
func (*Kernel) Close() error { return nil }
