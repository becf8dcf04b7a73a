// Package e2e_test runs the weir program as an operator does: built, as processes of their own that act as the nodes of a
// cluster, from one folder of manifests, with real endpoints behind it and clients that know nothing of it before it.
package e2e_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// program is where TestMain built weir.
var program string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	folder, err := os.MkdirTemp("", "weir-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(folder) }()
	program = filepath.Join(folder, "weir")
	build := exec.Command("go", "build", "-o", program, "../../cmd/weir") //nolint:noctx // ends when the compiler does.
	build.Env = append(os.Environ(), "CGO_ENABLED=0")                     // as make build does
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}
