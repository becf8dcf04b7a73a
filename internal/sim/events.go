package sim

import (
	"math/bits"
	"time"
)

// kind says what an event is about, and by that what its subject and its tag are.
type kind uint8

const (
	evSend      kind = iota // client: a request is due
	evArrive                // exchange: at the endpoint
	evServed                // exchange: a worker is done with it
	evHeld                  // exchange: a poll has waited for long enough
	evHear                  // exchange: what became of it is at the client
	evStreamEnd             // exchange: a stream is over
	evGiveUp                // exchange: the client's patience is over
	evRetry                 // exchange: the pause before a retry is over
	evTick                  // client: its pool steps
	evLearn                 // client, number of what it learns
	evDrain                 // client, index of the step: it hears of a drain
	evStep                  // index of the step
	evFleet                 // tag: the fleetEvent with the fleet
	evCheck                 // endpoint, number of its state: health checks have noticed
	evSecond                // a second of the run is over
)

// event is something at a time. Events of one time come in the order in which they were made.
type event struct {
	at    time.Duration
	order uint64 // number of the event, then 8 bits of kind
	about uint32
	tag   uint32
}

func (e *event) kind() kind { return kind(e.order) } //nolint:gosec // the lower 8 bits on purpose.

func (e *event) before(o *event) bool {
	return e.at < o.at || e.at == o.at && e.order < o.order
}

// line is a queue of events all of which come the same time after they are made: it is in order without sorting.
type line struct {
	ring       []event // a power of two
	head, tail uint64
}

func (l *line) push(e event) {
	if l.tail-l.head == uint64(len(l.ring)) {
		l.grow()
	}
	l.ring[l.tail&uint64(len(l.ring)-1)] = e
	l.tail++
}

func (l *line) grow() {
	const first = 64
	larger := make([]event, max(first, 2*len(l.ring)))
	for i := l.head; i != l.tail; i++ {
		larger[i&uint64(len(larger)-1)] = l.ring[i&uint64(len(l.ring)-1)]
	}
	l.ring = larger
}

// agenda holds all events to come: a calendar of the near future, a heap of what comes after it, and lines beside it.
//
// The calendar (R. Brown 1988) is a ring of short spans of time, each with the list of its events in order. There are
// about as many spans in a second as events, so that a list has one or two of them, and at usual rates few events come
// after one turn of the ring. Where requests come so fast that they take longer than a turn, most wait in the heap
// first, which is no slower than a heap alone. Events are made at the present or after it, never in a span that is over.
type agenda struct {
	width uint // of a span: 2^width ns
	spans [spans]span
	busy  [spans / 64]uint64 // a bit for each span that has events
	base  uint64             // number of the span of the last event that was taken; one turn from there on is the calendar
	nodes []node
	spare uint32 // a node that is free, plus 1; 0: none

	far   []event // a heap: what comes later than the calendar
	lines [lines]line
	first [lines]event // the head of each line; at never if it is empty
	ahead int          // the line whose head comes first
	made  uint64       // events so far
}

// spans in a turn. 64 KiB of them stay in a processor's cache.
const spans = 1 << 13

// span is a list of nodes: their places plus 1; 0: none.
type span struct{ first, last uint32 }

// node is an event in a span's list.
type node struct {
	event

	next uint32
}

// never is later than everything.
const never = time.Duration(1<<63 - 1)

// newAgenda makes an agenda for about so many events in a second.
func newAgenda(perSecond float64) *agenda {
	const narrowest, widest = 10, 24 // a turn is 8 ms at the least and 2 minutes at the most
	a := &agenda{width: narrowest}
	for a.width < widest && float64(uint64(2)<<a.width)*perSecond <= float64(time.Second) {
		a.width++
	}
	for i := range a.first {
		a.first[i].at = never
	}
	return a
}

// add puts an event where it belongs.
func (a *agenda) add(at time.Duration, k kind, about, tag uint32) {
	a.made++
	e := event{at: at, order: a.made<<8 | uint64(k), about: about, tag: tag}
	if a.number(at) < a.base+spans {
		a.insert(e)
		return
	}
	a.far = append(a.far, e)
	i := len(a.far) - 1
	for i > 0 {
		parent := (i - 1) / 4
		if !e.before(&a.far[parent]) {
			break
		}
		a.far[i] = a.far[parent]
		i = parent
	}
	a.far[i] = e
}

// append puts an event at the end of a line.
func (a *agenda) append(number int, at time.Duration, e event) {
	a.made++
	e.at, e.order = at, a.made<<8|e.order
	if a.first[number].at == never {
		a.lead(number, e)
		return
	}
	a.lines[number].push(e)
}

// number gives the span of a time.
func (a *agenda) number(at time.Duration) uint64 { return uint64(at) >> a.width } //nolint:gosec // not negative.

// insert puts an event into its span, after those of the same time: they were made before it.
func (a *agenda) insert(e event) {
	i := a.spare
	if i == 0 {
		a.nodes = append(a.nodes, node{})
		i = uint32(len(a.nodes)) //nolint:gosec // a run has far fewer at a time.
	} else {
		a.spare = a.nodes[i-1].next
	}
	n := &a.nodes[i-1]
	n.event, n.next = e, 0
	at := a.number(e.at) % spans
	s := &a.spans[at]
	switch {
	case s.first == 0:
		s.first, s.last = i, i
		a.busy[at/64] |= 1 << (at % 64)
	case a.nodes[s.last-1].at <= e.at:
		a.nodes[s.last-1].next, s.last = i, i
	default:
		before := &s.first
		for a.nodes[*before-1].at <= e.at {
			before = &a.nodes[*before-1].next
		}
		*before, n.next = i, *before
	}
}

// soonest gives the place of the first span that has events; false: none has.
func (a *agenda) soonest() (uint64, bool) {
	from := a.base % spans
	word := from / 64
	set := a.busy[word] >> (from % 64) << (from % 64)
	for range len(a.busy) + 1 { // the last is the first again, as its low bits are a turn later
		if set != 0 {
			return word*64 + uint64(bits.TrailingZeros64(set)), true //nolint:gosec // not negative.
		}
		word = (word + 1) % uint64(len(a.busy))
		set = a.busy[word]
	}
	return 0, false
}

// next takes the first event that comes until then; false: there is none.
func (a *agenda) next(until time.Duration) (event, bool) {
	least := &a.first[a.ahead]
	waits := true // in a line
	at, near := a.soonest()
	if near {
		if e := &a.nodes[a.spans[at].first-1].event; e.before(least) {
			least, waits = e, false
		}
	} else if len(a.far) > 0 && a.far[0].before(least) {
		least, waits = &a.far[0], false
	}
	e := *least
	switch {
	case e.at > until || e.at == never:
		return event{}, false
	case waits:
		a.advance(a.ahead)
		return e, true
	case near:
		a.remove(at)
	default:
		a.pop()
	}
	if number := a.number(e.at); number != a.base {
		a.base = number
		for len(a.far) > 0 && a.number(a.far[0].at) < a.base+spans {
			a.insert(a.pop())
		}
	}
	return e, true
}

// remove takes the first event out of the span at a place.
func (a *agenda) remove(at uint64) {
	s := &a.spans[at]
	i := s.first
	n := &a.nodes[i-1]
	s.first, n.next, a.spare = n.next, a.spare, i
	if s.first == 0 {
		a.busy[at/64] &^= 1 << (at % 64)
	}
}

// pop takes the first of what is far off.
func (a *agenda) pop() event {
	first := a.far[0]
	last := len(a.far) - 1
	e := a.far[last]
	h := a.far[:last]
	a.far = h
	i := 0
	for {
		child := 4*i + 1
		if child >= len(h) {
			break
		}
		least := child
		for c := child + 1; c < min(child+4, len(h)); c++ {
			if h[c].before(&h[least]) {
				least = c
			}
		}
		if !h[least].before(&e) {
			break
		}
		h[i] = h[least]
		i = least
	}
	if last > 0 {
		h[i] = e
	}
	return first
}

// advance makes the next event of a line its first.
func (a *agenda) advance(number int) {
	l := &a.lines[number]
	if l.head == l.tail {
		a.lead(number, event{at: never})
		return
	}
	l.head++
	a.lead(number, l.ring[(l.head-1)&uint64(len(l.ring)-1)])
}

// lead puts an event at the head of a line, and finds the line that is ahead.
func (a *agenda) lead(number int, e event) {
	a.first[number] = e
	for i := range a.first {
		if a.first[i].before(&a.first[a.ahead]) {
			a.ahead = i
		}
	}
}
