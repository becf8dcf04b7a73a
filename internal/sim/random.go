package sim

import "math/rand/v2"

// actor names a user of random numbers, so that the draws of one do not depend on the others.
type actor uint64

const (
	ofArrivals  actor = iota + 1 // a client's requests: when, and how much work; the same with every strategy
	ofPool                       // a client's choices
	ofPaths                      // a client's network and pauses
	ofDiscovery                  // when a client learns
)

// generator gives an actor's own generator.
func generator(seed uint64, a actor, index int) *rand.PCG {
	x := mix(seed ^ mix(uint64(a)))
	return rand.NewPCG(mix(x+golden*uint64(index)), mix(x^mix(uint64(index)+1))) //nolint:gosec // a small index.
}

// golden is 2^64 over the golden ratio, which splitmix64 counts by.
const golden = 0x9e3779b97f4a7c15

// mix scrambles a number (splitmix64's finisher): seeds that differ in a bit must not give generators that are alike.
func mix(x uint64) uint64 {
	x += golden
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// uniform makes a number in [0, 1) of 64 random bits.
func uniform(bits uint64) float64 { return float64(bits>>11) / (1 << 53) }
