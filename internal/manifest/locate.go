package manifest

import (
	"sort"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/weir-lb/weir/internal/core/reason"
)

// at gives the value of a key in a mapping; nil when there is none.
func at(node *yaml.Node, key string) *yaml.Node {
	if node = resolve(node); node.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == key {
			return node.Content[i+1]
		}
	}
	return nil
}

// resolve follows aliases.
func resolve(node *yaml.Node) *yaml.Node {
	for node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	return node
}

// position gives where a field stands.
func (d document) position(field string) reason.Position { return d.positionOf(find(d.root, field)) }

func (d document) positionOf(node *yaml.Node) reason.Position {
	return reason.Position{File: d.file, Line: node.Line, Column: node.Column}
}

// find gives the node at a path like spec.ports[0].port or metadata.labels[weir.dev/distribution], or at the deepest part of
// it that is there: its key, which is where a person looks for it, or itself in a list.
func find(root *yaml.Node, path string) *yaml.Node {
	node, found := root, root
	for path != "" {
		var step string
		step, path = cutStep(path)
		next := at(node, step)
		if node = resolve(node); next == nil && node.Kind == yaml.SequenceNode {
			if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(node.Content) {
				next = node.Content[i]
			}
		}
		if next == nil {
			return found
		}
		node, found = next, keyOf(node, next)
	}
	return found
}

// keyOf gives the key of a value in a mapping, else the value.
func keyOf(node, value *yaml.Node) *yaml.Node {
	for i := 0; node.Kind == yaml.MappingNode && i+1 < len(node.Content); i += 2 {
		if node.Content[i+1] == value && node.Content[i].Line > 0 {
			return node.Content[i]
		}
	}
	return value
}

// cutStep takes the first key or index from a path.
func cutStep(path string) (step, rest string) {
	if inner, found := strings.CutPrefix(path, "["); found {
		step, rest, _ = strings.Cut(inner, "]")
		return step, strings.TrimPrefix(rest, ".")
	}
	i := strings.IndexAny(path, ".[")
	if i < 0 {
		return path, ""
	}
	return path[:i], strings.TrimPrefix(path[i:], ".")
}

// culprit finds the field for which check fails: the path and the node of the smallest part of root that is to blame.
// It cuts root down to that part, which is of no more use afterwards.
//
// The decoders of Kubernetes types name neither line nor index, and some not even the field; trying with less and less
// needs some fifty attempts and asks nothing of them.
func culprit(root *yaml.Node, check func() error) (path string, found *yaml.Node) {
	node, found := resolve(root), root
	for range maxDepth { // an alias to a node that it is in would have no end
		content := node.Content
		size := 1 // nodes per child
		if node.Kind == yaml.MappingNode {
			size = 2
		}
		children := len(content) / size
		node.Content = nil
		if check() != nil {
			return path, found // the node itself is of the wrong type
		}
		first := sort.Search(children, func(i int) bool {
			node.Content = content[:(i+1)*size]
			return check() != nil
		})
		if first == children {
			return path, found
		}
		node.Content = content[:(first+1)*size]
		child := node.Content[first*size]
		found = child
		if size == 2 {
			path = strings.TrimPrefix(path+"."+child.Value, ".")
			child = node.Content[first*size+1]
		} else {
			path += "[" + strconv.Itoa(first) + "]"
		}
		node = resolve(child)
	}
	return path, found
}

// copyOf copies a node and what is in it, but not what its aliases stand for.
func copyOf(node *yaml.Node, depth int) *yaml.Node {
	if depth == 0 {
		return node // the encoder refuses it
	}
	whole := *node
	whole.Content = make([]*yaml.Node, len(node.Content))
	for i, child := range node.Content {
		whole.Content[i] = copyOf(child, depth-1)
	}
	return &whole
}

// empty sets the value at a path, which is there, to null: a list keeps its other indexes.
func empty(root *yaml.Node, path string) {
	node := root
	for path != "" {
		var step string
		step, path = cutStep(path)
		node = resolve(node)
		next := at(node, step)
		if i, err := strconv.Atoi(step); next == nil && err == nil && i >= 0 && i < len(node.Content) {
			next = node.Content[i]
		}
		if next == nil {
			return
		}
		node = next
	}
	*node = yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null", Line: node.Line, Column: node.Column}
}
