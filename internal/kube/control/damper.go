package control

import (
	"hash/maphash"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/plans"
)

// Where another writer takes hints off, each write of ours makes it write, too: kube-controller-manager does so about a
// second after it sees hints that it does not know.
const (
	// freeRewrites is how often a service's hints are written again at once. An admission call that timed out, or a person
	// editing a slice, needs one; a webhook that restarts a second one.
	freeRewrites = 3
	// firstWait is the wait before the next rewrite, doubled for each one after it. With it hints stand half of the time.
	firstWait = time.Second
	// lastWait bounds the waits. It is how long hints may be missing after the webhook is back, and how often, each time,
	// consumers change over and back again until then.
	lastWait = 5 * time.Minute
	// calm is how long hints have to stand before the count of rewrites begins anew: far above what any controller needs to
	// remove them, and short enough for the condition to be current.
	calm = 2 * time.Minute
	// sameUndoing is the time in which slices that are undone one after the other count once: below the second that
	// kube-controller-manager takes between two syncs of a service.
	sameUndoing = 500 * time.Millisecond
	// rewriteShare is what rewrites of all services may take of the bucket: one in so many tokens. The rest is for changes.
	rewriteShare = 4
)

// damper slows down the rewriting of hints that another writer removes again and again. It does not delay changes:
// other endpoints or other hints for them are written at once, whatever happened before, and a service that is to have
// hints for another reason, or none, begins anew. It is safe for concurrent use for different services.
type damper struct {
	bucket *rate.Limiter
	count  func(wait time.Duration) // of each time that hints were undone, with the wait that this brings
	seed   maphash.Seed

	mu       sync.Mutex // also keeps the times at which the bucket is asked in order
	services map[topology.ServiceName]*rewrites
}

// rewrites is what is remembered of a service since its hints were written.
type rewrites struct {
	written fingerprint // of the hints that were last written whole
	stand   bool        // no other writer was seen to remove them
	since   time.Time
	undone  int       // times that they were undone since they last stood for calm
	seen    time.Time // the last of those
	slowed  bool      // a rewrite had to wait
	next    time.Time // when the next one is due
	tokens  tokens    // for that; nil: not asked for yet
}

func newDamper(bucket *rate.Limiter, count func(time.Duration)) *damper {
	limit := bucket.Limit()
	if limit != rate.Inf {
		limit /= rewriteShare
	}
	return &damper{
		bucket: rate.NewLimiter(limit, max(1, bucket.Burst()/rewriteShare)), count: count,
		seed: maphash.MakeSeed(), services: make(map[topology.ServiceName]*rewrites),
	}
}

// ask gives how long n slices of a service must wait to be written; 0: not at all.
func (g *damper) ask(d *plans.Decision, n int) time.Duration {
	wanted := g.take(d)
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.services[d.Record.Name]
	if s == nil {
		return 0
	}
	now := time.Now()
	if s.written.mode != wanted.mode {
		s.undone, s.slowed = 0, false
	}
	if s.written != wanted {
		s.giveBack(now)
		return 0
	}
	isNews := s.stand && s.fall(now)
	if !s.next.After(now) && s.tokens == nil {
		s.tokens = takeFrom(g.bucket, now, n)
		s.next = now.Add(s.tokens.wait(now))
	}
	wait := max(0, s.next.Sub(now))
	s.slowed = s.slowed || wait >= firstWait
	if isNews {
		g.count(wait)
	}
	return wait
}

// fall notes that the hints do not stand any more, and tells whether that is another undoing than the one before.
func (s *rewrites) fall(now time.Time) bool {
	s.stand = false
	if now.Sub(s.since) >= calm {
		s.undone, s.slowed = 0, false
	}
	if now.Sub(s.seen) < sameUndoing {
		return false
	}
	s.undone++
	s.seen, s.next = now, now.Add(s.wait())
	return true
}

// wait is how long hints that were undone so often wait for their rewriting.
func (s *rewrites) wait() time.Duration {
	wait := firstWait
	for range s.undone - freeRewrites - 1 {
		wait = min(2*wait, lastWait)
	}
	if s.undone <= freeRewrites {
		return 0
	}
	return wait
}

// wrote notes that all slices of a service were written.
func (g *damper) wrote(d *plans.Decision) {
	wanted := g.take(d)
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.services[d.Record.Name]
	if s == nil {
		s = new(rewrites)
		g.services[d.Record.Name] = s
	}
	s.written, s.tokens = wanted, nil
	s.rise(time.Now())
}

// stands notes that all slices of a service say the plan.
func (g *damper) stands(name topology.ServiceName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if s := g.services[name]; s != nil {
		now := time.Now()
		s.giveBack(now)
		s.rise(now)
	}
}

// rise notes that the hints are there, since now if they were not.
func (s *rewrites) rise(now time.Time) {
	if s.stand {
		return
	}
	s.stand, s.since = true, now
}

// slows tells whether a service's rewrites have to wait, and, where its hints stand, for how long they must go on standing
// for this to end.
func (g *damper) slows(name topology.ServiceName) (slowed bool, again time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.services[name]
	if s == nil || !s.slowed {
		return false, 0
	}
	if !s.stand {
		return true, 0
	}
	if again = calm - time.Since(s.since); again > 0 {
		return true, again
	}
	s.undone, s.slowed = 0, false
	return false, 0
}

// forget drops what is remembered of a service that is gone.
func (g *damper) forget(name topology.ServiceName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if s := g.services[name]; s != nil {
		s.giveBack(time.Now())
		delete(g.services, name)
	}
}

// giveBack returns tokens that are not needed any more.
func (s *rewrites) giveBack(now time.Time) {
	s.tokens.giveBack(now)
	s.tokens = nil
}

// fingerprint tells decisions apart.
type fingerprint struct {
	mode  uint64 // what hints are for: whether there are any, and the mode
	hints uint64 // which endpoints have which
}

// take gives the fingerprint of a decision.
func (g *damper) take(d *plans.Decision) fingerprint {
	var mode, hints maphash.Hash
	mode.SetSeed(g.seed)
	hints.SetSeed(g.seed)
	for i := range d.Plans {
		p := &d.Plans[i]
		maphash.WriteComparable(&mode, p.Family)
		maphash.WriteComparable(&mode, p.Mode)
		maphash.WriteComparable(&mode, p.Hinted)
		for j := range p.Endpoints {
			e := &p.Endpoints[j]
			maphash.WriteComparable(&hints, e.Addr)
			maphash.WriteComparable(&hints, e.IsReady())
			maphash.WriteComparable(&hints, len(e.Hints.Zones))
			for _, z := range e.Hints.Zones {
				maphash.WriteComparable(&hints, z)
			}
			for _, n := range e.Hints.Nodes {
				maphash.WriteComparable(&hints, n)
			}
		}
	}
	return fingerprint{mode: mode.Sum64(), hints: hints.Sum64()}
}

// tokens were taken out of a bucket, or will be there after a while.
type tokens []*rate.Reservation

// takeFrom takes n tokens out of a bucket, which is emptied for as long as it takes to fill that many times where it does not
// hold as many. A bucket that holds none gives none: nil.
func takeFrom(bucket *rate.Limiter, now time.Time, n int) tokens {
	var taken tokens
	for n > 0 {
		share := min(n, bucket.Burst())
		r := bucket.ReserveN(now, share)
		if !r.OK() {
			return nil
		}
		taken = append(taken, r)
		n -= share
	}
	return taken
}

// wait is how long it takes until all of them are there.
func (t tokens) wait(now time.Time) time.Duration {
	if len(t) == 0 {
		return 0
	}
	return t[len(t)-1].DelayFrom(now)
}

func (t tokens) giveBack(now time.Time) {
	for _, r := range t {
		r.CancelAt(now)
	}
}
