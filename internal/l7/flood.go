package l7

import (
	"time"

	"github.com/weir-lb/weir/internal/h2"
)

// flood bounds what a peer may make its reader do for nothing. Frames that carry no request and no data cost, those that do earn, and time
// earns a little. One goroutine at a time.
type flood struct {
	idle  [kinds]float64 // frames for nothing, by kind
	since time.Duration
}

// kind is what a flood is made of.
type kind uint8

const (
	pings kind = iota
	settings
	emptyData
	resetStreams
	windowUpdates
	otherFrames
	kinds
)

// String names the kind as logs have it.
func (k kind) String() string {
	return [...]string{"PING", "SETTINGS", "empty DATA", "rapid reset", "WINDOW_UPDATE", "PRIORITY or unknown frames"}[k]
}

// flood's bounds: a burst that is above what a sound peer does, and a rate at which it may go on for ever.
func (k kind) bounds() (burst, perSecond float64) {
	switch k {
	case resetStreams:
		// A client may give up all its streams at once, and twice more: HTTP/2 lets it open others at once (CVE-2023-44487).
		return 3 * defaultStreams, 100
	case otherFrames:
		return 5_000, 1_000 // among them resets of streams that have just ended
	default:
		return 1_000, 100
	}
}

// earned is how many frames for nothing a frame with data or a head pays for.
const earned = 4

// cost takes note of a frame for nothing; it fails once there were too many.
func (f *flood) cost(k kind, now time.Duration) error {
	burst, _ := k.bounds()
	if passed := now - f.since; passed > time.Second {
		f.since = now
		for each := range kinds {
			_, rate := each.bounds()
			f.idle[each] = max(0, f.idle[each]-rate*passed.Seconds())
		}
	}
	if f.idle[k]++; f.idle[k] > burst {
		return &h2.Error{Code: h2.EnhanceYourCalm, Fault: "a flood: " + k.String()}
	}
	return nil
}

// forgive takes note of frames with data that the peer was sent, each of which may have been answered with PINGs and WINDOW_UPDATEs; it tells
// whether that makes up for k.
func (f *flood) forgive(k kind, frames int64) bool {
	for each := range kinds {
		if each != resetStreams {
			f.idle[each] = max(0, f.idle[each]-earned*float64(frames))
		}
	}
	burst, _ := k.bounds()
	return f.idle[k] <= burst
}

const (
	// rapid is how soon a reset has to follow its request to count: what clients wait for longer bounds itself.
	rapid = 100 * time.Millisecond
	// smallUpdate is what a WINDOW_UPDATE has to give to have a purpose.
	smallUpdate = 1 << 10
)

// cost takes note of a frame for nothing.
func (l *link) cost(k kind) error {
	err := l.flood.cost(k, l.streams.now())
	if err != nil && l.flood.forgive(k, l.frames.Swap(0)) {
		return nil
	}
	return err
}

// pay takes note of a frame that had a purpose. Streams that are reset are not paid for by others that are opened.
func (f *flood) pay() {
	for _, k := range [...]kind{pings, settings, emptyData, windowUpdates} {
		f.idle[k] = max(0, f.idle[k]-earned)
	}
}

// resets are the last streams that were reset by either side: frames for them may be under way. It is a ring.
type resets struct {
	ids [256]uint32
	at  uint8
}

// closure is how a stream ended.
type closure uint8

const (
	bothEnded closure = iota
	byUs              // reset
	byPeer            // reset
)

// add takes note of a stream's end.
func (r *resets) add(id uint32, c closure) {
	switch c {
	case bothEnded:
		return
	case byUs:
		id |= resetByUs
	default:
	}
	r.ids[r.at] = id
	r.at++
}

// has tells whether a stream was reset, and whether that was our doing.
func (r *resets) has(id uint32) (known, ours bool) {
	for _, reset := range r.ids {
		if reset&^resetByUs == id {
			return true, reset&resetByUs != 0
		}
	}
	return false, false
}

const resetByUs = 1 << 31
