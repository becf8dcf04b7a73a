package l7

import (
	"sync/atomic"
	"time"
)

// budget allows retries for a share of the requests, and a few each second in any case. It is safe for concurrent use
// and takes no lock.
//
// It is a purse: every request puts in a fraction, every retry takes out one. Once a second the purse loses a tenth, so
// that a quiet hour does not pay for a storm, and is topped up to the minimum.
//
// Source: the retry budget of Finagle and Linkerd, whose deposits live for 10 s.
type budget struct {
	deposit int64 // of one request, in thousandths of a retry
	floor   int64 // what the purse holds at the start of a second at least, in thousandths
	purse   atomic.Int64
	second  atomic.Int64 // of the last top-up
}

const (
	budgetUnit = 1_000 // thousandths make a ratio exact enough
	// budgetKeep is what is left of the purse after a second, of 10: a mean life of 10 s.
	budgetKeep = 9
	// budgetMemory is after how many seconds nothing of a purse is worth keeping (0.9^60 = 0.2 %).
	budgetMemory = 60
)

func newBudget(r Retry) *budget {
	b := &budget{
		deposit: int64(r.BudgetRatio * budgetUnit),
		floor:   int64(r.MinPerSecond) * budgetUnit,
	}
	b.purse.Store(b.floor)
	return b
}

// request puts in the share of one request.
func (b *budget) request(now time.Duration) {
	b.roll(now)
	b.purse.Add(b.deposit)
}

// withdraw takes out one retry, if there is one.
func (b *budget) withdraw(now time.Duration) bool {
	b.roll(now)
	for {
		have := b.purse.Load()
		if have < budgetUnit {
			return false
		}
		if b.purse.CompareAndSwap(have, have-budgetUnit) {
			return true
		}
	}
}

// roll lets time pass. The one caller that moves the second does the work.
func (b *budget) roll(now time.Duration) {
	second := int64(now / time.Second)
	last := b.second.Load()
	if second <= last || !b.second.CompareAndSwap(last, second) {
		return
	}
	for {
		have := b.purse.Load()
		if b.purse.CompareAndSwap(have, b.aged(have, second-last)) {
			return
		}
	}
}

func (b *budget) aged(purse, seconds int64) int64 {
	if seconds > budgetMemory {
		purse = 0
	}
	for range min(seconds, budgetMemory) {
		purse = purse * budgetKeep / 10
	}
	return max(purse, b.floor)
}
