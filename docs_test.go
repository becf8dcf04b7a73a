package weir_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestNamedPathsExist keeps prose true: every path of the project that a document names in backquotes or links exists.
func TestNamedPathsExist(t *testing.T) {
	named := regexp.MustCompile("(?:`|\\]\\()((?:api|cmd|internal|docs|test|deploy)/[A-Za-z0-9_./-]*|[A-Z]+\\.md|[A-Za-z]+\\.mod|[a-z_]+_test\\.go)(?:`|\\))")
	docs, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"docs/*/*.md", "internal/*/README.md"} {
		more, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, more...)
	}
	found := 0
	for _, doc := range docs {
		text, err := os.ReadFile(doc) //nolint:gosec // the project's own documents.
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range named.FindAllStringSubmatch(string(text), -1) {
			found++
			path := strings.TrimRight(match[1], "/.")
			if _, err := os.Stat(path); err == nil {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(doc), path)); err != nil {
				t.Errorf("%s names %s, which does not exist", doc, match[1])
			}
		}
	}
	if found == 0 {
		t.Error("no path found in any document: the pattern is broken")
	}
}
