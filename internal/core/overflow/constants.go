package overflow

import "time"

// Constants are the numbers of the law. This is their one home: each has its unit and its reason here. The law is not
// sensitive to them (reference/overflow.md 4.9: halving or doubling any of them moves the share of bad requests under
// stress between 8.1 and 9.5 %), so they are no settings; HomeSlowdown alone has a meaning for users, as Prefer.
type Constants struct {
	// Sensor (4.1).

	Cap             float64       // slowdown; the most that one request can say, and what a failure says: 8 failures in 100 move a zone as far as 56 % more latency
	MemorySamples   float64       // requests; a mean of 16 has a standard error of a quarter at CV 1, enough to see a factor of 1.4 grow
	MemoryBaselines float64       // baselines; a memory shorter than two of them would forget before a request that it caused returns
	MemoryMin       time.Duration // the shortest memory: four steps, less is only noise
	MemoryMax       time.Duration // the longest memory: at very low rates react within seconds rather than be sure
	PriorCalm       float64       // requests at slowdown 1 that are taken to have been seen: the first slow request after silence proves nothing
	PriorArmed      float64       // the same while armed, where believing bad news sooner costs less than not
	DeliveredPrior  float64       // requests taken to have been delivered, so that silence is not an outage
	DeliveredMin    time.Duration // the shortest memory of what was delivered
	DeliveredMax    time.Duration // the longest

	// Baseline (4.2).

	SlotMin       time.Duration // a slot of the history counts from this age …
	SlotSamples   float64       // … and from so many requests: standard error 10 % at CV 1
	SlotLength    time.Duration // a slot closes at this age, so that 60 of them are the last hour
	WindowSamples float64       // requests; before there is a slot, the best mean of so many in a row is the baseline
	EscapeAfter   time.Duration // home has to be slow for so long with nowhere better to go before slow becomes normal
	EscapeTime    time.Duration // the baseline then grows e-fold in this time: minutes, not seconds, to accept a factor of 4
	EscapeMax     float64       // and by this factor at most: a service that got 16 times slower is broken, not changed
	EscapeBelow   float64       // slowdown; a home that half its traffic left and that stays slow, but below this, is simply slower now
	EscapeGood    float64       // delivered share below which nothing is accepted as normal: failures are not latency

	// Arming (4.3).

	HomeSlowdown float64       // theta: how much slower than normal home may get before other zones are paid for
	NoiseBand    float64       // standard errors of the client's own estimate that have to be exceeded as well: 4 are passed by chance about once in 30,000 independent looks
	ArmShare     float64       // of demand that stays allowed on arming: nearly all, so that a false alarm costs 2 %
	DisarmAt     float64       // allowed rate over demand at which home clearly copes …
	DisarmAfter  time.Duration // … for so long
	AllowMax     float64       // allowed rate over demand is never more: credit for a quiet time must not delay the next cut

	// Home allowance (4.4).

	LoopGain       float64       // fraction of the excess delay corrected in one loop delay; 0.2 × a slope of 5 = 1, and a delayed integrator is stable below pi/2
	FeedbackFactor float64       // times the shortest memory and the zone's delay: when a change of shares can be seen
	FeedbackMin    time.Duration // delays longer than this, or 4 baselines, do not lengthen the feedback interval further: a timeout must not slow the cuts
	ReturnBelow    float64       // log slowdown under theta from which the return gains speed
	ReturnAfter    float64       // shortest memories until that speed doubles
	RecoverBelow   float64       // log slowdown under theta from which a home far below its last good rate grows fast
	RecoverUntil   float64       // of the rate delivered at the first cut; above it the old wall may be near
	RecoverGrowth  float64       // e-folds in a feedback interval
	CrisisAbove    float64       // log slowdown above theta: 1.5 theta, where gentle steps are too slow
	CutFactors     [5]float64    // of what home really delivers, one after the other while cuts do not help: first just below its capacity, then away
	CutHelped      float64       // slowdown after a cut over the one before, below which the cut helped
	KeepStayed     float64       // of what really stayed at home remains allowed when nobody else took it: anti-windup
	FloorShare     float64       // of demand that always goes home, to learn when it is well again
	FloorRate      float64       // requests per second for the same, where 2 % would be one in minutes …
	FloorShareMax  float64       // … but never more than this share
	EvacuatedAt    float64       // of the rate delivered at the first cut; below it home is evacuated
	ProbesFirst    float64       // good answers in a row before an evacuated home may grow again
	ProbesMax      float64       // after failed attempts the number doubles, up to this
	DemandMin      time.Duration // memory of the demand: long enough for 16 requests, within these bounds
	DemandMax      time.Duration //

	// Other zones (4.5).

	OutsiderSlowdown float64       // theta_r: outsiders leave before residents begin to spill, so that overflow does not cascade
	HomeComparison   float64       // phi: another zone that takes less than this part of home's delay is worth it, hot or not
	OutsiderCut      float64       // the least that one cut leaves
	OutsiderHot      float64       // log delay over target above which the rate is remembered as a ceiling
	OutsiderFalling  float64       // delay over the one before below which it is falling by itself
	FirstShare       float64       // of demand for a zone that is used for the first time: a visible test, not a flood …
	FirstShareFailed float64       // … plus this much of it when home delivers nothing
	Growth           float64       // factor in a feedback interval while there is evidence that the zone copes …
	GrowthFailed     float64       // … plus this when home delivers nothing
	CeilingDip       float64       // a ceiling is approached from 20 % below and left 20 % above after twice CeilingTime (CUBIC)
	CeilingTime      float64       // feedback intervals until the ceiling is reached again
	CeilingRepeats   float64       // feedback intervals within which another cut belongs to the same incident and keeps the ceiling
	CeilingForget    time.Duration // an incident's ceiling says nothing after this
	OpenFloor        float64       // of demand that a zone in use keeps while there is excess, to learn; unused below it, a zone is closed
	CloseTime        time.Duration // what a zone is allowed beyond its use fades in this time

	// Shedding (4.7).

	ShedHome      float64 // slowdown of home above which, and …
	ShedOthers    float64 // … of every other zone above which, and …
	ShedDelivered float64 // … delivered share of everything below which requests are rejected: slow alone is not a reason
	ShedUp        float64 // of what nobody takes, in a step of 100 ms: a second to full
	ShedDown      float64 // share in a second
	ShedMax       float64 // share; some requests always have to tell how things are

	// Time.

	StepMax time.Duration // a longer pause between two steps counts as this in every rate of change
	IdleMax time.Duration // after a longer pause nothing is known about the zones and the law starts calm
}

// DefaultConstants gives the constants of reference/overflow.md 4.9 and of the text around it. Those without a number
// there are marked.
func DefaultConstants() Constants {
	return Constants{
		Cap: 8, MemorySamples: 16, MemoryBaselines: 2,
		MemoryMin: 400 * time.Millisecond, MemoryMax: 6 * time.Second,
		PriorCalm: 4, PriorArmed: 2,
		DeliveredPrior: 2, DeliveredMin: 300 * time.Millisecond, DeliveredMax: 2 * time.Second,

		SlotMin: 5 * time.Second, SlotSamples: 100, SlotLength: time.Minute,
		WindowSamples: 64, // ours
		EscapeAfter:   5 * time.Second, EscapeTime: 20 * time.Second, EscapeMax: 16, EscapeBelow: 2,
		EscapeGood: 0.9, // ours

		HomeSlowdown: 1.4, NoiseBand: 4, ArmShare: 0.98,
		DisarmAt: 1.2, DisarmAfter: 2 * time.Second,
		AllowMax: 1.5, // ours

		LoopGain: 0.2, FeedbackFactor: 1, FeedbackMin: 500 * time.Millisecond,
		ReturnBelow: 0.15, ReturnAfter: 1.5,
		RecoverBelow: 0.1, RecoverUntil: 0.7, RecoverGrowth: 0.6,
		CrisisAbove: 0.4, CutFactors: [5]float64{0.8, 0.6, 0.35, 0.1, 0}, CutHelped: 0.93, KeepStayed: 0.9,
		FloorShare: 0.02, FloorRate: 0.5, FloorShareMax: 0.1,
		EvacuatedAt: 0.2, ProbesFirst: 5, ProbesMax: 40,
		DemandMin: 500 * time.Millisecond, DemandMax: 8 * time.Second,

		OutsiderSlowdown: 1.25, HomeComparison: 0.6, OutsiderCut: 0.8, OutsiderHot: 0.1, OutsiderFalling: 0.95,
		FirstShare: 0.15, FirstShareFailed: 0.3, Growth: 2, GrowthFailed: 2,
		CeilingDip: 0.2, CeilingTime: 4, CeilingRepeats: 2, CeilingForget: 30 * time.Second,
		OpenFloor: 0.01, CloseTime: 5 * time.Second,

		ShedHome: 3, ShedOthers: 2, ShedDelivered: 0.97, ShedUp: 0.3, ShedDown: 0.3,
		ShedMax: 0.9, // ours

		StepMax: time.Second,      // ours
		IdleMax: 30 * time.Second, // ours
	}
}

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
