package l7

import "github.com/weir-lb/weir/internal/h2"

// leg is a call's stream on one of its two connections, HTTP/1's request and response being one as well, and what waits to be sent there. It is guarded by the call's lock.
type leg struct {
	call     *call
	link     carrier // nil: there is no stream, not yet or not any more
	id       uint32
	window   int64 // what the peer lets us send
	room     int64 // what the peer may send
	size     int64 // what room is filled up to
	due      int64 // bytes that were moved on and not given back to the peer's window
	queue    queue // data that waits to be sent to the peer
	trailer  []h2.Field
	last     bool // the stream ends behind the queue
	ended    bool // its end was sent
	finished bool // the peer's end was received
	waiting  bool // it is in its link's list of those that wait
}

const (
	// firstWindow is a stream's window at its beginning: HTTP/2's own, so that nothing needs to be negotiated.
	firstWindow = h2.DefaultWindow
	// fullWindow is what a stream's window grows to once its data moves on: a round trip of 2 ms at 1 Gbit/s. A stream that is not read
	// holds no more than this.
	fullWindow = 256 << 10
)

// begin makes the leg one of a new stream.
func (g *leg) begin(l carrier, id uint32, window int64) {
	g.link, g.id, g.window = l, id, window
	g.room, g.size, g.due = firstWindow, firstWindow, 0
	g.ended, g.finished, g.waiting = false, false, false
}

// reset ends the leg's stream with a code, if there is one.
func (g *leg) reset(code h2.Code, b *batch) {
	if g.link != nil {
		g.link.reset(g.id, code, b)
		g.leave(byUs, b)
	}
}

// leave is done with the leg's stream, if there is one, which ended as c says.
func (g *leg) leave(c closure, b *batch) {
	if l := g.link; l != nil {
		g.link = nil
		l.drop(g.id, c, b)
	}
}

// clear forgets all but the queue's memory.
func (g *leg) clear() {
	q := g.queue
	q.clear()
	trailer := g.trailer
	clear(trailer)
	*g = leg{call: g.call, queue: q, trailer: trailer[:0]}
}

// give gives n bytes back to the peer's window, as soon as it is worth a frame.
func (g *leg) give(n int, b *batch) {
	if g.link == nil || g.finished || n == 0 {
		return
	}
	if g.due += int64(n); g.due < g.size/2 {
		return
	}
	increment := g.due + fullWindow - g.size
	g.room += increment
	g.size, g.due = fullWindow, 0
	g.link.windowUpdate(g.id, uint32(increment), b) //nolint:gosec // at most fullWindow
}

// isSent tells whether everything that there is was sent.
func (g *leg) isSent() bool { return g.queue.len() == 0 && (!g.last || g.ended) }

// queue is bytes that wait. Its memory is in proportion to what waits.
type queue struct {
	b  []byte
	at int
}

// keptQueue is what is kept of a queue's memory when it is empty.
const keptQueue = 16 << 10

func (q *queue) len() int      { return len(q.b) - q.at }
func (q *queue) bytes() []byte { return q.b[q.at:] }

func (q *queue) push(p []byte) {
	if q.at > 0 && len(q.b)+len(p) > cap(q.b) {
		n := copy(q.b, q.b[q.at:])
		q.b, q.at = q.b[:n], 0
	}
	q.b = append(q.b, p...)
}

// drop forgets the first n bytes.
func (q *queue) drop(n int) {
	if q.at += n; q.at == len(q.b) {
		q.clear()
	}
}

func (q *queue) clear() {
	q.b, q.at = q.b[:0], 0
	if cap(q.b) > keptQueue {
		q.b = nil
	}
}
