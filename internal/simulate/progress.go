package simulate

import (
	"sync"
	"time"
)

// Progress is how far a comparison is.
type Progress struct {
	Runs, Of int     // finished runs, of how many
	Done     float64 // of the work, as a fraction: simulated time, weighted with the rate of requests
	Elapsed  time.Duration
	Left     time.Duration // what the rest will take at this speed; 0 while that is not known
}

// meter adds up what all runs have done. Safe for concurrent use.
type meter struct {
	tell  func(Progress) // nil: not told
	total float64
	begun time.Time

	mu   sync.Mutex
	done float64
	now  Progress
}

func newMeter(jobs []Job, tell func(Progress)) *meter {
	m := &meter{tell: tell, begun: time.Now(), now: Progress{Of: len(jobs)}}
	for _, j := range jobs {
		m.total += j.weight() * j.Scenario.Length.Seconds()
	}
	return m
}

// weight is how much work a simulated second of the job is: its requests, and a little for the seconds themselves.
func (j Job) weight() float64 {
	const quiet = 10 // a second without requests still has ticks of every balancer
	rate := 0.0
	for _, c := range j.Scenario.Clients {
		rate += c.Rate
	}
	return rate + quiet
}

// add counts simulated time of j.
func (m *meter) add(j Job, simulated time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done += j.weight() * simulated.Seconds()
	m.report()
}

// finish counts a run.
func (m *meter) finish() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now.Runs++
	m.report()
}

// report tells how things are; mu is held.
func (m *meter) report() {
	if m.tell == nil || m.total == 0 {
		return
	}
	m.now.Done = min(m.done/m.total, 1)
	m.now.Elapsed = time.Since(m.begun)
	if m.now.Done > 0 {
		m.now.Left = time.Duration(float64(m.now.Elapsed) * (1 - m.now.Done) / m.now.Done)
	}
	m.tell(m.now)
}
