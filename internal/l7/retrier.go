package l7

import (
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/reason"
)

// shared is what all requests of a server share: where endpoints come from, and what retries they may have.
type shared struct {
	upstreams atomic.Pointer[Upstreams]
	clock     func() time.Duration
	retry     Retry
	budget    *budget
	limit     int          // of pending; 0 or less: none
	perClient int          // of pending of one client; likewise
	pending   atomic.Int64 // requests without a response's head
}

// enter counts a request that waits for its response's head; false if its client, or all together, have too many.
func (s *shared) enter(c *client) bool {
	if over(int(c.account.pending.Add(1)), s.perClient) {
		c.account.pending.Add(-1)
		return false
	}
	if over(int(s.pending.Add(1)), s.limit) {
		s.pending.Add(-1)
		c.account.pending.Add(-1)
		return false
	}
	return true
}

// leave takes a request that entered off the count.
func (s *shared) leave(c *client) {
	s.pending.Add(-1)
	c.account.pending.Add(-1)
}

// retrier takes one request from endpoint to endpoint, until one answers or another attempt makes no sense. It knows no
// protocol: an engine asks for an endpoint, carries the bytes and says how the attempt ended. One goroutine at a time.
type retrier struct {
	*shared
	upstream *Upstream // for good, whatever Follow brings
	key      key       // every attempt has the same
	start    time.Duration
	expects  time.Duration // the time that a gRPC client gives it; 0: any
	ticket   pick.Ticket   // of the attempt under way, or the last one
	open     bool          // ticket was not closed
	answered bool          // ticket was answered
	attempts int
	tried    [maxAttempts]uint32
}

// timeLimit is how long the request may take: the server's limit, or the deadline that the client named if that is earlier; 0: for ever.
func (x *retrier) timeLimit(server time.Duration) time.Duration {
	if x.expects > 0 && (server <= 0 || x.expects < server) {
		return x.expects
	}
	return max(server, 0)
}

// isDeadlineNear tells a gRPC client or endpoint that cancels since the deadline is there from one that does for another
// reason: their deadline comes a little before or after ours, which began at another time.
func (x *retrier) isDeadlineNear() bool {
	return x.expects > 0 && x.clock()-x.start > x.expects*9/10
}

func (s *shared) begin(client netip.Addr) retrier {
	now := s.clock()
	s.budget.request(now)
	return retrier{shared: s, upstream: s.upstreams.Load().of(client), start: now}
}

// hash makes the request's key, or the TCP connection's if r is nil, if its upstream asks for one. Call it once, before next.
func (x *retrier) hash(from *client, r *request) {
	if !x.upstream.Hash.IsEmpty() {
		x.key = x.upstream.Hash.key(from, r)
	}
}

// next asks the pool for an endpoint that was not tried yet. The empty reason means that there is one.
func (x *retrier) next() reason.Code {
	ticket, verdict := x.pick(x.clock())
	switch verdict {
	case pick.Picked:
		x.adopt(ticket)
		return ""
	case pick.Shed:
		return reason.RequestShed
	default:
		return reason.NoEndpoints
	}
}

// pick asks for an endpoint that was not tried yet.
func (x *retrier) pick(now time.Duration) (pick.Ticket, pick.Verdict) {
	return x.upstream.Pool.Pick(now, pick.Request{Key: x.key.hash, HasKey: x.key.ok, Avoid: x.tried[:x.attempts]})
}

func (x *retrier) adopt(ticket pick.Ticket) {
	x.ticket, x.open, x.answered = ticket, true, false
	x.tried[x.attempts] = ticket.ID()
	x.attempts++
}

// mayRetry tells whether the policy sees an occasion for another attempt in how this one ended.
func (x *retrier) mayRetry(e ending, status int) bool {
	return x.attempts < x.retry.Attempts && x.retry.allows(e, status)
}

// again finds another endpoint after an attempt that ended so, if the budget allows it and there is one left. The attempt
// that failed ends with its outcome; if there is no other, it stays the current one. Ask mayRetry before, and
// whether nothing can happen twice.
func (x *retrier) again(e ending, status int) bool {
	now := x.clock()
	if !x.budget.withdraw(now) {
		return false
	}
	ticket, verdict := x.pick(now)
	if verdict != pick.Picked {
		return false
	}
	x.closeTicket(e.outcome(status))
	x.adopt(ticket)
	return true
}

// answer tells the pool how the attempt was answered, once: later calls of the same attempt do nothing.
func (x *retrier) answer(at time.Duration, o pick.Outcome) {
	if x.answered || !x.open {
		return
	}
	x.answered = true
	x.ticket.Answer(at, o)
}

// closeTicket ends the attempt with its outcome, and records an answer first if there was none.
func (x *retrier) closeTicket(o pick.Outcome) {
	if !x.open {
		return
	}
	now := x.clock()
	x.answer(now, o)
	x.open = false
	x.ticket.Close(now, o)
}

// connected passes on how long a new connection took; 0 means that a kept one was used.
func (x *retrier) connected(took time.Duration) {
	if took > 0 && x.open {
		x.ticket.Connected(took)
	}
}

// result fills in what the retrier knows.
func (x *retrier) result(r *Result) {
	r.Attempts = x.attempts
	r.Duration = x.clock() - x.start
	if x.attempts > 0 {
		r.Endpoint, r.Zone, r.Cost = x.ticket.Addr(), x.ticket.Zone(), x.ticket.Cost()
	}
}
