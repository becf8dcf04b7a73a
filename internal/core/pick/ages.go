package pick

import (
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/weir-lb/weir/internal/core/balance"
)

const (
	// slots of an age set: with a horizon of 16 baselines each is a quarter to a half of a baseline wide.
	slots = 64
	// minSlotWidth: 64 slots of 6 ms or more outlast three ticks, so that a slot is rarely used again before a tick saw
	// it, however short the baseline.
	minSlotWidth = 6 * time.Millisecond
	// maxShards bounds the memory of an age set, at 576 B each.
	maxShards = 16
)

// ageSet counts the requests of one group that wait for an answer, by the time at which they started, so that their ages
// can be read without a list of them. A request enters the slot of its start and leaves it when it is answered. One that
// is still there when the slot's time is up is overdue: it is counted once, and its answer finds another tag in the slot
// and so knows that it came too late.
//
// A slot is one word: a tag (the number of the slot since the origin, 32 bits) over a count. Every change compares and
// swaps the whole word, so a request leaves the age set exactly once whatever the order of events; a start that meets
// the slot's previous use before a tick did takes it over.
//
// Safe for concurrent use.
type ageSet struct {
	shift  uint // width of a slot: 2^shift ns
	shards []shard
}

// shard keeps processors off each other's cache lines. A request enters and leaves the same one.
type shard struct {
	slots   [slots]atomic.Uint64
	overdue atomic.Uint64 // counted by starts that took a slot over
	_       [56]byte      // the rest of a cache line of 64 B
}

// newAgeSet makes an age set that keeps requests apart for at least the horizon. shards is a power of two.
func newAgeSet(horizon time.Duration, shards int) *ageSet {
	width := max(minSlotWidth, (horizon+slots-1)/slots)
	return &ageSet{shift: uint(bits.Len64(uint64(width - 1))), shards: make([]shard, shards)}
}

// covers gives the longest time for which starts are kept apart.
func (r *ageSet) covers() time.Duration { return slots << r.shift }

// suits tells whether the age set is long enough for the horizon and not more than four times too long (a slot width is
// rounded up to a power of two, so that twice too long is common).
func (r *ageSet) suits(horizon time.Duration) bool {
	return horizon <= r.covers() && (r.covers() <= 4*horizon || r.covers() < 2*slots*minSlotWidth)
}

// enter counts a request that starts now.
func (r *ageSet) enter(now time.Duration, random uint64) (slot *atomic.Uint64, tag uint32) {
	number := uint64(now) >> r.shift
	// The number of shards is a power of two, so the mask is never out of range; the compiler cannot know.
	s := &r.shards[random&uint64(len(r.shards)-1)]
	slot, tag = &s.slots[number%slots], uint32(number) //nolint:gosec // cut to 32 bits on purpose: 2^32 slots are a year.
	for {
		word := slot.Load()
		there, count := uint32(word>>32), uint32(word)
		switch {
		case there == tag:
			if slot.CompareAndSwap(word, word+1) {
				return slot, tag
			}
		case count > 0 && int32(there-tag) > 0: // our clock was read long ago: count as a little younger
			tag = there
		case slot.CompareAndSwap(word, uint64(tag)<<32|1):
			if count > 0 {
				s.overdue.Add(uint64(count))
			}
			return slot, tag
		}
	}
}

// arrival tells how an answer finds the age set.
type arrival uint8

const (
	inTime  arrival = iota
	overdue         // the request has been counted as failed already
)

// leave takes the request out of the age set, unless it was overdue.
func leave(slot *atomic.Uint64, tag uint32) arrival {
	for {
		word := slot.Load()
		if uint32(word>>32) != tag || uint32(word) == 0 {
			return overdue
		}
		if slot.CompareAndSwap(word, word-1) {
			return inTime
		}
	}
}

// ageLimits says from when on a request counts as waiting, and until when.
type ageLimits struct {
	now      time.Duration
	lead     time.Duration // of every age: how much longer connecting takes than at home
	baseline time.Duration // 0: not known
	limit    float64       // the largest age of one request, in baselines
	horizon  time.Duration // older ones are overdue
}

// read sums up the age set and takes out what is overdue.
func (r *ageSet) read(a ageLimits) balance.GroupCounters {
	var sum balance.GroupCounters
	width := time.Duration(1) << r.shift
	for i := range r.shards {
		s := &r.shards[i]
		for j := range s.slots {
			word := s.slots[j].Load()
			if uint32(word) == 0 {
				continue
			}
			oldest := a.now - r.start(word, a.now) - a.lead
			youngest := max(0, oldest-width) // if it started at the end of the slot, or just now
			if youngest >= a.horizon {
				sum.Overdue += expire(&s.slots[j], word)
				continue
			}
			count := int64(uint32(word))
			sum.Unanswered += count
			if middle := (oldest + youngest) / 2; a.baseline > 0 && middle >= a.baseline {
				sum.Waiting += count
				sum.Aged += float64(count) * min(middle.Seconds()/a.baseline.Seconds(), a.limit)
			}
		}
	}
	return sum
}

// expire empties a slot and gives how many requests it held, unless a start has taken it over meanwhile.
func expire(slot *atomic.Uint64, word uint64) int64 {
	for tag := word >> 32; word>>32 == tag; word = slot.Load() {
		if slot.CompareAndSwap(word, 0) {
			return int64(uint32(word))
		}
	}
	return 0
}

// takenOver gives how many requests starts have found overdue since the age set was made.
func (r *ageSet) takenOver() int64 {
	var n uint64
	for i := range r.shards {
		n += r.shards[i].overdue.Load()
	}
	return int64(n) //nolint:gosec // a count of requests.
}

// start gives the time at which the slot of that word begins, from the lower half of its number.
func (r *ageSet) start(word uint64, now time.Duration) time.Duration {
	number := uint64(now) >> r.shift
	ago := int64(int32(uint32(number) - uint32(word>>32)))
	return time.Duration(int64(number)-ago) << r.shift
}

// history is the age sets of a group: the one in use, and those before until they are empty. One goroutine at a time.
type history struct {
	sets   []*ageSet // the first is in use
	counts int64     // what starts had taken over at the last reading
	empty  bool      // no request was in the only set then, so that without a start none is in it now
}

// fit gives the age set for starts from now on: a new one if the horizon has changed too much for the old.
func (h *history) fit(horizon time.Duration, shards int) *ageSet {
	if len(h.sets) == 0 || !h.sets[0].suits(horizon) {
		h.sets = append([]*ageSet{newAgeSet(horizon, shards)}, h.sets...)
		h.empty = false
	}
	return h.sets[0]
}

// read sums up all age sets and forgets old ones that are empty. A request that enters a forgotten one, because it still
// holds an old view, is not counted by age; the rest of its life is counted as usual.
func (h *history) read(a ageLimits) balance.GroupCounters {
	var sum balance.GroupCounters
	var all, kept int64
	sets := h.sets[:0]
	for i, r := range h.sets {
		here := r.read(a)
		n := r.takenOver()
		all += n
		sum.Unanswered += here.Unanswered
		sum.Waiting += here.Waiting
		sum.Aged += here.Aged
		sum.Overdue += here.Overdue
		if i == 0 || here.Unanswered > 0 {
			sets = append(sets, r)
			kept += n
		}
	}
	clear(h.sets[len(sets):])
	h.sets = sets
	sum.Overdue += all - h.counts
	h.counts = kept
	h.empty = sum.Unanswered == 0 && len(h.sets) == 1
	return sum
}
