// Pods stands in for the pods of the guide's examples: it answers on every address that the EndpointSlices of some manifests
// name, each time with the name of the pod. It is for one machine whose loopback network is all of 127.0.0.0/8, as on Linux.
//
//	go run ./docs/examples/pods docs/examples/hashing
//
// A pod can be told to misbehave: after a request for /errors it answers 500, after one for /resets it closes connections
// without an answer, after one for /well all is well again.
package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"path"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/weir-lb/weir/internal/manifest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "pods:", err)
		os.Exit(1)
	}
}

// run serves the pods of the manifests until ctx ends.
func run(ctx context.Context, files []string) error {
	objects, err := manifest.Read(ctx, manifest.Source{Paths: files}, manifest.Options{})
	if err != nil {
		return err
	}
	up := 0
	for _, s := range objects.Snapshot.Services {
		for _, e := range s.Endpoints {
			for _, port := range e.Ports {
				name := path.Base(e.Pod)
				if err := serve(ctx, &pod{name: name}, netip.AddrPortFrom(e.Addr, port.Port)); err != nil {
					return fmt.Errorf("be %s: %w", name, err)
				}
				up++
			}
		}
	}
	fmt.Println(up, "pods are up")
	<-ctx.Done()
	return nil
}

// serve answers as p on an address, in the background.
func serve(ctx context.Context, p *pod, at netip.AddrPort) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", at.String())
	if err != nil {
		return err
	}
	server := &http.Server{Handler: p, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(l) }() // ends with the process
	return nil
}

// pod is one of them.
type pod struct {
	name   string
	errors atomic.Bool // it answers 500
	resets atomic.Bool // it does not answer
}

func (p *pod) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/errors":
		p.errors.Store(true)
	case "/resets":
		p.resets.Store(true)
	case "/well":
		p.errors.Store(false)
		p.resets.Store(false)
	default:
		if p.resets.Load() {
			panic(http.ErrAbortHandler) // net/http closes the connection, and logs nothing
		}
		if p.errors.Load() {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}
	_, _ = fmt.Fprintln(w, p.name)
}
