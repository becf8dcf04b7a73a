package status

import (
	"context"
	"errors"
	"net"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// kind is what went wrong with a write, as far as it decides what to do about it. It is a metric label and part of what conditions and
// events say.
type kind string

// The kinds. A write that succeeded has kind none.
const (
	none        kind = ""
	stale       kind = "Stale"     // 409 and 404: another writer was first, read again
	forbidden   kind = "Forbidden" // 401 and 403
	invalid     kind = "Invalid"   // 400, 413 and 422: it will be refused again
	throttled   kind = "Throttled" // 429
	timedOut    kind = "TimedOut"  // 504, and no answer in time
	unavailable kind = "Unavailable"
	other       kind = "Other"
)

// kindOf sorts an error of a write to the API server. Of several joined errors one counts that will come again.
func kindOf(err error) kind {
	var several interface{ Unwrap() []error }
	if errors.As(err, &several) {
		worst := none
		for _, e := range several.Unwrap() {
			if k := kindOf(e); worst == none || k.lasts() && !worst.lasts() || worst == stale {
				worst = k
			}
		}
		return worst
	}
	switch {
	case err == nil:
		return none
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return stale
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return forbidden
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		return invalid
	case apierrors.IsTooManyRequests(err):
		return throttled
	case isTimeout(err):
		return timedOut
	case apierrors.IsInternalError(err), apierrors.IsServiceUnavailable(err), apierrors.IsUnexpectedServerError(err),
		isNetwork(err):
		return unavailable
	default:
		return other
	}
}

func isTimeout(err error) bool {
	var network net.Error
	return apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || errors.Is(err, context.DeadlineExceeded) ||
		errors.As(err, &network) && network.Timeout()
}

func isNetwork(err error) bool {
	var network net.Error
	return errors.As(err, &network)
}

// lasts tells whether retrying will not help until the cause is removed.
func (k kind) lasts() bool { return k == forbidden || k == invalid || k == other }

// label is how a metric spells the kind.
func (k kind) label() string {
	switch k {
	case none:
		return "success"
	case stale:
		return "stale"
	case forbidden:
		return "forbidden"
	case invalid:
		return "invalid"
	case throttled:
		return "throttled"
	case timedOut:
		return "timeout"
	case unavailable:
		return "unavailable"
	default:
		return "error"
	}
}
