package manifest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/weir-lb/weir/internal/core/reason"
)

// document is one document of a file, with the lines of everything in it.
type document struct {
	file string
	root *yaml.Node
}

// maxDepth bounds how deep a document nests: the deepest Kubernetes type needs about 20.
const maxDepth = 100

// parse splits a file into its documents; empty ones are left out. It gives the error of ctx once that is done.
func parse(ctx context.Context, f file) ([]document, error) {
	if isJSON := bytes.HasPrefix(bytes.TrimLeft(f.data, " \t\r\n"), []byte("{")); isJSON {
		documents, err := parseJSON(f)
		// YAML may begin with a brace, too.
		if err == nil || filepath.Ext(f.name) == ".json" {
			return documents, err
		}
	}
	return parseYAML(ctx, f)
}

func parseYAML(ctx context.Context, f file) ([]document, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(withoutEmpty(f.data)))
	var documents []document
	for {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		var root yaml.Node
		err := decoder.Decode(&root)
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return nil, yamlError(f.name, err)
		}
		content := &root
		if root.Kind == yaml.DocumentNode {
			content = root.Content[0]
		}
		if content.Kind == 0 || content.ShortTag() == "!!null" {
			continue
		}
		documents = append(documents, document{file: f.name, root: content})
	}
}

// separator is the line between two documents.
const separator = "---"

// withoutEmpty gives YAML with blanks in place of each separator that follows another one with nothing in between: the decoder
// takes microseconds for each empty document, of which a file of some MiB may have millions. Lines keep their numbers.
func withoutEmpty(data []byte) []byte {
	isSeparator := func(line []byte) bool { return string(bytes.TrimRight(line, " \t\r")) == separator }
	isAfter, isOwn := false, false // a separator with nothing after it; data is a copy
	for start := 0; start < len(data); {
		line := data[start:]
		if end := bytes.IndexByte(line, '\n'); end >= 0 {
			line = line[:end]
		}
		switch {
		case isSeparator(line) && isAfter:
			if !isOwn {
				data, isOwn = bytes.Clone(data), true
			}
			copy(data[start:], "   ")
		case isSeparator(line):
			isAfter = true
		case len(bytes.TrimSpace(line)) > 0:
			isAfter = false
		}
		start += len(line) + 1
	}
	return data
}

// yamlError takes the line out of an error's text, which is the only place where the YAML library puts it.
//
// Workaround for go.yaml.in/yaml v3.0.5: it counts lines from 0 in what its parser says, from 1 in what its scanner
// says, and leaves out a 0. The parser's texts are known by their beginning. The golden of a broken file will differ
// when that is mended.
func yamlError(name string, err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	at := reason.Position{File: name, Line: 1}
	if found := regexp.MustCompile(`^line (\d+): `).FindStringSubmatch(text); found != nil {
		text = strings.TrimPrefix(text, found[0])
		if line, err := strconv.Atoi(found[1]); err == nil {
			at.Line = line
		}
		for _, of := range []string{"key", "'-' indicator", "node content", "',' or", "<"} {
			if strings.HasPrefix(text, "did not find expected "+of) {
				at.Line++
			}
		}
	}
	return broken(at, "", "%s", text)
}

// jsonParser builds the same tree from JSON as there is for YAML. The YAML library reads most JSON, but refuses tabs.
type jsonParser struct {
	file     string
	decoder  *json.Decoder
	newlines []int64 // offsets of line ends
}

func parseJSON(f file) ([]document, error) {
	p := jsonParser{file: f.name, decoder: json.NewDecoder(bytes.NewReader(f.data))}
	p.decoder.UseNumber()
	for i, c := range f.data {
		if c == '\n' {
			p.newlines = append(p.newlines, int64(i))
		}
	}
	var documents []document
	for {
		token, err := p.decoder.Token()
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		var root *yaml.Node
		if err == nil {
			root, err = p.value(token, 0)
		}
		if err != nil {
			return nil, broken(reason.Position{File: f.name, Line: p.line()}, "", "%s", jsonError(err))
		}
		documents = append(documents, document{file: f.name, root: root})
	}
}

func jsonError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the text ends before its last brace")
	}
	return err
}

// line gives the line at which the decoder is.
func (p *jsonParser) line() int {
	offset := p.decoder.InputOffset()
	return 1 + sort.Search(len(p.newlines), func(i int) bool { return p.newlines[i] >= offset })
}

func (p *jsonParser) value(token json.Token, depth int) (*yaml.Node, error) {
	node := &yaml.Node{Kind: yaml.ScalarNode, Line: p.line()}
	switch v := token.(type) {
	case json.Delim:
		return node, p.children(node, v, depth)
	case string:
		node.Tag, node.Value = "!!str", v
	case json.Number:
		node.Tag, node.Value = "!!float", v.String()
	case bool:
		node.Tag, node.Value = "!!bool", strconv.FormatBool(v)
	default:
		node.Tag, node.Value = "!!null", "null"
	}
	return node, nil
}

// children reads what is between the delimiter open and its end into node.
func (p *jsonParser) children(node *yaml.Node, open json.Delim, depth int) error {
	if depth == maxDepth {
		return fmt.Errorf("nested deeper than %d", maxDepth)
	}
	node.Kind, node.Tag = yaml.SequenceNode, "!!seq"
	if open == '{' {
		node.Kind, node.Tag = yaml.MappingNode, "!!map"
	}
	for {
		token, err := p.decoder.Token()
		if err != nil {
			return err
		}
		if end, ok := token.(json.Delim); ok && (end == '}' || end == ']') {
			return nil
		}
		child, err := p.value(token, depth+1)
		if err != nil {
			return err
		}
		node.Content = append(node.Content, child)
	}
}
