package manifest

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// maxRepeated bounds, in bytes, what aliases may repeat in all files together: more than two of the largest objects
// that Kubernetes takes (1.5 MiB is etcd's limit), and far from what a chain of aliases to aliases makes out of a few
// lines.
const maxRepeated = 4 << 20

// encoder writes a tree as JSON, for the decoder that knows the Kubernetes types. Aliases and merge keys are resolved.
type encoder struct {
	file     string
	out      bytes.Buffer
	depth    int
	aliases  int // how many aliases the current node is in
	repeated int // bytes written from within aliases
}

func (e *encoder) errorAt(node *yaml.Node, format string, args ...any) error {
	return broken(document{file: e.file}.positionOf(node), "", format, args...)
}

func (e *encoder) value(node *yaml.Node) error {
	if e.depth++; e.depth > maxDepth {
		return e.errorAt(node, "nested deeper than %d", maxDepth)
	}
	defer func() { e.depth-- }()
	if e.aliases > 0 {
		// Sixteen stands for the punctuation and the memory that every node takes.
		if e.repeated += len(node.Value) + 16; e.repeated > maxRepeated {
			return e.errorAt(node, "aliases repeat too much: write the object out")
		}
	}
	switch node.Kind {
	case yaml.AliasNode:
		e.aliases++
		defer func() { e.aliases-- }()
		return e.value(node.Alias)
	case yaml.MappingNode:
		return e.mapping(node)
	case yaml.SequenceNode:
		e.out.WriteByte('[')
		for i, child := range node.Content {
			if i > 0 {
				e.out.WriteByte(',')
			}
			if err := e.value(child); err != nil {
				return err
			}
		}
		e.out.WriteByte(']')
		return nil
	default:
		return e.scalar(node)
	}
}

func (e *encoder) mapping(node *yaml.Node) error {
	e.out.WriteByte('{')
	written := make(map[string]bool)
	var merges []*yaml.Node
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if isMerge(key) {
			merges = append(merges, value)
			continue
		}
		if key.Kind != yaml.ScalarNode {
			return e.errorAt(key, "a key is no plain text")
		}
		if written[key.Value] {
			return e.errorAt(key, "key %q is there already: remove one", key.Value)
		}
		if err := e.pair(key, value, written); err != nil {
			return err
		}
	}
	for _, value := range merges {
		if err := e.merge(value, written); err != nil {
			return err
		}
	}
	e.out.WriteByte('}')
	return nil
}

func isMerge(key *yaml.Node) bool {
	return key.Kind == yaml.ScalarNode && key.Value == "<<" && (key.Tag == "" || key.ShortTag() == "!!merge")
}

func (e *encoder) pair(key, value *yaml.Node, written map[string]bool) error {
	if len(written) > 0 {
		e.out.WriteByte(',')
	}
	written[key.Value] = true
	if err := e.text(key.Value); err != nil {
		return err
	}
	e.out.WriteByte(':')
	return e.value(value)
}

// merge writes those pairs of a mapping, or of several, whose keys are not written yet.
func (e *encoder) merge(node *yaml.Node, written map[string]bool) error {
	if e.depth++; e.depth > maxDepth {
		return e.errorAt(node, "nested deeper than %d", maxDepth)
	}
	e.aliases++
	defer func() { e.depth, e.aliases = e.depth-1, e.aliases-1 }()
	if e.repeated += 16; e.repeated > maxRepeated {
		return e.errorAt(node, "merge keys repeat too much: write the object out")
	}
	switch node.Kind {
	case yaml.AliasNode:
		return e.merge(node.Alias, written)
	case yaml.SequenceNode:
		for _, child := range node.Content {
			if err := e.merge(child, written); err != nil {
				return err
			}
		}
		return nil
	case yaml.MappingNode:
		return e.mergePairs(node, written)
	default:
		return e.errorAt(node, "a merge key wants a mapping")
	}
}

func (e *encoder) mergePairs(node *yaml.Node, written map[string]bool) error {
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		var err error
		switch {
		case isMerge(key):
			err = e.merge(value, written)
		case key.Kind != yaml.ScalarNode:
			err = e.errorAt(key, "a key is no plain text")
		case !written[key.Value]:
			err = e.pair(key, value, written)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// scalar writes a value with the type that YAML 1.2 gives it; times and binary data stay the text that they are.
func (e *encoder) scalar(node *yaml.Node) error {
	switch node.ShortTag() {
	case "!!null":
		e.out.WriteString("null")
		return nil
	case "!!bool":
		var b bool
		if err := node.Decode(&b); err != nil {
			return e.errorAt(node, "%q is not true or false", node.Value)
		}
		e.out.WriteString(strconv.FormatBool(b))
		return nil
	case "!!int", "!!float":
		return e.number(node)
	default:
		return e.text(node.Value)
	}
}

func (e *encoder) number(node *yaml.Node) error {
	if json.Valid([]byte(node.Value)) {
		e.out.WriteString(node.Value)
		return nil
	}
	var whole int64 // as in 0x1F or 1_000
	if node.ShortTag() == "!!int" && node.Decode(&whole) == nil {
		e.out.WriteString(strconv.FormatInt(whole, 10))
		return nil
	}
	var f float64
	if err := node.Decode(&f); err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return e.errorAt(node, "%q is no finite number", node.Value)
	}
	e.out.WriteString(strconv.FormatFloat(f, 'g', -1, 64))
	return nil
}

func (e *encoder) text(s string) error {
	quoted, err := json.Marshal(s)
	e.out.Write(quoted)
	return err
}
