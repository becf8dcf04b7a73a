package pick

import (
	"time"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/reason"
)

// homeOnly sends everything to the home group: the strategy of a pool that was given none. Unlike overflow's Static it
// lets requests go on to the next group when nobody at home serves.
type homeOnly struct{ groups int }

// Reset implements overflow.Strategy.
func (h *homeOnly) Reset(_ time.Duration, s overflow.Scene) { h.groups = len(s.Groups) }

// Step implements overflow.Strategy.
func (h *homeOnly) Step(time.Duration, *overflow.Counters) overflow.Decision {
	d := overflow.Decision{Cap: defaultCap, Reason: reason.New(reason.ZoneCopes)}
	if h.groups > 0 {
		d.Groups = make([]overflow.GroupStatus, h.groups)
		d.Groups[0].Share = 1
		d.Routes = []overflow.Route{{Share: 1}}
	}
	return d
}
