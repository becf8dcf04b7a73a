// Package golden compares text with files that a person can judge. It is for tests; with the flag -update it rewrites the
// files instead, and the difference is reviewed as a change of behaviour.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

//nolint:gochecknoglobals // a flag has to exist before the test's main function parses the command line.
var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// Check reports the difference between got and the file testdata/name of the package under test.
func Check(tb testing.TB, name, got string) {
	tb.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	want, err := os.ReadFile(path) //nolint:gosec // a test's own file.
	if err != nil {
		tb.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		tb.Errorf("%s differs (-want +got):\n%s", path, diff)
	}
}
