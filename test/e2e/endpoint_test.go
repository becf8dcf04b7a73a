package e2e_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// endpoint is a pod: servers of four protocols on one address. Each tells its zone to whoever asks.
type endpoint struct {
	zone  string
	ip    string
	ports map[string]uint16 // by the name of the service's port
	held  atomic.Int64      // requests to /held that wait
	free  chan struct{}     // lets them go on when it closes
	web   *http.Server
}

// startEndpoint serves on free ports of ip for the length of the test.
func startEndpoint(t *testing.T, zone, ip string) *endpoint {
	t.Helper()
	e := &endpoint{zone: zone, ip: ip, ports: make(map[string]uint16), free: make(chan struct{})}
	var running sync.WaitGroup
	t.Cleanup(running.Wait)

	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	e.web = &http.Server{Handler: e.handler(), Protocols: &protocols, ReadHeaderTimeout: limit}
	web := e.listen(t, "http")
	running.Go(func() { _ = e.web.Serve(web) })
	t.Cleanup(func() { _ = e.web.Close() })

	calls := grpc.NewServer(grpc.UnknownServiceHandler(e.stream))
	healthv1.RegisterHealthServer(calls, health.NewServer())
	calling := e.listen(t, "grpc")
	running.Go(func() { _ = calls.Serve(calling) })
	t.Cleanup(calls.Stop)

	for name, f := range map[string]func(net.Conn){"echo": e.echo, "greet": e.greet} {
		l := e.listen(t, name)
		running.Go(func() { accept(l, f) })
		t.Cleanup(func() { _ = l.Close() })
	}
	return e
}

func (e *endpoint) listen(t *testing.T, name string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", e.ip+":0") //nolint:noctx // binds at once.
	if err != nil {
		t.Fatal(err)
	}
	e.ports[name] = netip.MustParseAddrPort(l.Addr().String()).Port()
	return l
}

func (e *endpoint) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, e.zone) })
	mux.HandleFunc("/count", func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		_, _ = fmt.Fprintf(w, "%s %d %v", r.Proto, n, err)
	})
	mux.HandleFunc("/told", func(w http.ResponseWriter, r *http.Request) {
		h := r.Header
		_, _ = fmt.Fprintf(w, "host=%s for=%s proto=%s secret=%s",
			r.Host, h.Get("X-Forwarded-For"), h.Get("X-Forwarded-Proto"), h.Get("Secret"))
	})
	mux.HandleFunc("/trailer", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "Zone")
		_, _ = io.WriteString(w, "body\n")
		w.Header().Set("Zone", e.zone)
	})
	mux.HandleFunc("/held", func(w http.ResponseWriter, r *http.Request) {
		e.held.Add(1)
		defer e.held.Add(-1)
		select {
		case <-e.free:
			_, _ = io.WriteString(w, e.zone)
		case <-r.Context().Done():
		}
	})
	mux.HandleFunc("/socket", func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer func() { _ = c.CloseNow() }()
		for {
			kind, text, err := c.Read(r.Context())
			if err != nil || c.Write(r.Context(), kind, append([]byte(e.zone+" "), text...)) != nil {
				return
			}
		}
	})
	return mux
}

// stream answers each word of a call of any name with the zone before it.
func (e *endpoint) stream(_ any, s grpc.ServerStream) error {
	for {
		var word wrapperspb.StringValue
		if err := s.RecvMsg(&word); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := s.SendMsg(wrapperspb.String(e.zone + " " + word.Value)); err != nil {
			return err
		}
	}
}

// echo sends back what it gets, and says when that ended.
func (e *endpoint) echo(c net.Conn) {
	if _, err := io.Copy(c, c); err == nil {
		_, _ = io.WriteString(c, " "+e.zone)
	}
}

// greet speaks first.
func (e *endpoint) greet(c net.Conn) { _, _ = io.WriteString(c, "220 "+e.zone+" ready\r\n") }

// accept serves connections until the listener is closed, and waits for them.
func accept(l net.Listener, f func(net.Conn)) {
	var open sync.WaitGroup
	defer open.Wait()
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		open.Go(func() {
			defer func() { _ = c.Close() }()
			_ = c.SetDeadline(time.Now().Add(limit))
			f(c)
		})
	}
}
