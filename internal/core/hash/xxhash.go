package hash

import (
	"encoding/binary"
	"math/bits"
	"unsafe"
)

// The five primes of XXH64.
const (
	prime1 uint64 = 11400714785074694791
	prime2 uint64 = 14029467366897019727
	prime3 uint64 = 1609587929392839161
	prime4 uint64 = 9650029242287828579
	prime5 uint64 = 2870177450012600261
)

// XXH64 hashes bytes. Requests and endpoints are hashed with seed 0.
//
// Source: the xxHash fast digest algorithm, version 0.1.1, section "XXH64 algorithm description".
func XXH64(seed uint64, data []byte) uint64 {
	n := uint64(len(data))
	var h uint64
	if n >= 32 {
		h, data = stripes(data, seed)
	} else {
		h = seed + prime5
	}
	h += n
	for ; len(data) >= 8; data = data[8:] {
		h ^= mixed(0, binary.LittleEndian.Uint64(data))
		h = bits.RotateLeft64(h, 27)*prime1 + prime4
	}
	if len(data) >= 4 {
		h ^= uint64(binary.LittleEndian.Uint32(data)) * prime1
		h = bits.RotateLeft64(h, 23)*prime2 + prime3
		data = data[4:]
	}
	for _, b := range data {
		h ^= uint64(b) * prime5
		h = bits.RotateLeft64(h, 11) * prime1
	}
	h = (h ^ h>>33) * prime2
	h = (h ^ h>>29) * prime3
	return h ^ h>>32
}

// XXH64String is XXH64 of a text's bytes.
func XXH64String(seed uint64, s string) uint64 { return XXH64(seed, bytesOf(s)) }

// stripes takes all whole stripes of 32 bytes, in four lanes, and gives what they come to and the bytes that are left.
func stripes(data []byte, seed uint64) (h uint64, rest []byte) {
	a, b, c, d := seed+prime1+prime2, seed+prime2, seed, seed-prime1
	for ; len(data) >= 32; data = data[32:] {
		a = mixed(a, binary.LittleEndian.Uint64(data))
		b = mixed(b, binary.LittleEndian.Uint64(data[8:]))
		c = mixed(c, binary.LittleEndian.Uint64(data[16:]))
		d = mixed(d, binary.LittleEndian.Uint64(data[24:]))
	}
	h = bits.RotateLeft64(a, 1) + bits.RotateLeft64(b, 7) + bits.RotateLeft64(c, 12) + bits.RotateLeft64(d, 18)
	for _, lane := range [...]uint64{a, b, c, d} {
		h = (h^mixed(0, lane))*prime1 + prime4
	}
	return h, data
}

// mixed is one lane after a word.
func mixed(lane, word uint64) uint64 { return bits.RotateLeft64(lane+word*prime2, 31) * prime1 }

// bytesOf shows a text as bytes, which must not be written to or kept.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
