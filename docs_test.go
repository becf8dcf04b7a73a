package weir_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// documents lists what people read, sorted.
func documents(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "internal/*/README.md"} {
		more, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, more...)
	}
	return found
}

func readDocument(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path) //nolint:gosec // the project's own documents.
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestNamedPathsExist keeps prose true: every path of the project that a document names in backquotes exists, and so does
// every path of deploy in a command.
func TestNamedPathsExist(t *testing.T) {
	named := regexp.MustCompile("`((?:api|cmd|internal|docs|test|deploy)/[A-Za-z0-9_./-]*|[A-Z]+\\.md|[A-Za-z]+\\.mod|[a-z_]+_test\\.go)`")
	commanded := regexp.MustCompile(`(?m)[\s=](deploy/[A-Za-z0-9_./-]+)`)
	found := 0
	for _, doc := range documents(t) {
		text := readDocument(t, doc)
		for _, match := range append(named.FindAllStringSubmatch(text, -1), commanded.FindAllStringSubmatch(text, -1)...) {
			found++
			path := strings.TrimRight(match[1], "/.")
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s names %s, which does not exist", doc, match[1])
			}
		}
	}
	if found == 0 {
		t.Error("no path found in any document: the pattern is broken")
	}
}

// TestLinksLeadSomewhere follows the links between documents, to the heading where they name one.
func TestLinksLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#: ]*)(?:#([^)]*))?\)`)
	found := 0
	for _, doc := range documents(t) {
		for _, match := range link.FindAllStringSubmatch(readDocument(t, doc), -1) {
			found++
			target := doc
			if match[1] != "" {
				target = filepath.Join(filepath.Dir(doc), match[1])
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which does not exist", doc, match[1])
				continue
			}
			if match[2] != "" && !slices.Contains(anchors(readDocument(t, target)), match[2]) {
				t.Errorf("%s links to %s#%s, which is no heading there", doc, match[1], match[2])
			}
		}
	}
	if found == 0 {
		t.Error("no link found in any document: the pattern is broken")
	}
}

// TestDocumentsStayShort holds the length of what people read: a decision is a page, and the guide can be read in an hour.
func TestDocumentsStayShort(t *testing.T) {
	const decisionWords, guideWords = 500, 18_000
	guide, decisions := 0, 0
	var pages []string
	for _, doc := range documents(t) {
		words := len(strings.Fields(readDocument(t, doc)))
		switch filepath.Dir(doc) {
		case filepath.Join("docs", "guide"):
			guide += words
			pages = append(pages, fmt.Sprintf("%s %d", filepath.Base(doc), words))
		case filepath.Join("docs", "adr"):
			decisions++
			if words > decisionWords {
				t.Errorf("%s has %d words, %d are allowed", doc, words, decisionWords)
			}
		}
	}
	if guide > guideWords {
		t.Errorf("docs/guide has %d words in all, %d are allowed: %s", guide, guideWords, strings.Join(pages, ", "))
	}
	if guide == 0 || decisions == 0 {
		t.Errorf("%d words of the guide and %d decisions found: a path is wrong", guide, decisions)
	}
}

// anchors lists how a document's headings are named in links.
func anchors(text string) []string {
	var found []string
	dropped := regexp.MustCompile(`[^a-z0-9 _-]`)
	for _, match := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		found = append(found, strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(match[1]), ""), " ", "-"))
	}
	return found
}
