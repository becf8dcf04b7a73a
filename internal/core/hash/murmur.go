package hash

import "encoding/binary"

const (
	murmurMultiplier uint64 = 0xc6a4a7935bd1e995
	// murmurSeed is what std::hash uses, and so what other proxies hash with.
	murmurSeed uint64 = 0xc70f6907
)

// Murmur2 is the 64-bit MurmurHash2 of the bytes in the variant of libstdc++'s std::hash, with its seed.
//
// Source: libstdc++'s _Hash_bytes for words of 64 bits. It is MurmurHash64A of little-endian words.
func Murmur2(data []byte) uint64 {
	h := murmurSeed ^ uint64(len(data))*murmurMultiplier
	for ; len(data) >= 8; data = data[8:] {
		h ^= fold(binary.LittleEndian.Uint64(data)*murmurMultiplier) * murmurMultiplier
		h *= murmurMultiplier
	}
	if len(data) > 0 {
		var tail uint64
		for i, b := range data {
			tail |= uint64(b) << (8 * i)
		}
		h = (h ^ tail) * murmurMultiplier
	}
	return fold(fold(h) * murmurMultiplier)
}

// Murmur2String is Murmur2 of a text's bytes.
func Murmur2String(s string) uint64 { return Murmur2(bytesOf(s)) }

func fold(x uint64) uint64 { return x ^ x>>47 }
