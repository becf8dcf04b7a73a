package l7

import (
	"net/netip"
	"time"

	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// Observer is told what the proxy did. Its methods are called by many goroutines at once and on the path of requests:
// they must not block.
type Observer interface {
	// Request is called once for every HTTP request and every TCP connection, when it is over.
	Request(Result)
	// Connections is called with 1 when a client's connection is accepted and with -1 when it is closed.
	Connections(delta int)
}

// Result is how a request, or a TCP connection, went.
type Result struct {
	Protocol Protocol
	Endpoint netip.AddrPort // of the last attempt; invalid when there was none
	Zone     topology.Zone  // of Endpoint
	Cost     topology.Cost  // of one request to Endpoint
	Attempts int            // endpoints tried
	Code     int            // HTTP status sent to the client; 0 for TCP and when the client left before
	Status   GRPCStatus     // of a gRPC call; NoStatus otherwise
	Outcome  pick.Outcome   // as the client experienced it
	Reason   reason.Code    // why the proxy answered itself; empty when the endpoint's answer was passed on
	Duration time.Duration  // from the request's head to the end of the response
	In, Out  int64          // bytes of the body from the client and to it
}

// noObserver is the Observer of upstreams without one.
type noObserver struct{}

func (noObserver) Request(Result)  {}
func (noObserver) Connections(int) {}
