package l7

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// isGRPC tells whether a request is a gRPC call. gRPC-Web is none: its status is in the body.
func isGRPC(f *fields) bool {
	kind, ok := strings.CutPrefix(f.first(fieldName{"Content-Type", "content-type"}), "application/grpc")
	return ok && (kind == "" || kind[0] == '+' || kind[0] == ';')
}

// unaryTail is how long after the head the status of a unary call may take, which servers send in one go with it; a
// call that takes longer counts as a stream. Twenty times a round trip between zones is ample, and soon enough for a
// stream to stop looking like an endpoint that does not answer.
const unaryTail = 20 * time.Millisecond

// parseGRPCTimeout reads a grpc-timeout field: up to 8 digits and a unit. 0 means none, or one that makes no sense.
func parseGRPCTimeout(field string) time.Duration {
	const mostDigits = 8
	if len(field) < 2 || len(field) > mostDigits+1 {
		return 0
	}
	number, err := strconv.ParseUint(field[:len(field)-1], 10, 32)
	if err != nil {
		return 0
	}
	var unit time.Duration
	switch field[len(field)-1] {
	case 'H':
		unit = time.Hour
	case 'M':
		unit = time.Minute
	case 'S':
		unit = time.Second
	case 'm':
		unit = time.Millisecond
	case 'u':
		unit = time.Microsecond
	case 'n':
		unit = time.Nanosecond
	default:
		return 0
	}
	const longest = 10_000 * time.Hour // far above any deadline, far below what overflows
	if number > uint64(longest/unit) {
		return longest
	}
	return time.Duration(number) * unit //nolint:gosec // bounded above
}

// encodeGRPCMessage percent-encodes what a grpc-message may not hold.
func encodeGRPCMessage(text string) string {
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; c >= ' ' && c <= '~' && c != '%' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
