package hash_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/weir-lb/weir/internal/core/hash"
)

// vector is a text and its hashes; zero where none is published.
type vector struct {
	text                 string
	seed0, seed1, murmur uint64
}

// vectors are known hashes: those of foo, bar, both and lyft are Envoy's own.
func vectors() []vector {
	return []vector{
		{"", 17241709254077376921, 15397730242686860875, 6142509188972423790},
		{"a", 15154266338359012955, 16051599287423682246, 4993892634952068459},
		{"abc", 4952883123889572249, 13738734796240226568, 3663726644998027833},
		{"foo", 3728699739546630719, 0, 9631199822919835226},
		{"bar", 5234164152756840025, 0, 11474628671133349555},
		{"foo\nbar", 8917841378505826757, 0, 16306510975912980159},
		{"lyft", 4400747396090729504, 0, 12847078931730529320},
		{"127.0.0.1:90", 13180206916909469397, 1521841302816948213, 6214938230638064747},
		{"127.0.0.1:90_0", 16117243373044804889, 15580919109578915572, 5656417760668758976},
		{"alice", 8332761332120969289, 0, 0},
		{"bob", 10558559838520660027, 0, 0},
		{"session-1", 12724926790740281283, 0, 0},
		{"10.0.0.1", 17084065887361098711, 0, 0},
		{strings.Repeat("x", 38), 2925655412735244775, 8954779562671909408, 6355804023725721447},
	}
}

func TestPublishedHashesAreReproduced(t *testing.T) {
	check := func(name, text string, got, want uint64) {
		t.Helper()
		if want != 0 && got != want {
			t.Errorf("%s of %q is %d, want %d", name, text, got, want)
		}
	}
	for _, v := range vectors() {
		check("XXH64", v.text, hash.XXH64(0, []byte(v.text)), v.seed0)
		check("XXH64String", v.text, hash.XXH64String(0, v.text), v.seed0)
		check("XXH64 with seed 1", v.text, hash.XXH64(1, []byte(v.text)), v.seed1)
		check("Murmur2", v.text, hash.Murmur2([]byte(v.text)), v.murmur)
		check("Murmur2String", v.text, hash.Murmur2String(v.text), v.murmur)
	}
}

func TestSeedsMayBeChained(t *testing.T) {
	if got := hash.XXH64String(hash.XXH64String(0, "foo"), "bar"); got != 17745830980996999794 {
		t.Errorf("foo, then bar, is %d, want 17745830980996999794", got)
	}
}

func TestHashingAllocatesNothing(t *testing.T) {
	text, sum := strings.Repeat("some text ", 20), uint64(0)
	data := []byte(text)
	if n := testing.AllocsPerRun(100, func() {
		sum += hash.XXH64String(sum, text) + hash.Murmur2String(text) + hash.XXH64(0, data) + hash.Murmur2(data)
	}); n != 0 {
		t.Errorf("%v allocations, want 0 (sum %d)", n, sum)
	}
}

// slowXXH64 is the dumb twin: byte by byte, with nothing shared between the steps.
func slowXXH64(data []byte, seed uint64) uint64 {
	const p1, p2, p3, p4, p5 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
	rotate := func(x uint64, by int) uint64 { return x<<by | x>>(64-by) }
	number := func(at, size int) (x uint64) {
		for i := size - 1; i >= 0; i-- {
			x = x*256 + uint64(data[at+i])
		}
		return x
	}
	round := func(lane, word uint64) uint64 {
		word *= p2
		return rotate(lane+word, 31) * p1
	}
	at, h := 0, seed+p5
	if len(data) >= 32 {
		lanes := []uint64{seed, seed, seed, seed}
		for i, plus := range [][]uint64{{p1, p2}, {p2}, {}, {^uint64(p1) + 1}} {
			for _, x := range plus {
				lanes[i] += x
			}
		}
		for ; at+32 <= len(data); at += 32 {
			for i := range lanes {
				lanes[i] = round(lanes[i], number(at+8*i, 8))
			}
		}
		h = rotate(lanes[0], 1) + rotate(lanes[1], 7) + rotate(lanes[2], 12) + rotate(lanes[3], 18)
		for _, lane := range lanes {
			h ^= round(0, lane)
			h = h*p1 + p4
		}
	}
	h += uint64(len(data))
	for at+8 <= len(data) {
		h = rotate(h^round(0, number(at, 8)), 27)*p1 + p4
		at += 8
	}
	if at+4 <= len(data) {
		word := number(at, 4)
		h = rotate(h^word*p1, 23)*p2 + p3
		at += 4
	}
	for ; at < len(data); at++ {
		word := uint64(data[at])
		h = rotate(h^word*p5, 11) * p1
	}
	h ^= h >> 33
	h *= p2
	h ^= h >> 29
	h *= p3
	return h ^ h>>32
}

// slowMurmur2 is the dumb twin: the last word is filled up with nothing instead of being a special case.
func slowMurmur2(data []byte) uint64 {
	const m = 0xc6a4a7935bd1e995
	h := uint64(0xc70f6907) ^ uint64(len(data))*m
	for at := 0; at < len(data); at += 8 {
		var word uint64
		for i := at; i < min(at+8, len(data)); i++ {
			word += uint64(data[i]) << (8 * (i - at))
		}
		if at+8 <= len(data) {
			word *= m
			word ^= word >> 47
			word *= m
		}
		h ^= word
		h *= m
	}
	h ^= h >> 47
	h *= m
	return h ^ h>>47
}

func FuzzHashesAgreeWithTheirTwins(f *testing.F) {
	for _, v := range vectors() {
		f.Add([]byte(v.text), uint64(1))
	}
	f.Add(bytes.Repeat([]byte{0xff, 0, 0x80}, 50), ^uint64(0))
	f.Fuzz(func(t *testing.T, data []byte, seed uint64) {
		before := bytes.Clone(data)
		if got, want := hash.XXH64(seed, data), slowXXH64(data, seed); got != want {
			t.Errorf("XXH64(%q, %d) = %d, the twin says %d", data, seed, got, want)
		}
		if got, want := hash.XXH64(0, data), xxhash.Sum64(data); got != want {
			t.Errorf("XXH64(%q, 0) = %d, the other library says %d", data, got, want)
		}
		other := xxhash.NewWithSeed(seed)
		if _, err := other.Write(data); err != nil {
			t.Fatal(err)
		}
		if got, want := hash.XXH64String(seed, string(data)), other.Sum64(); got != want {
			t.Errorf("XXH64String(%q, %d) = %d, the other library says %d", data, seed, got, want)
		}
		if got, want := hash.Murmur2(data), slowMurmur2(data); got != want {
			t.Errorf("Murmur2(%q) = %d, the twin says %d", data, got, want)
		}
		if got, want := hash.Murmur2String(string(data)), hash.Murmur2(data); got != want {
			t.Errorf("Murmur2String(%q) = %d, of bytes %d", data, got, want)
		}
		if !bytes.Equal(before, data) {
			t.Error("hashing wrote to its input")
		}
	})
}

func TestHashesOfEveryLengthAgreeWithTheirTwins(t *testing.T) {
	data := make([]byte, 200)
	for i := range data {
		data[i] = byte(i*37 + 11)
	}
	for n := range len(data) {
		if got, want := hash.XXH64(uint64(n), data[:n]), slowXXH64(data[:n], uint64(n)); got != want {
			t.Errorf("XXH64 of %d bytes is %d, the twin says %d", n, got, want)
		}
		if got, want := hash.Murmur2(data[:n]), slowMurmur2(data[:n]); got != want {
			t.Errorf("Murmur2 of %d bytes is %d, the twin says %d", n, got, want)
		}
	}
}

func BenchmarkHash(b *testing.B) {
	for _, n := range []int{8, 20, 40, 200} {
		text := strings.Repeat("x", n)
		b.Run(fmt.Sprintf("XXH64/bytes=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				hash.XXH64String(0, text)
			}
		})
		b.Run(fmt.Sprintf("Murmur2/bytes=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				hash.Murmur2String(text)
			}
		})
	}
}
