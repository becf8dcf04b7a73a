package l7_test

import (
	"context"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/interop"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"

	"github.com/weir-lb/weir/internal/l7"
)

// TestGRPCInterop runs grpc-go's interoperability cases, those without credentials, with its client and server through the proxy. A case
// that fails ends the process: the suite calls Fatal.
func TestGRPCInterop(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	testgrpc.RegisterTestServiceServer(server, interop.NewTestServer())
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	for _, protocol := range []l7.Protocol{l7.Detect, l7.GRPC} {
		p := start(t, l7.Options{Protocol: protocol, Upstreams: only(poolOf(addrOf(listener)), nil)})
		conn := dialGRPC(t, p)
		client := testgrpc.NewTestServiceClient(conn)
		for name, run := range map[string]func(context.Context, testgrpc.TestServiceClient, ...grpc.CallOption){
			"empty_unary": interop.DoEmptyUnaryCall, "large_unary": interop.DoLargeUnaryCall,
			"client_streaming": interop.DoClientStreaming, "server_streaming": interop.DoServerStreaming,
			"ping_pong": interop.DoPingPong, "empty_stream": interop.DoEmptyStream,
			"timeout_on_sleeping_server": interop.DoTimeoutOnSleepingServer,
			"cancel_after_begin":         interop.DoCancelAfterBegin, "cancel_after_first_response": interop.DoCancelAfterFirstResponse,
			"custom_metadata": interop.DoCustomMetadata, "status_code_and_message": interop.DoStatusCodeAndMessage,
			"special_status_message": interop.DoSpecialStatusMessage,
		} {
			t.Run(protocol.String()+"/"+name, func(t *testing.T) { run(t.Context(), client) })
		}
		t.Run(protocol.String()+"/unimplemented_method", func(t *testing.T) { interop.DoUnimplementedMethod(t.Context(), conn) })
		t.Run(protocol.String()+"/unimplemented_service", func(t *testing.T) {
			interop.DoUnimplementedService(t.Context(), testgrpc.NewUnimplementedServiceClient(conn))
		})
	}
}
