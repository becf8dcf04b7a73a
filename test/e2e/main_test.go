// Package e2e_test runs the weir program as an operator does: built, as processes of their own that act as the nodes of a
// cluster, from one folder of manifests, with real endpoints behind it and clients that know nothing of it before it.
package e2e_test

import (
	"flag"
	"os"
	"testing"

	"github.com/weir-lb/weir/test/local"
)

// program is where TestMain built weir.
var program string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(local.Run(m, &program))
}
