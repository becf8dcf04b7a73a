package sim

import "time"

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
	evTick                  // client: its pool's turn
	evLearn                 // client, number of what it learns
	evDrain                 // client, index of the step: it hears of a drain
	evStep                  // index of the step
	evFleet                 // tag: the appointment with the fleet
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

// agenda holds all events to come: a heap of four children a node, and lines beside it.
type agenda struct {
	heap  []event
	hole  bool // the top of the heap is gone and nothing has taken its place yet
	lines [lines]line
	first [lines]event // the head of each line; at never if it is empty
	made  uint64       // events so far
}

// never is later than everything.
const never = time.Duration(1<<63 - 1)

func newAgenda() agenda {
	a := agenda{}
	for i := range a.first {
		a.first[i].at = never
	}
	return a
}

func (a *agenda) event(at time.Duration, k kind, about, tag uint32) event {
	a.made++
	return event{at: at, order: a.made<<8 | uint64(k), about: about, tag: tag}
}

// add puts an event where it belongs.
func (a *agenda) add(at time.Duration, k kind, about, tag uint32) {
	e := a.event(at, k, about, tag)
	if a.hole {
		a.hole = false
		a.sink(e)
		return
	}
	a.heap = append(a.heap, e)
	i := len(a.heap) - 1
	for i > 0 {
		parent := (i - 1) / 4
		if !e.before(&a.heap[parent]) {
			break
		}
		a.heap[i] = a.heap[parent]
		i = parent
	}
	a.heap[i] = e
}

// append puts an event at the end of a line.
func (a *agenda) append(number int, at time.Duration, e event) {
	a.made++
	e.at, e.order = at, a.made<<8|e.order
	if a.first[number].at == never {
		a.first[number] = e
		return
	}
	a.lines[number].push(e)
}

// sink puts e at the top of the heap and lets it down to its place.
func (a *agenda) sink(e event) {
	h := a.heap
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
	h[i] = e
}

// fill closes the hole at the top of the heap.
func (a *agenda) fill() {
	a.hole = false
	last := len(a.heap) - 1
	e := a.heap[last]
	a.heap = a.heap[:last]
	if last > 0 {
		a.sink(e)
	}
}

// next takes the first event that comes until then; false: there is none.
func (a *agenda) next(until time.Duration) (event, bool) {
	if a.hole {
		a.fill()
	}
	const heap = -1
	from, least := heap, &event{at: never}
	if len(a.heap) > 0 {
		least = &a.heap[0]
	}
	for i := range a.first {
		if e := &a.first[i]; e.at < least.at || e.at == least.at && e.order < least.order {
			least, from = e, i
		}
	}
	e := *least
	switch {
	case e.at > until || e.at == never:
		return event{}, false
	case from == heap:
		a.hole = true
	default:
		a.advance(from)
	}
	return e, true
}

// advance makes the next event of a line its first.
func (a *agenda) advance(number int) {
	l := &a.lines[number]
	if l.head == l.tail {
		a.first[number] = event{at: never}
		return
	}
	a.first[number] = l.ring[l.head&uint64(len(l.ring)-1)]
	l.head++
}
