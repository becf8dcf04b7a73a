package fleet

import (
	"cmp"
	"slices"

	"github.com/weir-lb/weir/internal/sim/scenario"
)

// rollout replaces pods by new ones, count at a time: as a Deployment with maxSurge count and maxUnavailable 0 does, but in
// batches: new pods start when all of the batch before are ready. Rollouts run one after the other. A batch for which there
// is no room waits, and everything behind it.
type rollout struct {
	where  scenario.Where
	count  int
	isOn   bool
	olds   []int // still to be replaced, in order of zone and place
	starts []int // the pods of the batch that is being replaced
}

// roll takes the first rollout as far as it goes now.
func (f *Fleet) roll() {
	for len(f.rollouts) > 0 {
		r := &f.rollouts[0]
		if !r.isOn {
			r.isOn, r.olds = true, f.meant(r.where)
		}
		if !f.endBatch(r) {
			return
		}
		if !f.startBatch(r) {
			f.rollouts = f.rollouts[1:]
		}
	}
}

// meant lists the Deployment's pods that where names.
func (f *Fleet) meant(where scenario.Where) []int {
	var ids []int
	for id := range f.pods {
		if f.isSlot(id) && f.isMeant(id, where) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b int) int {
		p, q := &f.pods[a], &f.pods[b]
		return cmp.Or(cmp.Compare(p.Zone, q.Zone), cmp.Compare(p.Place, q.Place), cmp.Compare(a, b))
	})
	return ids
}

// endBatch lets the old pods of a batch go that is ready; false: it is not.
func (f *Fleet) endBatch(r *rollout) bool {
	for _, id := range r.starts {
		if f.pods[id].Phase == Pending {
			return false
		}
	}
	for _, id := range r.starts {
		if old := f.hidden[id].replaces; old != none {
			f.terminate(old)
		}
	}
	r.starts = r.starts[:0]
	return true
}

// startBatch creates the pods that replace the next old ones; false: there are none.
func (f *Fleet) startBatch(r *rollout) bool {
	for len(r.olds) > 0 && len(r.starts) < r.count {
		old := r.olds[0]
		r.olds = r.olds[1:]
		if !f.isSlot(old) {
			continue
		}
		p := &f.pods[old]
		id := f.create(Pod{Zone: p.Zone, Place: p.Place}, state{isPinned: f.hidden[old].isScheduled || f.hidden[old].isPinned, replaces: old})
		f.hidden[old].replacement = id
		r.starts = append(r.starts, id)
	}
	return len(r.starts) > 0
}
