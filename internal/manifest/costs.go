package manifest

import (
	"context"
	"fmt"
	"math"

	"go.yaml.in/yaml/v3"

	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// ReadCosts reads a cost table:
//
//	sameRegion: 1
//	otherRegion: 4
//	otherCluster: 2
//	pairs:
//	- {from: zone-a, to: zone-b, cost: 3}
//
// What is missing has its default. Errors: a key that is not known or occurs twice, a cost that is no finite number of
// at least 0 and a pair that occurs twice are each a *reason.Finding with line and field.
func ReadCosts(path string) (topology.Costs, error) {
	f, err := loadFile(path, nil, defaultMaxBytes)
	if err != nil {
		return topology.Costs{}, fmt.Errorf("read costs: %w", err)
	}
	documents, err := parse(context.Background(), f)
	if err != nil {
		return topology.Costs{}, err
	}
	if len(documents) != 1 {
		return topology.Costs{}, broken(reason.Position{File: f.name}, "", "want one document, got %d", len(documents))
	}
	t := costTable{document: documents[0], costs: topology.DefaultCosts()}
	if err := t.each("", t.root, t.entry); err != nil {
		return topology.Costs{}, err
	}
	if t.costs.Pairs == nil && t.costs.SameRegion == 0 && t.costs.OtherRegion == 0 && t.costs.OtherCluster == 0 {
		t.costs.Pairs = make(map[topology.ZonePair]topology.Cost) // all zero on purpose, not "take the defaults"
	}
	return t.costs, nil
}

type costTable struct {
	document
	costs topology.Costs
}

// each calls do for every key of a mapping, with the path of its value.
func (t *costTable) each(path string, node *yaml.Node, do func(path, key string, value *yaml.Node) error) error {
	if node = resolve(node); node.Kind != yaml.MappingNode {
		return t.errorAt(path, "want a mapping")
	}
	seen := make(map[string]bool)
	prefix := path
	if path != "" {
		prefix += "."
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i].Value
		if seen[key] {
			return broken(t.positionOf(node.Content[i]), prefix+key, "the key is there already: remove one")
		}
		seen[key] = true
		if err := do(prefix+key, key, resolve(node.Content[i+1])); err != nil {
			return err
		}
	}
	return nil
}

func (t *costTable) entry(path, key string, value *yaml.Node) (err error) {
	switch key {
	case "sameRegion":
		t.costs.SameRegion, err = t.cost(path, value)
	case "otherRegion":
		t.costs.OtherRegion, err = t.cost(path, value)
	case "otherCluster":
		t.costs.OtherCluster, err = t.cost(path, value)
	case "pairs":
		return t.pairs(path, value)
	default:
		return t.errorAt(path, "unknown key: want sameRegion, otherRegion, otherCluster or pairs")
	}
	return err
}

func (t *costTable) cost(path string, value *yaml.Node) (topology.Cost, error) {
	var cost float64
	isNumber := value.ShortTag() == "!!int" || value.ShortTag() == "!!float"
	if !isNumber || value.Decode(&cost) != nil || !(cost >= 0) || math.IsInf(cost, 0) {
		return 0, t.errorAt(path, "want a finite number of at least 0, got %q", value.Value)
	}
	return topology.Cost(cost), nil
}

func (t *costTable) pairs(path string, list *yaml.Node) error {
	if list.Kind != yaml.SequenceNode {
		return t.errorAt(path, "want a list of {from: ZONE, to: ZONE, cost: NUMBER}")
	}
	for i, item := range list.Content {
		if err := t.pair(fmt.Sprintf("%s[%d]", path, i), item); err != nil {
			return err
		}
	}
	return nil
}

func (t *costTable) pair(path string, item *yaml.Node) error {
	var pair topology.ZonePair
	cost := topology.Cost(-1)
	err := t.each(path, item, func(path, key string, value *yaml.Node) (err error) {
		switch key {
		case "from":
			pair.From, err = t.zone(path, value)
		case "to":
			pair.To, err = t.zone(path, value)
		case "cost":
			cost, err = t.cost(path, value)
		default:
			err = t.errorAt(path, "unknown key: want from, to or cost")
		}
		return err
	})
	if err != nil {
		return err
	}
	if pair.From == "" || pair.To == "" || cost < 0 {
		return t.errorAt(path, "incomplete: a pair has from, to and cost")
	}
	if _, ok := t.costs.Pairs[pair]; ok {
		return t.errorAt(path, "the pair from %s to %s is there already: remove one", pair.From, pair.To)
	}
	if t.costs.Pairs == nil {
		t.costs.Pairs = make(map[topology.ZonePair]topology.Cost)
	}
	t.costs.Pairs[pair] = cost
	return nil
}

func (t *costTable) zone(path string, value *yaml.Node) (topology.Zone, error) {
	z, err := topology.ParseZone(value.Value)
	if err != nil {
		return "", t.errorAt(path, "%s", err)
	}
	return z, nil
}
