package pick

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"
	"time"

	"google.golang.org/grpc"
	_ "google.golang.org/grpc/balancer/ringhash" // what is compared with
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/experimental/balancer/weight"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/resolver/ringhash"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/weir-lb/weir/internal/core/hash"
)

// serve starts a gRPC server that answers anything, and gives its address.
func serve(t *testing.T) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		m := new(emptypb.Empty)
		if err := stream.RecvMsg(m); err != nil {
			return err
		}
		return stream.SendMsg(m)
	}))
	done := make(chan error)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return netip.MustParseAddrPort(l.Addr().String())
}

// refuse gives an address that is taken but where nobody listens: a connection's own end.
func refuse(t *testing.T, to netip.AddrPort) netip.AddrPort {
	t.Helper()
	c, err := net.Dial("tcp", to.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return netip.MustParseAddrPort(c.LocalAddr().String())
}

// dial makes a gRPC client that balances over the targets by a ring of its own, following the header x-key.
func dial(t *testing.T, c *Config, targets []Target) *grpc.ClientConn {
	t.Helper()
	r := manual.NewBuilderWithScheme("weir")
	var state resolver.State
	for _, target := range targets {
		e := resolver.Endpoint{Addresses: []resolver.Address{{Addr: target.Addr.String()}}}
		e = weight.Set(e, weight.EndpointInfo{Weight: max(1, target.Weight)})
		state.Endpoints = append(state.Endpoints, ringhash.SetHashKey(e, target.HashKey))
	}
	r.InitialState(state)
	config := fmt.Sprintf(
		`{"loadBalancingConfig":[{"ring_hash_experimental":{"minRingSize":%d,"maxRingSize":%d,"requestHashHeader":"x-key"}}]}`,
		c.MinRingSize, c.MaxRingSize)
	conn, err := grpc.NewClient("weir:///", grpc.WithResolvers(r), grpc.WithDefaultServiceConfig(config),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// reach makes a call with a key and gives the address of who answered.
func reach(t *testing.T, conn *grpc.ClientConn, key string) netip.AddrPort {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ctx = metadata.AppendToOutgoingContext(ctx, "x-key", key)
	var p peer.Peer
	err := conn.Invoke(ctx, "/weir.test/Any", new(emptypb.Empty), new(emptypb.Empty), grpc.Peer(&p), grpc.WaitForReady(true))
	if err != nil {
		t.Fatalf("call with key %s: %v", key, err)
	}
	return netip.MustParseAddrPort(p.Addr.String())
}

// TestKeysReachWhomGRPCWouldReach compares with gRPC's own ring, driven by real calls to real servers, some of which refuse.
func TestKeysReachWhomGRPCWouldReach(t *testing.T) {
	random := rand.New(rand.NewPCG(51, 52))
	servers := make([]netip.AddrPort, 12)
	for i := range servers {
		servers[i] = serve(t)
	}
	for round := range 10 {
		random.Shuffle(len(servers), func(i, j int) { servers[i], servers[j] = servers[j], servers[i] })
		targets := make([]Target, 1+random.IntN(len(servers)))
		for i := range targets {
			targets[i].Addr = servers[i]
			if round%2 == 1 {
				targets[i].Weight = 1 + random.Uint32N(9)
			}
			if round%3 == 2 {
				targets[i].HashKey = fmt.Sprintf("db-%d", i)
			}
		}
		refusing := 0
		if round >= 5 {
			refusing = 1 + random.IntN(3)
			for range refusing {
				targets = append(targets, Target{Addr: refuse(t, servers[0])})
			}
		}
		c := &Config{Algorithm: RingHash, MinRingSize: 1 + random.Uint64N(1500), MaxRingSize: 4096}
		endpoints := crowd(targets)
		for _, e := range endpoints[len(endpoints)-refusing:] {
			e.standing.Store(out)
		}
		p := newPicker(c, endpoints, new(counter))
		conn := dial(t, c, targets)
		for range 150 {
			key := fmt.Sprintf("key-%d", random.Uint64())
			want := reach(t, conn, key)
			if got := seek(t, p, asks(hash.XXH64String(0, key))).target.Addr; got != want {
				t.Fatalf("round %d, %+v of %v: key %s leads to %v, gRPC's to %v", round, c, targets, key, got, want)
			}
		}
	}
}
