package pick

import "github.com/weir-lb/weir/internal/core/health"

// The rows of failures of an endpoint are one word, so that a good answer ends them all at once: 16 bits each for any
// failure, server errors, gateway errors and local errors. A local error is a gateway error too, a gateway error a server
// error, and each of them a failure: so of two rows the one that is for fewer kinds is never the longer one.
const streakBits = 16

// lengthen gives the rows after one more failure: longer by one where they are about it, else ended.
func lengthen(rows uint64, o Outcome) uint64 {
	kinds := uint(1)
	if o >= ServerError { // the others follow, each about one row more
		kinds += uint(o-ServerError) + 1
	}
	next := uint64(0)
	for at := uint(0); at < kinds*streakBits; at += streakBits {
		next |= min(rows>>at&health.MaxStreak+1, health.MaxStreak) << at
	}
	return next
}

// streaks takes the rows apart.
func streaks(rows uint64) health.Streaks {
	row := func(i uint) uint16 { return uint16(rows >> (i * streakBits)) } //nolint:gosec // 16 bits.
	return health.Streaks{Any: row(0), Server: row(1), Gateway: row(2), Local: row(3)}
}
