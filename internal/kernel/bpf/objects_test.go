package bpf_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheObjectsAreMadeOfTheseSources compares sources and objects with what they were when make bpf last made the objects, so
// that neither changes alone. It needs no compiler.
func TestTheObjectsAreMadeOfTheseSources(t *testing.T) {
	text, err := os.ReadFile("checksums.txt")
	if err != nil {
		t.Fatal(err)
	}
	listed := make(map[string]string)
	for line := range strings.Lines(string(text)) {
		if sum, name, ok := strings.Cut(strings.TrimSpace(line), "  "); ok {
			listed[name] = sum
		}
	}
	var files []string
	for _, pattern := range []string{"c/*", "objects_bpf*"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	for _, name := range files {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != listed[name] {
			t.Errorf("%s is not as it was when the objects were made: run make bpf", name)
		}
	}
	if len(files) != len(listed) || len(files) < 6 {
		t.Errorf("%d files are there, %d are listed in checksums.txt: run make bpf", len(files), len(listed))
	}
}
