// Package peers_test runs weir beside other proxies, as processes on loopback addresses, with raw clients and endpoints that
// record every byte: request smuggling, bad responses, WebSocket, and processor time per request. What weir does is checked;
// what HAProxy, Envoy and nginx do is printed beside it by make smuggling and make peers.
package peers_test

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
	folder, err := os.MkdirTemp("", "weir-peers-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(folder) }()
	program = filepath.Join(folder, "weir")
	build := exec.Command("go", "build", "-o", program, "../../cmd/weir")  //nolint:noctx // ends when the compiler does.
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath") // as make build does
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}
