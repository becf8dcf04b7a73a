package l7

import (
	"fmt"
	"strings"
)

// Retry says when a request may be sent to another endpoint. Whatever it says, nothing is sent twice unless that is
// safe: a request that reached an endpoint is repeated only if its method is idempotent (RFC 9110 section 9.2.2) and
// its body was not read, or is short enough to have been kept.
type Retry struct {
	On           RetryOn // 0: OnConnectFailure and OnReset
	Attempts     int     // endpoints tried at most, 1 to 8; 0: 3
	BudgetRatio  float64 // retries allowed per request; 0: 0.2; negative: none but MinPerSecond
	MinPerSecond int     // retries allowed every second whatever the traffic; 0: 10; negative: none
}

// RetryOn is a set of occasions for a retry, named as Envoy's retry_on names them.
type RetryOn uint8

// The occasions.
const (
	OnConnectFailure RetryOn = 1 << iota // no connection: nothing was sent, any method may try again
	OnReset                              // the connection broke before the response's head
	OnGatewayError                       // 502, 503 or 504
	On5xx                                // any 5xx
)

const (
	// defaultAttempts: with one endpoint in ten broken, three tries fail once in a thousand.
	defaultAttempts = 3
	// maxAttempts bounds Attempts: beyond it a budget would be spent on single requests.
	maxAttempts = 8
	// defaultBudgetRatio is Linkerd's and Finagle's 20 %: a service that fails gets at most a fifth more load.
	defaultBudgetRatio = 0.2
	// defaultMinPerSecond is Linkerd's and Finagle's: quiet services may retry, too.
	defaultMinPerSecond = 10
)

// ParseRetryOn reads a comma-separated list of occasions: connect-failure, reset, gateway-error, 5xx. As with Envoy, who
// names one of the last two means endpoints that give no answer at all, too.
func ParseRetryOn(list string) (RetryOn, error) {
	var on RetryOn
	for name := range strings.SplitSeq(list, ",") {
		switch strings.TrimSpace(name) {
		case "connect-failure":
			on |= OnConnectFailure
		case "reset":
			on |= OnReset
		case "gateway-error":
			on |= OnGatewayError | OnReset | OnConnectFailure
		case "5xx":
			on |= On5xx | OnReset | OnConnectFailure
		default:
			return 0, fmt.Errorf("retry on %q: want any of connect-failure, reset, gateway-error, 5xx", name)
		}
	}
	return on, nil
}

func (r Retry) withDefaults() Retry {
	if r.On == 0 {
		r.On = OnConnectFailure | OnReset
	}
	if r.BudgetRatio == 0 {
		r.BudgetRatio = defaultBudgetRatio
	}
	r.BudgetRatio = max(r.BudgetRatio, 0)
	r.MinPerSecond = max(orDefault(r.MinPerSecond, defaultMinPerSecond), 0)
	r.Attempts = min(max(orDefault(r.Attempts, defaultAttempts), 1), maxAttempts)
	return r
}

// allows tells whether an attempt that ended so is an occasion for another one, if that is safe.
func (r *Retry) allows(e ending, status int) bool {
	switch e {
	case connectFailed, connectTimedOut:
		return r.On&OnConnectFailure != 0
	case reset:
		return r.On&OnReset != 0
	case unprocessed:
		return r.On&(OnReset|OnConnectFailure) != 0
	case answered:
		gateway := status >= 502 && status <= 504
		return r.On&On5xx != 0 && status >= 500 && status <= 599 || r.On&OnGatewayError != 0 && gateway
	default:
		return false
	}
}

// isIdempotent tells whether a method may be repeated without asking (RFC 9110 section 9.2.2).
func isIdempotent(method string) bool {
	switch method {
	case "GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE", "":
		return true
	default:
		return false
	}
}
