package pick

import "github.com/weir-lb/weir/internal/core/health"

// The rows of failures of an endpoint are one word, so that a good answer ends them all at once: 16 bits each for any
// failure, server errors, gateway errors and local errors. A local error is a gateway error too, a gateway error a server
// error, and each of them a failure: so of two rows the one that is for fewer kinds is never the longer one.
const (
	anyStreak uint = 16 * iota
	serverStreak
	gatewayStreak
	localStreak
)

// lengthen gives the rows after one more failure: longer by one where they are about it, else ended.
func lengthen(rows uint64, o Outcome) uint64 {
	next := longer(rows, anyStreak)
	if o == ServerError || o == GatewayError || o == LocalError {
		next |= longer(rows, serverStreak)
	}
	if o == GatewayError || o == LocalError {
		next |= longer(rows, gatewayStreak)
	}
	if o == LocalError {
		next |= longer(rows, localStreak)
	}
	return next
}

// longer gives the row at that place with one more, in its place.
func longer(rows uint64, at uint) uint64 {
	return min(rows>>at&health.MaxStreak+1, health.MaxStreak) << at
}

// streaks takes the rows apart.
func streaks(rows uint64) health.Streaks {
	row := func(at uint) int { return int(rows >> at & health.MaxStreak) } //nolint:gosec // 16 bits.
	return health.Streaks{
		Any: row(anyStreak), Server: row(serverStreak), Gateway: row(gatewayStreak), Local: row(localStreak),
	}
}
