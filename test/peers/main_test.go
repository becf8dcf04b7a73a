// Package peers_test runs weir beside other proxies, as processes on loopback addresses, with raw clients and endpoints that
// record every byte: request smuggling, bad responses, WebSocket, and processor time per request. What weir does is checked;
// what HAProxy, Envoy and nginx do is printed beside it by make smuggling and make peers.
package peers_test

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
