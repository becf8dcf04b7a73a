package kube

import (
	"fmt"
	"os"
	"os/exec"
)

// Weir starts the weir program, built from the tree under test, and keeps its log. Several can run at once: their names
// must differ.
func (c *Cluster) Weir(name string, args ...string) *Process {
	c.tb.Helper()
	return c.start(command{name: name, program: c.WeirProgram(), args: args})
}

// WeirProgram is the path of the weir program, which WEIR_BIN says: built once for all tests, from the tree under test.
func (c *Cluster) WeirProgram() string {
	c.tb.Helper()
	path := os.Getenv("WEIR_BIN")
	if _, err := exec.LookPath(path); err != nil {
		c.tb.Fatalf("WEIR_BIN is no program (%v): run the tests by `make e2e`, or set it to what `make build` built", err)
	}
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
