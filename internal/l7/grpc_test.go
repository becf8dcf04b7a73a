package l7_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/l7"
)

// serveGRPC runs a gRPC endpoint: the health service, and calls of any other name that f treats as streams.
func serveGRPC(t *testing.T, f grpc.StreamHandler) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(grpc.UnknownServiceHandler(f))
	healthv1.RegisterHealthServer(s, health.NewServer())
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Stop()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return addrOf(l)
}

func dialGRPC(t *testing.T, p *proxy) *grpc.ClientConn {
	t.Helper()
	c, err := grpc.NewClient("passthrough:///"+p.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut(c) })
	return c
}

// words is an endpoint of three calls: Join takes many words and gives one, Repeat takes one and gives three, any other
// gives back each word as it comes. All end with a trailer; the word "fail" ends a call with a status.
func words(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	var joined string
	for {
		var in wrapperspb.StringValue
		if err := stream.RecvMsg(&in); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		if in.Value == "fail" {
			stream.SetTrailer(metadata.Pairs("end", "early"))
			return status.Error(codes.ResourceExhausted, "too many wörds")
		}
		joined += in.Value
		answers := map[string]int{"/test.Words/Join": 0, "/test.Words/Repeat": 3, "/test.Words/Any": 1}[method]
		for range answers {
			if err := stream.SendMsg(&in); err != nil {
				return err
			}
		}
	}
	stream.SetTrailer(metadata.Pairs("end", "reached"))
	if method == "/test.Words/Join" {
		return stream.SendMsg(wrapperspb.String(joined))
	}
	return nil
}

func TestAUnaryCallIsAnswered(t *testing.T) {
	for _, protocol := range []l7.Protocol{l7.Detect, l7.HTTP, l7.H2C, l7.GRPC} {
		p := start(t, l7.Options{Protocol: protocol}, serveGRPC(t, words))
		got, err := healthv1.NewHealthClient(dialGRPC(t, p)).Check(t.Context(), &healthv1.HealthCheckRequest{})
		if err != nil || got.GetStatus() != healthv1.HealthCheckResponse_SERVING {
			t.Errorf("%v: got %v, %v", protocol, got, err)
		}
		if saw := p.saw.next(t); saw.Protocol != l7.GRPC || saw.Status != 0 || saw.Code != 200 || saw.Outcome != pick.Success {
			t.Errorf("reported %+v", saw)
		}
	}
}

func TestStatusAndDetailsOfAUnaryCallPass(t *testing.T) {
	p := start(t, l7.Options{}, serveGRPC(t, words))
	_, err := healthv1.NewHealthClient(dialGRPC(t, p)).Check(t.Context(), &healthv1.HealthCheckRequest{Service: "unknown"})
	if status.Code(err) != codes.NotFound || status.Convert(err).Message() != "unknown service" {
		t.Errorf("got %v", err)
	}
	if saw := p.saw.next(t); saw.Status != 5 || saw.Outcome != pick.Success {
		t.Errorf("reported %+v", saw)
	}
}

func TestStreamsOfAllKinds(t *testing.T) {
	p := start(t, l7.Options{}, serveGRPC(t, words))
	conn := dialGRPC(t, p)
	for _, c := range []struct {
		method string
		desc   grpc.StreamDesc
		said   []string
		before []string // what is heard each time before the next word is said
		after  []string // what is heard when all is said
	}{
		{"Join", grpc.StreamDesc{ClientStreams: true}, []string{"a", "b", "c"}, nil, []string{"abc"}},
		{"Repeat", grpc.StreamDesc{ServerStreams: true}, []string{"a"}, nil, []string{"a", "a", "a"}},
		{"Any", grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, []string{"a", "b"}, []string{"a", "b"}, nil},
	} {
		t.Run(c.method, func(t *testing.T) {
			stream, err := conn.NewStream(t.Context(), &c.desc, "/test.Words/"+c.method)
			if err != nil {
				t.Fatal(err)
			}
			for i, word := range c.said {
				if err := stream.SendMsg(wrapperspb.String(word)); err != nil {
					t.Fatal(err)
				}
				if c.before != nil {
					receive(t, stream, c.before[i])
				}
			}
			if err := stream.CloseSend(); err != nil {
				t.Fatal(err)
			}
			for _, word := range c.after {
				receive(t, stream, word)
			}
			if c.desc.ServerStreams {
				if err := stream.RecvMsg(new(wrapperspb.StringValue)); !errors.Is(err, io.EOF) {
					t.Errorf("got %v at the end", err)
				}
			}
			if got := stream.Trailer().Get("end"); len(got) != 1 || got[0] != "reached" {
				t.Errorf("got trailer %v", stream.Trailer())
			}
			if saw := p.saw.next(t); saw.Status != 0 || saw.Outcome != pick.Success {
				t.Errorf("reported %+v", saw)
			}
		})
	}
}

func receive(t *testing.T, stream grpc.ClientStream, want string) {
	t.Helper()
	var got wrapperspb.StringValue
	if err := stream.RecvMsg(&got); err != nil || got.Value != want {
		t.Fatalf("got %q, %v; want %q", got.Value, err, want)
	}
}

func TestAStreamThatFailsLateIsAFailure(t *testing.T) {
	p := start(t, l7.Options{}, serveGRPC(t, words))
	stream, err := dialGRPC(t, p).NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/test.Words/Any")
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"fine", "fail"} {
		if err := stream.SendMsg(wrapperspb.String(word)); err != nil {
			t.Fatal(err)
		}
	}
	receive(t, stream, "fine")
	err = stream.RecvMsg(new(wrapperspb.StringValue))
	if status.Code(err) != codes.ResourceExhausted || status.Convert(err).Message() != "too many wörds" {
		t.Errorf("got %v", err)
	}
	if got := stream.Trailer().Get("end"); len(got) != 1 || got[0] != "early" {
		t.Errorf("got trailer %v", stream.Trailer())
	}
	if saw := p.saw.next(t); saw.Status != 8 || saw.Outcome != pick.Failure || saw.Code != 200 {
		t.Errorf("reported %+v", saw)
	}
}

func TestGRPCClientsAreRefusedInTheirOwnTongue(t *testing.T) {
	silent := serveGRPC(t, func(_ any, stream grpc.ServerStream) error {
		<-stream.Context().Done()
		return stream.Context().Err()
	})
	for _, c := range []struct {
		name      string
		options   l7.Options
		endpoints []netip.AddrPort
		want      codes.Code
	}{
		{"no endpoint", l7.Options{}, nil, codes.Unavailable},
		{"an endpoint that refuses", l7.Options{}, []netip.AddrPort{refusing(t)}, codes.Unavailable},
		{"too slow for the service", l7.Options{Timeouts: l7.Timeouts{Request: 20 * time.Millisecond}}, []netip.AddrPort{silent}, codes.DeadlineExceeded},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := start(t, c.options, c.endpoints...)
			err := dialGRPC(t, p).Invoke(t.Context(), "/test.Words/One", wrapperspb.String("x"), new(wrapperspb.StringValue))
			if status.Code(err) != c.want {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if saw := p.saw.next(t); saw.Status != l7.GRPCStatus(c.want) || saw.Outcome != pick.Failure || saw.Code != 200 {
				t.Errorf("reported %+v", saw)
			}
		})
	}
}

func TestADeadlineThatPassesIsTheEndpointsFault(t *testing.T) {
	p := start(t, l7.Options{}, serveGRPC(t, func(_ any, stream grpc.ServerStream) error {
		<-stream.Context().Done()
		return nil
	}))
	conn := dialGRPC(t, p)
	conn.Connect()
	for s := conn.GetState(); s != connectivity.Ready; s = conn.GetState() {
		if !conn.WaitForStateChange(t.Context(), s) {
			t.Fatal("no connection")
		}
	}
	// Ample for the call to reach the endpoint on a busy machine: a deadline that passes before is none that the proxy sees.
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	err := conn.Invoke(ctx, "/test.Words/One", wrapperspb.String("x"), new(wrapperspb.StringValue))
	if status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("got %v", err)
	}
	if saw := p.saw.next(t); saw.Outcome != pick.Failure {
		t.Errorf("reported %+v", saw)
	}
}

func TestACallIsRetriedOnAnotherEndpointIfNothingWasSent(t *testing.T) {
	p := start(t, l7.Options{}, refusing(t), serveGRPC(t, words), refusing(t))
	conn := dialGRPC(t, p)
	for range 6 {
		if _, err := healthv1.NewHealthClient(conn).Check(t.Context(), &healthv1.HealthCheckRequest{}); err != nil {
			t.Error(err)
		}
	}
}
