package fleet

import (
	"math"
	"time"

	"github.com/weir-lb/weir/internal/sim/scenario"
)

// Numbers of the HorizontalPodAutoscaler's algorithm that a scenario cannot set.
//
// Source: Kubernetes, Horizontal Pod Autoscaling, "Default behavior" of autoscaling/v2: up by 4 pods or 100 % in 15 s,
// whichever is more; down by 100 % in 15 s, which is no limit.
const (
	scaleUpPods   = 4
	scaleUpFactor = 2
	scaleUpPeriod = 15 * time.Second
)

// Defaults for what a scenario made in code leaves at zero.
//
// Source: kube-controller-manager, --horizontal-pod-autoscaler-sync-period 15 s; HorizontalPodAutoscalerSpec: at least one
// replica; 80 % is what it takes when there is no metric at all.
const (
	defaultEvery  = 15 * time.Second
	defaultTarget = 0.8
)

// roundingSlack keeps arithmetic's last bits from making a pod more out of a whole number.
const roundingSlack = 1e-9

// usage is how busy a pod was.
type usage struct{ samples []sample }

// sample is a mean over a time.
type sample struct {
	from, to time.Duration
	mean     float64
}

// add appends a sample and forgets what ended by the time cutoff.
func (u *usage) add(s sample, cutoff time.Duration) {
	old := 0
	for old < len(u.samples) && u.samples[old].to <= cutoff {
		old++
	}
	u.samples = append(u.samples[:0], u.samples[old:]...)
	u.samples = append(u.samples, s)
}

// mean is the mean from a moment on; false: nothing is known of that time.
func (u *usage) mean(from time.Duration) (float64, bool) {
	sum, length := 0.0, 0.0
	for _, s := range u.samples {
		if part := (s.to - max(s.from, from)).Seconds(); part > 0 {
			sum += s.mean * part
			length += part
		}
	}
	if length == 0 {
		return 0, false
	}
	return sum / length, true
}

// scaler is what a HorizontalPodAutoscaler remembers.
type scaler struct {
	sync     time.Duration // when it looks next; never without one
	observed time.Duration // until when pods were observed
	advised  []advice      // within the stabilization window, oldest first
	grown    []advice      // by how much it scaled, up above zero, within scaleUpPeriod
}

type advice struct {
	at   time.Duration
	pods int
}

func newScaler(a *scenario.Autoscale) scaler {
	if a == nil {
		return scaler{sync: never}
	}
	return scaler{sync: every(a)}
}

func every(a *scenario.Autoscale) time.Duration {
	if a.Every <= 0 {
		return defaultEvery
	}
	return a.Every
}

func window(a *scenario.Autoscale) time.Duration {
	if a.Window <= 0 {
		return every(a)
	}
	return a.Window
}

// observe notes how busy ready pods were since the Step before. Those that are lost report nothing.
func (f *Fleet) observe(now time.Duration, busy func(id int) float64) {
	from := f.scaler.observed
	if f.sc.Autoscale == nil || now <= from {
		return
	}
	f.scaler.observed = now
	for id := range f.pods {
		if f.pods[id].Phase == Ready && f.pods[id].Cluster == "" && !f.hidden[id].loss.isLost {
			f.hidden[id].usage.add(sample{from: from, to: now, mean: busy(id)}, now-window(f.sc.Autoscale))
		}
	}
}

// autoscale is a sync of the HorizontalPodAutoscaler, when it is due.
//
// Source: Kubernetes, Horizontal Pod Autoscaling, "Algorithm details", and its default behavior. Simplified: utilisation
// is of workers instead of requested CPU, not rounded to percents and known at once; there is one metric.
func (f *Fleet) autoscale() {
	if f.scaler.sync > f.now {
		return
	}
	a := f.sc.Autoscale
	f.scaler.sync = f.now + every(a)
	current := f.slots()
	if current == 0 {
		return // as with zero replicas, which switch the autoscaler off
	}
	least, most := max(a.Min, 1), max(a.Max, a.Min, 1)
	want := min(max(current, least), most)
	if want == current {
		advised, ok := f.recommend(current)
		if !ok {
			return
		}
		want = min(f.stabilize(current, advised), f.scaleUpLimit(current))
		want = min(max(want, least), most)
	}
	f.resize(current, want)
}

// recommend computes how many pods the load calls for; false: nothing is known.
//
// Pods of lost nodes report nothing: they count as being at the target when fewer pods are called for, as idle when more
// are. Pods that are left out of the mean count as idle when more are called for.
func (f *Fleet) recommend(current int) (int, bool) {
	c := f.census()
	if c.known == 0 {
		return 0, false
	}
	target := f.sc.Autoscale.Target
	if target <= 0 {
		target = defaultTarget
	}
	ratio := c.sum / float64(c.known) / target
	pods := c.known + c.missing
	switch {
	case ratio < 1:
		c.sum += float64(c.missing) * target
	case ratio > 1:
		pods += c.aside
	}
	damped := c.sum / float64(pods) / target
	if f.isTolerated(damped) || ratio < 1 && damped > 1 || ratio > 1 && damped < 1 {
		return current, true
	}
	want := int(math.Ceil(damped*float64(pods) - roundingSlack))
	if damped < 1 && want > current || damped > 1 && want < current {
		return current, true // it calls for the other direction only because other pods are counted
	}
	return want, true
}

// census is what the autoscaler knows of the pods that do not go.
type census struct {
	known   int     // that report how busy they are
	sum     float64 // of their utilisation
	missing int     // that should and do not: their nodes are lost
	aside   int     // that are left out of the mean: not ready, or for too short a time
}

func (f *Fleet) census() census {
	var c census
	from := f.now - window(f.sc.Autoscale)
	for id := range f.pods {
		if !f.isActive(id) || f.pods[id].Cluster != "" {
			continue
		}
		switch mean, ok := f.hidden[id].usage.mean(from); {
		case f.pods[id].Phase == Pending || f.isTooYoung(id):
			c.aside++
		case f.hidden[id].loss.isLost || !ok:
			c.missing++
		default:
			c.known++
			c.sum += mean
		}
	}
	return c
}

// isTooYoung tells whether a pod that started in the run has been ready for less than the window of a metric: Kubernetes
// leaves out what was measured, even in part, before readiness.
func (f *Fleet) isTooYoung(id int) bool {
	return f.pods[id].Cold && f.now-f.pods[id].ReadyAt < window(f.sc.Autoscale)
}

func (f *Fleet) isTolerated(ratio float64) bool {
	return math.Abs(ratio-1) <= f.sc.Autoscale.Tolerance+roundingSlack
}

// stabilize holds the highest recommendation of the stabilization window against scaling down. Before the first one the
// number of pods at that time stands for those that were not made.
func (f *Fleet) stabilize(current, advised int) int {
	s := &f.scaler
	if s.advised == nil {
		s.advised = append(s.advised, advice{f.now, current})
	}
	s.advised = append(since(s.advised, f.now-f.sc.Autoscale.Stabilization), advice{f.now, advised})
	highest := advised
	for _, a := range s.advised {
		highest = max(highest, a.pods)
	}
	return max(advised, min(current, highest))
}

// since drops what is not after cutoff.
func since(list []advice, cutoff time.Duration) []advice {
	old := 0
	for old < len(list) && list[old].at <= cutoff {
		old++
	}
	return list[old:]
}

// scaleUpLimit is the most pods that there may be now.
func (f *Fleet) scaleUpLimit(current int) int {
	f.scaler.grown = since(f.scaler.grown, f.now-scaleUpPeriod)
	before := current
	for _, g := range f.scaler.grown {
		before -= g.pods
	}
	return max(current, before+scaleUpPods, before*scaleUpFactor)
}

// resize creates or removes pods.
func (f *Fleet) resize(current, want int) {
	if want != current {
		f.scaler.grown = append(f.scaler.grown, advice{f.now, want - current})
	}
	for range want - current {
		f.create(Pod{}, state{replaces: none})
	}
	f.remove(current-want, func(int) bool { return true })
}
