package topology

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// parseCosts reads the arguments of a costs statement.
func parseCosts(st statement) (Costs, error) {
	if len(st.args) == 0 {
		return Costs{}, st.verb.errorf("costs without an entry: write one, as in same-region=1, or leave the statement out")
	}
	costs := DefaultCosts()
	seen := make(map[string]bool)
	for _, arg := range st.args {
		key, value, found := arg.cut("=")
		if !found {
			return Costs{}, arg.errorf("bad cost %q: want KEY=COST, as in same-region=1 or a>b=3", arg.text)
		}
		if seen[key.text] {
			return Costs{}, key.errorf("cost %s is there already: remove one", key.text)
		}
		seen[key.text] = true
		cost, err := value.ratio("cost")
		if err != nil {
			return Costs{}, err
		}
		if err := costs.set(key, Cost(cost)); err != nil {
			return Costs{}, err
		}
	}
	if costs.isUnset() {
		costs.Pairs = make(map[ZonePair]Cost) // all zero on purpose: tell it from "not set"
	}
	return costs, nil
}

func (c *Costs) set(key token, cost Cost) error {
	switch key.text {
	case "same-region":
		c.SameRegion = cost
	case "other-region":
		c.OtherRegion = cost
	case "other-cluster":
		c.OtherCluster = cost
	default:
		return c.setPair(key, cost)
	}
	return nil
}

func (c *Costs) setPair(key token, cost Cost) error {
	from, to, found := key.cut(">")
	if !found {
		return key.errorf("unknown cost %q: want same-region, other-region, other-cluster or a pair of zones, a>b", key.text)
	}
	var pair ZonePair
	var err error
	if pair.From, err = from.zone(); err != nil {
		return err
	}
	if pair.To, err = to.zone(); err != nil {
		return err
	}
	if c.Pairs == nil {
		c.Pairs = make(map[ZonePair]Cost)
	}
	c.Pairs[pair] = cost
	return nil
}

// String gives the costs as ParseSnapshot reads them after the word costs: what differs from the defaults, then the
// pairs by zone. It is empty for the zero value.
func (c Costs) String() string {
	if c.isUnset() {
		return ""
	}
	defaults := DefaultCosts()
	all := len(c.Pairs) == 0 && c.SameRegion == defaults.SameRegion &&
		c.OtherRegion == defaults.OtherRegion && c.OtherCluster == defaults.OtherCluster
	var words []string
	for _, entry := range []struct {
		key           string
		cost, without Cost
	}{
		{"same-region", c.SameRegion, defaults.SameRegion},
		{"other-region", c.OtherRegion, defaults.OtherRegion},
		{"other-cluster", c.OtherCluster, defaults.OtherCluster},
	} {
		if all || entry.cost != entry.without {
			words = append(words, entry.key+"="+formatRatio(float64(entry.cost)))
		}
	}
	for _, pair := range slices.SortedFunc(maps.Keys(c.Pairs), compareZonePairs) {
		words = append(words, string(pair.From)+">"+string(pair.To)+"="+formatRatio(float64(c.Pairs[pair])))
	}
	return strings.Join(words, " ")
}

func compareZonePairs(a, b ZonePair) int {
	return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
}
