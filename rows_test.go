package weir_test

import (
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// differences is the document that has a line for each row of the reference.
const differences = "docs/policy-differences.md"

// rows lists the ids of the reference: of the specification, of what was shipped, of the algorithms, and of the
// documents on hints and HAZL.
func rows() []string {
	var ids []string
	for letter, ranges := range map[string][][2]int{
		"S": {{1, 8}, {10, 26}, {30, 31}, {40, 44}, {50, 51}},
		"K": {{1, 13}, {20, 30}, {40, 58}, {60, 65}},
		"D": {{1, 13}},
		"A": {{1, 11}, {20, 29}, {40, 46}, {50, 54}, {60, 64}, {70, 77}, {80, 82}},
	} {
		for _, r := range ranges {
			for n := r[0]; n <= r[1]; n++ {
				ids = append(ids, fmt.Sprintf("%s-%02d", letter, n))
			}
		}
	}
	slices.Sort(ids)
	return ids
}

// tests gives the names of all tests of the project.
func tests(t *testing.T) map[string]bool {
	t.Helper()
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example)\w*)\(`)
	names := make(map[string]bool)
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != "." && strings.HasPrefix(entry.Name(), "."):
			return filepath.SkipDir
		case strings.HasSuffix(path, "_test.go"):
			for _, found := range declared.FindAllStringSubmatch(readDocument(t, path), -1) {
				names[found[1]] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestEveryRowOfTheReferenceIsTestedOrADifference keeps the list of differences whole and true: each row has a line, each
// line has a test or a reason, and each test that the document names exists.
func TestEveryRowOfTheReferenceIsTestedOrADifference(t *testing.T) {
	text := readDocument(t, differences)
	named := regexp.MustCompile("`((?:Test|Fuzz|Example)[A-Za-z0-9_]*)`")
	lines := make(map[string]bool)
	for _, found := range regexp.MustCompile(`(?m)^\| ([SKAD]-\d\d) \|(.*)\|(.*)\|(.*)\|$`).FindAllStringSubmatch(text, -1) {
		id, about, tested, reason := found[1], strings.TrimSpace(found[2]), found[3], strings.TrimSpace(found[4])
		if lines[id] {
			t.Errorf("%s has two lines", id)
		}
		lines[id] = true
		if about == "" || !named.MatchString(tested) && reason == "" {
			t.Errorf("%s has neither a test nor a reason", id)
		}
	}
	if got := slices.Sorted(maps.Keys(lines)); !slices.Equal(got, rows()) {
		t.Errorf("the document has the rows\n%v\nwant\n%v", got, rows())
	}
	known := tests(t)
	for _, found := range named.FindAllStringSubmatch(text, -1) {
		if !known[found[1]] {
			t.Errorf("%s names %s, which is no test", differences, found[1])
		}
	}
}
