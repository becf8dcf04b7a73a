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
}

// Left is what the rest will take at this speed; 0 while that is not known.
func (p Progress) Left() time.Duration {
	if p.Done == 0 {
		return 0
	}
	return time.Duration(float64(p.Elapsed) * (1 - p.Done) / p.Done)
}

// meter adds up what all runs have done. Safe for concurrent use.
type meter struct {
	tell  func(Progress) // nil: not told
	total float64
	begun time.Time

	mu   sync.Mutex
	done float64
	runs int
	of   int
}

func newMeter(jobs []Job, tell func(Progress)) *meter {
	m := &meter{tell: tell, begun: time.Now(), of: len(jobs)}
	for _, j := range jobs {
		m.total += j.weight(j.Scenario.Length)
	}
	return m
}

// weight is how much work simulated time of the job is: its requests, and a little for the seconds themselves.
func (j Job) weight(simulated time.Duration) float64 {
	rate := 10.0 // a second without requests still has ticks of every balancer
	for _, c := range j.Scenario.Clients {
		rate += c.Rate
	}
	return rate * simulated.Seconds()
}

// add counts work, and finished runs.
func (m *meter) add(work float64, runs int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done += work
	m.runs += runs
	if m.tell != nil && m.total > 0 {
		m.tell(Progress{Runs: m.runs, Of: m.of, Done: min(m.done/m.total, 1), Elapsed: time.Since(m.begun)})
	}
}
