package policy

import (
	"math/bits"
	"slices"

	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// Resolve answers what holds for a client and a destination: the rules about both, folded weakest first, with every default
// filled in. It is total; a set without rules gives the defaults.
func (s *Set) Resolve(c Client, d Destination) Settings {
	if s == nil {
		s = &Set{}
	}
	f := s.fold(&c, d)
	settings := f.settings()
	settings.Routes = f.routes(s, &c, d)
	settings.Fields = f.report()
	settings.Notes = f.notes
	return settings
}

// MaxSkew is the least that policies say of the ports of a service to a client; 0: nothing.
func (s *Set) MaxSkew(c Client, svc *topology.Service) float64 {
	least := 0.0
	if s == nil || !s.indexed().capsSkew {
		return least
	}
	for _, port := range svc.Ports {
		settings := s.Resolve(c, Destination{Service: svc.ServiceName, Port: port})
		if m := settings.Locality.MaxSkew; m != nil && (least == 0 || float64(*m) < least) {
			least = float64(*m)
		}
	}
	return least
}

// fold is the rules about a client and a destination, merged.
type fold struct {
	index *index
	rules []int // positions, weakest first
	conf  Conf
	holds uint64 // fields that are set and have an effect
	notes []reason.Finding
}

func (s *Set) fold(c *Client, d Destination) *fold {
	f := &fold{index: s.indexed()}
	for _, i := range f.index.about(d) {
		r := &f.index.rules[i]
		if r.Clients.selectsZone(c.Zone) && r.Clients.selects(s, c) {
			f.rules = append(f.rules, i)
			if len(f.rules) == 1 {
				f.conf = r.Conf
				continue
			}
			f.conf = Merge(f.conf, r.Conf)
		}
	}
	f.holds = f.index.said(&f.conf)
	return f
}

// author gives the strongest rule that says something about a field. A field that is set after the merge was said by it: a rule that
// replaces a whole load balancer takes the fields of the one before away.
func (f *fold) author(field int) *indexedRule {
	for _, i := range slices.Backward(f.rules) {
		if r := &f.index.rules[i]; r.fields&(1<<field) != 0 {
			return r
		}
	}
	panic("policy: a field is set that no rule says anything about")
}

// unused takes fields that are set out of what holds, and says why.
func (f *fold) unused(message string, paths ...string) {
	for i := range f.index.fields {
		path := f.index.fields[i].path
		if f.holds&(1<<i) == 0 || !slices.Contains(paths, path) {
			continue
		}
		f.holds &^= 1 << i
		f.notes = append(f.notes, f.author(i).Origin.Finding(path, reason.Unused, message))
	}
}

// remark notes something about a field that holds all the same. Nothing is noted of a field that is not set.
func (f *fold) remark(field, path, message string) {
	for i := range f.index.fields {
		if f.index.fields[i].path == field && f.holds&(1<<i) != 0 {
			f.notes = append(f.notes, f.author(i).Origin.Finding(path, reason.Unused, message))
		}
	}
}

// report lists the fields that hold, with their authors, and notes the rules that lost to an equal one.
func (f *fold) report() []Field {
	fields := make([]Field, 0, bits.OnesCount64(f.holds))
	for i := range f.index.fields {
		if i == 0 && f.isMeshDefault() {
			fields = append(fields, Field{Path: pathType, Value: string(RoundRobin), Origin: f.strongestMesh().Origin})
		}
		if f.holds&(1<<i) == 0 {
			continue
		}
		author := f.author(i)
		fields = append(fields, Field{Path: f.index.fields[i].path, Value: author.text(i), Origin: author.Origin})
		f.noteConflict(i, author)
	}
	return fields
}

// noteConflict notes a rule that says something else about a field than the one that holds, and is weaker only by its age
// or its name.
func (f *fold) noteConflict(field int, winner *indexedRule) {
	for _, i := range slices.Backward(f.rules) {
		r := &f.index.rules[i]
		if r.fields&(1<<field) == 0 || r.Origin.isSameDocument(winner.Origin) {
			continue
		}
		if precedenceOf(r.Rule) != precedenceOf(winner.Rule) {
			return
		}
		if loses := r.text(field); loses != winner.text(field) {
			f.notes = append(f.notes, r.Origin.Finding(f.index.fields[field].path, reason.Overridden,
				loses+" is overridden by "+winner.Origin.String()+", which is as specific and "+f.why(winner, r)))
		}
	}
}

// why says what makes the stronger of two equals stronger.
func (f *fold) why(stronger, weaker *indexedRule) string {
	if compareAge(stronger.Origin.Created, weaker.Origin.Created) != 0 {
		return "older"
	}
	return "first in the alphabet"
}

// isMeshDefault tells whether a document of the mesh is about this, and no rule names an algorithm: its dialect means
// RoundRobin then.
func (f *fold) isMeshDefault() bool {
	return block(f.conf.LoadBalancer).Type == "" && f.strongestMesh() != nil
}

func (f *fold) strongestMesh() *indexedRule {
	for _, i := range slices.Backward(f.rules) {
		if r := &f.index.rules[i]; r.Origin.Dialect.IsMesh() {
			return r
		}
	}
	return nil
}
