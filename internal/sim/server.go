package sim

import (
	"time"

	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/sim/fleet"
	"github.com/weir-lb/weir/internal/sim/scenario"
)

// server is an endpoint: workers, a queue before them, and what is wrong with it.
type server struct {
	pod   fleet.Pod
	speed float64 // of its hardware; 1: usual
	paths []path  // from each zone that has clients

	fault scenario.Condition // by steps
	lost  bool               // with its node

	coming  int // exchanges on their way to it
	busy    int // workers
	streams int // open ones
	queue   queue
	slower  bool // service times need a factor

	used    float64       // worker seconds, up to usedTo
	usedTo  time.Duration // when busy or streams last changed
	counted float64       // used at the fleet's last step

	utilisation float64 // of workers, in the last second that is over
	usedBefore  float64 // used at its end

	state  uint32 // number of changes of dead, for health checks
	dead   bool   // what active health checks would say
	marked bool   // what they have said

	arrived float64 // worker seconds of work in this second
	line    []float32

	// While the stress is on.
	stress    int64   // requests that arrived
	seconds   int     // in which it was there
	sum, peak float64 // of the loads of those seconds
}

// refusing tells whether connections are refused.
func (v *server) refusing() bool {
	return v.fault.Refuse || v.pod.Phase == fleet.Gone || v.pod.Phase == fleet.Pending
}

// factor is what a service time is multiplied by now.
func (s *Simulation) factor(v *server) float64 {
	if !v.slower && v.streams == 0 {
		return 1
	}
	f := v.fault.Factor() / v.speed
	if c := &s.sc.Server; v.pod.Cold && c.Cold > 1 && s.now < v.pod.ReadyAt+c.Warm {
		left := 1 - float64(max(0, s.now-v.pod.ReadyAt))/float64(c.Warm)
		f *= 1 + (c.Cold-1)*left
	}
	if v.streams > 0 {
		workers := float64(s.sc.Server.Workers)
		f *= workers / max(workers*leastLeft, workers-float64(v.streams)*s.sc.Request.Load)
	}
	return f
}

// leastLeft is the part of its workers that open streams always leave to others: schedulers starve no process.
const leastLeft = 0.1

// grade notes whether service times need a factor.
func (v *server) grade(c *scenario.Server) {
	v.slower = v.fault.Factor() != v.speed || v.pod.Cold && c.Cold > 1
}

// use brings the account of used workers up to date; call it before busy or streams change.
func (s *Simulation) use(v *server) {
	if v.usedTo != s.now {
		occupied := min(float64(s.sc.Server.Workers), float64(v.busy)+float64(v.streams)*s.sc.Request.Load)
		elapsed := (s.now - v.usedTo).Seconds()
		v.used += occupied * elapsed
		v.arrived += float64(v.streams) * s.sc.Request.Load * elapsed
		v.usedTo = s.now
	}
}

// arrive brings an exchange to its endpoint.
func (s *Simulation) arrive(i uint32) {
	x := &s.exchanges.all[i]
	v := &s.servers[x.server]
	v.coming--
	switch {
	case v.lost:
		s.swallow(i)
		return
	case v.refusing():
		x.refused = true
		s.clients[x.client].used[x.server] = notConnected
		s.reply(i, pick.LocalError)
		return
	case x.connects:
		x.ticket.Connected(x.rtt)
	}
	if v.fault.Hang {
		s.swallow(i)
		return
	}
	if s.recorder.stress(s.now) {
		v.stress++
	}
	if v.fault.Fail > 0 && uniform(mix(x.luck+uint64(x.tries))) < v.fault.Fail {
		s.reply(i, pick.ServerError)
		return
	}
	if x.abandoned {
		s.exchanges.remove(i)
		return
	}
	if x.form == poll {
		x.stage = held
		s.agenda.add(s.now+x.hold, evHeld, i, x.generation)
		return
	}
	v.arrived += x.work.Seconds() * s.factor(v)
	switch {
	case v.busy < s.sc.Server.Workers:
		s.use(v)
		v.busy++
		s.serve(i)
	case v.queue.length() < s.sc.Server.Queue:
		x.stage = queued
		v.queue.push(i)
	default:
		s.reply(i, pick.GatewayError)
	}
}

// endPoll answers a poll that has waited for long enough.
func (s *Simulation) endPoll(i uint32) {
	if v := &s.servers[s.exchanges.all[i].server]; v.lost || v.fault.Hang {
		s.swallow(i)
		return
	}
	s.reply(i, pick.Success)
}

// swallow keeps an exchange for ever, as far as its client can tell.
func (s *Simulation) swallow(i uint32) {
	x := &s.exchanges.all[i]
	x.stage = swallowed
	if x.abandoned {
		s.exchanges.remove(i)
	}
}

// serve gives an exchange to a worker.
func (s *Simulation) serve(i uint32) {
	x := &s.exchanges.all[i]
	x.stage = serving
	took := x.work
	if f := s.factor(&s.servers[x.server]); f != 1 {
		took = time.Duration(float64(took) * f)
	}
	s.agenda.add(s.now+took, evServed, i, x.generation)
}

// served frees a worker: it takes the next in the queue whose client is still there.
func (s *Simulation) served(i uint32) {
	x := &s.exchanges.all[i]
	v := &s.servers[x.server]
	if v.lost || v.fault.Hang {
		s.swallow(i)
	} else {
		s.reply(i, pick.Success)
	}
	for v.queue.length() > 0 {
		next := v.queue.pop()
		if !s.exchanges.all[next].abandoned {
			s.serve(next)
			return
		}
		s.exchanges.remove(next)
	}
	s.use(v)
	v.busy--
}

// reply sends the outcome back, if a client waits for it.
func (s *Simulation) reply(i uint32, o pick.Outcome) {
	x := &s.exchanges.all[i]
	if x.abandoned {
		s.exchanges.remove(i)
		return
	}
	x.stage, x.outcome = returning, o
	s.travel(i, evHear)
}

// reset ends everything that is under way at an endpoint. Clients hear of it, unless its node is lost.
func (s *Simulation) reset(id int) {
	v := &s.servers[id]
	for slot := range s.exchanges.all {
		x, i := &s.exchanges.all[slot], uint32(slot) //nolint:gosec // an index.
		if int(x.server) != id {
			continue
		}
		switch x.stage {
		case queued, serving, held:
			x.generation++ // no worker will be done with it
			if v.lost {
				s.swallow(i)
				continue
			}
			s.clients[x.client].used[id] = notConnected
			s.reply(i, pick.LocalError)
		case open:
			x.generation++
			x.stage = broken
			s.travel(i, evHear)
		case waiting, leaving, swallowed, returning, broken:
		}
	}
	s.use(v)
	v.busy, v.streams = 0, 0
	v.queue = queue{}
}

// queue is first come, first served.
type queue struct {
	ring       []uint32 // a power of two
	head, tail uint32
}

func (q *queue) length() int { return int(q.tail - q.head) }

func (q *queue) push(i uint32) {
	if q.length() == len(q.ring) {
		const first = 16
		larger := make([]uint32, max(first, 2*len(q.ring)))
		for j := q.head; j != q.tail; j++ {
			larger[int(j)&(len(larger)-1)] = q.ring[int(j)&(len(q.ring)-1)]
		}
		q.ring = larger
	}
	q.ring[int(q.tail)&(len(q.ring)-1)] = i
	q.tail++
}

func (q *queue) pop() uint32 {
	i := q.ring[int(q.head)&(len(q.ring)-1)]
	q.head++
	return i
}
