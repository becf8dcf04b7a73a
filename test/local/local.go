// Package local gives tests what they take from this machine: weir as a program, and ports.
package local

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Run builds weir, as make build does, puts its path into program and runs the tests of a folder two below the top; it gives
// their exit status.
func Run(m *testing.M, program *string) int {
	folder, err := os.MkdirTemp("", "weir-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(folder) }()
	*program = filepath.Join(folder, "weir")
	build := exec.Command("go", "build", "-o", *program, "../../cmd/weir") //nolint:noctx // ends when the compiler does.
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// FreePort finds a port that is free on an address. Another process could take it before it is used; none does on addresses
// of 127/8 that only these tests use.
func FreePort(tb testing.TB, ip string) uint16 {
	tb.Helper()
	l, err := net.Listen("tcp", ip+":0") //nolint:noctx // binds at once.
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return netip.MustParseAddrPort(l.Addr().String()).Port()
}
