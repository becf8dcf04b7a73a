package overflow

import (
	"math"
	"time"
)

// Constants are the numbers of the law, each with its unit and its reason. They are no settings; HomeSlowdown alone has a
// meaning for users, as Prefer. docs/simulation.md shows what halving and doubling each of them does to seven scenarios: of
// 104 such changes 93 move the share of bad requests under stress, 2.5 %, by less than a third of a point. The law is
// sensitive to HomeSlowdown, CrisisAbove, CutFactors, HomeComparison and Cap, and in the first seconds of a client to
// PriorCalm, PriorArmed and WindowSamples. The numbers in the headings are sections of docs/overflow-law.md.
type Constants struct {
	// Sensor (1).

	// Cap: slowdown; the most that one request can say, and what a failure says: 8 failures in 100 move a zone as far
	// as 56 % more latency
	Cap float64
	// MemorySamples: requests; a mean of 16 has a standard error of a quarter at CV 1, enough to see a factor of 1.4
	// grow
	MemorySamples float64
	// MemoryBaselines: baselines; a memory shorter than two of them would forget before a request that it caused
	// returns
	MemoryBaselines float64
	// MemoryMin: the shortest memory: four steps, less is only noise
	MemoryMin time.Duration
	// MemoryMax: the longest memory: at very low rates react within seconds rather than be sure
	MemoryMax time.Duration
	// PriorCalm: requests at slowdown 1 that are taken to have been seen: the first slow request after silence proves
	// nothing
	PriorCalm float64
	// PriorArmed: the same while armed, where believing bad news sooner costs less than not; also the requests that are
	// taken to have been delivered, so that silence is not an outage, and that have to be heard of between two cuts
	PriorArmed float64
	// DeliveredMax: the longest memory of what was delivered
	DeliveredMax time.Duration

	// Baseline (2).

	// SlotMin: a slot of the history counts from this age …
	SlotMin time.Duration
	// SlotSamples: … and from so many requests: standard error 10 % at CV 1
	SlotSamples float64
	// SlotLength: a slot closes at this age, so that 60 of them are the last hour
	SlotLength time.Duration
	// WindowSamples: requests; before there is a slot, the best mean of so many in a row is the baseline
	WindowSamples float64
	// BaselineMin: the smallest baseline: the network to another zone takes about as long, so that less is never worth paying
	// for. No scenario depends on it, as none has a service that is so fast; a TCP service, whose samples are connect times,
	// would spill for a tenth of a millisecond without it, and the divisions by the baseline need a bound
	BaselineMin time.Duration
	// EscapeAfter: home has to be slow for so long with nowhere better to go before slow becomes normal
	EscapeAfter time.Duration
	// EscapeTime: the baseline then grows e-fold in this time: half a minute to accept a factor of 4. The scenarios of the
	// table have no service that is slow everywhere and do not depend on it; the story helpless of the law's tests does
	EscapeTime time.Duration
	// EscapeBelow: slowdown; a home that half its traffic left and that stays slow, but below this, is simply slower
	// now
	EscapeBelow float64
	// GoodShare: delivered share below which nothing is accepted as normal, as failures are not latency, and below which
	// requests may be shed, as being slow alone is no reason
	GoodShare float64

	// Arming (3).

	// HomeSlowdown: theta: how much slower than normal home may get before other zones are paid for
	HomeSlowdown float64
	// NoiseBand: standard errors of the client's own estimate that have to be exceeded as well: 4 are passed by chance
	// about once in 30,000 independent looks
	NoiseBand float64
	// DisarmAt: allowed rate over demand at which home clearly copes; it is never more than twice as far above the demand
	DisarmAt float64
	// DisarmAfter: home has to cope for so long
	DisarmAfter time.Duration

	// Home allowance (4).

	// LoopGain: fraction of the excess delay corrected in one loop delay; 0.2 × a slope of 5 = 1, and a delayed
	// integrator is stable below pi/2
	LoopGain float64
	// FeedbackMin: a change of shares can be seen after the shortest memory and the zone's delay; delays longer than this, or
	// 4 baselines, do not lengthen this feedback interval further: a timeout must not slow the cuts
	FeedbackMin time.Duration
	// ReturnBelow: log slowdown under theta from which the return gains speed, and a home far below its last good rate grows
	// fast
	ReturnBelow float64
	// ReturnAfter: shortest memories until that speed doubles
	ReturnAfter float64
	// RecoverUntil: of the rate delivered at the first cut: above it the old limit may be near, and home no longer grows fast
	RecoverUntil float64
	// RecoverGrowth: e-folds in a feedback interval
	RecoverGrowth float64
	// CrisisAbove: log slowdown above theta: 1.5 theta, where gentle steps are too slow
	CrisisAbove float64
	// CutFactors: of what home really delivers, one after the other while cuts do not help: first just below its
	// capacity, then away
	CutFactors [5]float64
	// Falling: slowdown or delay over the one before, or requests sent over those answered well, below which it is falling: a
	// cut has helped, or none is needed
	Falling float64
	// KeepStayed: of what really stayed at home remains allowed when nobody else took it: anti-windup
	KeepStayed float64
	// FloorShare: of demand that always goes home, to learn when it is well again; also the share that leaves home first, so
	// that a false alarm costs no more
	FloorShare float64
	// FloorRate: requests per second for the same, where 2 % would be one in minutes …
	FloorRate float64
	// FloorShareMax: … but never more than this share. As much is never shed, to learn how things are
	FloorShareMax float64
	// EvacuatedAt: of the rate delivered at the first cut; below it home is evacuated
	EvacuatedAt float64
	// Probes: good answers in a row before an evacuated home may grow again; after failed attempts twice as many, up to Cap
	// times as many. Fewer or more change nothing in the scenarios of the table, but a home that fails half of its requests
	// needs some to be told from one that is well
	Probes float64
	// DemandMin: memory of the demand: long enough for 16 requests, within these bounds
	DemandMin time.Duration
	DemandMax time.Duration

	// Other zones (5).

	// OutsiderSlowdown: theta_r: outsiders leave before residents begin to spill, so that overflow does not cascade
	OutsiderSlowdown float64
	// HomeComparison: phi: another zone that takes less than this part of home's delay is worth it, hot or not
	HomeComparison float64
	// OutsiderFull: slowdown of another zone from which more requests only wait longer there, whatever home's delay is. Where home
	// fails requests it may be as much more as they have to be tried until one is answered
	OutsiderFull float64
	// OutsiderCut: the least that one cut leaves
	OutsiderCut float64
	// OutsiderHot: log delay over target above which the rate is remembered as a ceiling
	OutsiderHot float64
	// FirstShare: of demand for a zone that is used for the first time: a visible test, not a flood …
	FirstShare float64
	// FirstShareFailed: … plus this much of it when home delivers nothing
	FirstShareFailed float64
	// Growth: factor in a feedback interval while there is evidence that the zone copes
	Growth float64
	// CeilingDip: a ceiling is approached from 20 % below and left 20 % above after twice CeilingTime (CUBIC)
	CeilingDip float64
	// CeilingTime: feedback intervals until the ceiling is reached again
	CeilingTime float64
	// CeilingRepeats: feedback intervals within which another cut belongs to the same incident and keeps the ceiling
	CeilingRepeats float64
	// Forget: an incident's ceiling says nothing after this; a zone that answered nothing is tried again, and after a pause
	// between two steps longer than this nothing is known about the zones and the law starts calm
	Forget time.Duration
	// OpenFloor: of demand that a zone in use keeps while there is excess, to learn; unused below it, a zone is closed
	OpenFloor float64
	// CloseTime: what a zone is allowed beyond its use fades in this time, as does what is shed
	CloseTime time.Duration
	// OutsiderLost: failed answers in a row, and none good, after which a zone is closed: by chance one in 100 million rows
	// where a request in 500 fails. It is opened again after a feedback interval, and after twice as long each further time
	OutsiderLost float64
}

// DefaultConstants gives the constants of the study behind docs/adr/0006-overflow-law.md. Those that it has no number for
// are marked as ours.
func DefaultConstants() Constants {
	return Constants{
		Cap: 8, MemorySamples: 16, MemoryBaselines: 2,
		MemoryMin: 400 * time.Millisecond, MemoryMax: 6 * time.Second,
		PriorCalm: 4, PriorArmed: 2,
		DeliveredMax: 2 * time.Second,

		SlotMin: 5 * time.Second, SlotSamples: 100, SlotLength: time.Minute,
		WindowSamples: 64,               // ours
		BaselineMin:   time.Millisecond, // ours
		EscapeAfter:   5 * time.Second, EscapeTime: 20 * time.Second, EscapeBelow: 2,
		GoodShare: 0.9, // ours

		HomeSlowdown: 1.4, NoiseBand: 4, DisarmAt: 1.2, DisarmAfter: 2 * time.Second,

		LoopGain: 0.2, FeedbackMin: 500 * time.Millisecond,
		ReturnBelow: 0.1, ReturnAfter: 1.5,
		RecoverUntil: 0.7, RecoverGrowth: 0.6,
		CrisisAbove: 0.4, CutFactors: [5]float64{0.8, 0.6, 0.35, 0.1, 0}, Falling: 0.95, KeepStayed: 0.9,
		FloorShare: 0.02, FloorRate: 0.5, FloorShareMax: 0.1,
		EvacuatedAt: 0.2, Probes: 5,
		DemandMin: 500 * time.Millisecond, DemandMax: 8 * time.Second,

		OutsiderSlowdown: 1.25, HomeComparison: 0.6, OutsiderFull: 1.8, OutsiderCut: 0.8, OutsiderHot: 0.1,
		FirstShare: 0.15, FirstShareFailed: 0.3, Growth: 2,
		CeilingDip: 0.2, CeilingTime: 4, CeilingRepeats: 2, Forget: 30 * time.Second,
		OpenFloor: 0.01, CloseTime: 5 * time.Second,
		OutsiderLost: 3, // ours
	}
}

// crisis is home's slowdown at which its crisis begins.
func (k *Constants) crisis() float64 { return k.HomeSlowdown * math.Exp(k.CrisisAbove) }

// preferring gives k with the user's preference, where k has the default for it.
func (k Constants) preferring(p Prefer) Constants {
	switch p {
	case PreferCost:
		k.HomeSlowdown = 1.8
	case PreferLatency:
		k.HomeSlowdown, k.HomeComparison = 1.2, 0.9
	case PreferBalanced:
	}
	return k
}
