package scenario

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// chapters splits the users' documentation at its headings, by their text.
func chapters(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../../test/scenarios/README.md")
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	for chapter := range strings.SplitSeq("\n"+string(text), "\n#") {
		heading, body, _ := strings.Cut(strings.TrimLeft(chapter, "#"), "\n")
		all[strings.TrimSpace(heading)] = body
	}
	return all
}

// cells gives the row of a table whose first cell is name in backquotes; nil when there is none.
func cells(body, name string) []string {
	for line := range strings.SplitSeq(body, "\n") {
		row := strings.Split(strings.Trim(line, "|"), "|")
		if strings.TrimSpace(row[0]) == "`"+name+"`" {
			return row
		}
	}
	return nil
}

func TestEveryStatementAndFieldIsDocumentedWithItsDefault(t *testing.T) {
	docs := chapters(t)
	usual := defaults()
	for _, st := range statements(usual) {
		body, ok := docs["`"+st.name+"`"]
		if !ok {
			t.Errorf("statement %s has no chapter", st.name)
			continue
		}
		fields := slices.DeleteFunc(st.keys, func(k key) bool { return k.name == "" })
		for _, k := range fields {
			row := cells(body, k.name)
			if row == nil {
				t.Errorf("field %s of %s has no row", k.name, st.name)
				continue
			}
			want := "`" + k.print() + "`"
			switch {
			case k.flag:
				want = "no"
			case k.print() == "":
				want = "none"
			}
			if got := strings.TrimSpace(row[len(row)-1]); got != want {
				t.Errorf("the default of %s.%s is documented as %s, it is %s", st.name, k.name, got, want)
			}
		}
		rows := strings.Count(body, "\n| `")
		if st.name == "server" {
			rows -= 4 // the distributions
		}
		if rows != len(fields) {
			t.Errorf("%s has %d rows of fields and %d fields", st.name, rows, len(fields))
		}
	}
	for _, kind := range []Kind{Constant, Exponential, Lognormal, Bimodal} {
		if !strings.Contains(docs["`server`"], "\n| `"+string(kind)+":TIME") {
			t.Errorf("distribution %s is not documented", kind)
		}
	}
	for _, unit := range units() {
		if !strings.Contains(docs["`request`"], "`"+unit.name+"`") && unit.name != "KB" {
			t.Errorf("unit %s is not documented", unit.name)
		}
	}
	if want := "`" + formatTime(usual.Length) + "`"; !strings.Contains(docs["`length`"], "Default: "+want) {
		t.Errorf("the default length %s is not documented", want)
	}
}

func TestEverySectionAndVerbIsDocumented(t *testing.T) {
	docs := chapters(t)
	for _, name := range []string{clusterSection, runSection, stepsSection, explainSection, resultsSection} {
		if cells(docs["A file"], name) == nil {
			t.Errorf("section %s has no row", name)
		}
	}
	for _, v := range verbs() {
		row := cells(docs["Steps"], string(v.name))
		if row == nil {
			t.Errorf("verb %s has no row", v.name)
			continue
		}
		if got := strings.Trim(strings.TrimSpace(row[1]), "`"); got != v.form {
			t.Errorf("after %s PLACE comes %q, documented is %q", v.name, v.form, got)
		}
	}
}

// TestExamplesOfTheDocumentationAreRead plays the reader who copies them.
func TestExamplesOfTheDocumentationAreRead(t *testing.T) {
	const (
		before  = "Example\n-- cluster --\n"
		cluster = "nodes a:4x2 b:4x2 c:4x2\nservice web\nendpoints a:6 b:6 c:6 b:1{cluster=west}\n"
		run     = "-- run --\nclients a:8 b:8 c:8\nrate a:1 b:1 c:1\n"
	)
	found := 0
	for heading, body := range chapters(t) {
		for i, block := range strings.Split(body, "\n```\n") {
			if i%2 == 0 { // between the examples
				continue
			}
			found++
			text := before + cluster + run + block
			switch heading {
			case "A file":
				text = block
			case "The cluster":
				text = before + block + "\n-- run --\nclients a:8\nrate a:1\n"
			case "`clients`":
				text = before + cluster + "-- run --\nrate a:1 b:1 c:1\n" + block
			case "`rate`":
				text = before + cluster + "-- run --\nclients a:8 b:8 c:8\n" + block
			case "Steps":
				text = before + cluster + run + "-- steps --\n" + block
			}
			if _, err := Parse("README.md", []byte(text)); err != nil {
				t.Errorf("an example of %q is refused: %v\n%s", heading, err, text)
			}
		}
	}
	const least = 14
	if found < least {
		t.Errorf("found %d examples, want %d or more: the pattern is broken", found, least)
	}
}

func TestTheStandardSetIsListed(t *testing.T) {
	paths, err := filepath.Glob("../../../test/scenarios/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	intro := chapters(t)["Scenarios"]
	var names []string
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".txtar")
		names = append(names, name)
		if cells(intro, name) == nil {
			t.Errorf("scenario %s has no row", name)
		}
	}
	for line := range strings.SplitSeq(intro, "\n") {
		if name, _, ok := strings.Cut(strings.TrimPrefix(line, "| `"), "` |"); ok && !slices.Contains(names, name) {
			t.Errorf("%s is listed and not there", name)
		}
	}
}
