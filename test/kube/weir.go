package kube

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Weir starts the weir program, built from the tree under test, and keeps its log. Several can run at once: their names
// must differ.
func (c *Cluster) Weir(name string, args ...string) *Process {
	c.tb.Helper()
	return c.start(command{name: name, program: c.WeirProgram(), args: args})
}

// WeirProgram builds weir once for a cluster and gives the path of the program.
func (c *Cluster) WeirProgram() string {
	c.tb.Helper()
	path := filepath.Join(c.folder, "weir")
	c.weirOnce.Do(func() {
		build := exec.CommandContext(c.tb.Context(), "go", "build", "-trimpath", "-o", path, "github.com/weir-lb/weir/cmd/weir")
		build.Env = append(os.Environ(), "CGO_ENABLED=0") // as make build does
		if out, err := build.CombinedOutput(); err != nil {
			c.tb.Fatalf("go build: %v\n%s", err, out)
		}
	})
	return path
}

// RunWeir runs the weir program to its end and gives what it prints. A failure is an error with its output.
func (c *Cluster) RunWeir(args ...string) (string, error) {
	c.tb.Helper()
	out, err := exec.CommandContext(c.tb.Context(), c.WeirProgram(), args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("weir %q: %w\n%s", args, err, out)
	}
	return string(out), nil
}
