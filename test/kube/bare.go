package kube

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"
)

// Bare makes a node of the cluster that no kube-proxy runs on: a network namespace like that of Proxy. Pods answer HTTP with
// their address and port.
func (c *Cluster) Bare(node string) *Proxy {
	c.tb.Helper()
	return c.BareWith(node, func(netip.AddrPort) {})
}

// BareWith is Bare with pods that call before with their address and port before they answer. If that panics with
// http.ErrAbortHandler, the connection breaks.
func (c *Cluster) BareWith(node string, before func(netip.AddrPort)) *Proxy {
	c.tb.Helper()
	p := &Proxy{Node: node, cluster: c, namespace: newNamespace(c.tb)}
	p.configure()
	p.relay()
	p.answerHTTP(before)
	return p
}

// answerHTTP makes each pod address tell its address.
func (p *Proxy) answerHTTP(before func(netip.AddrPort)) {
	p.cluster.tb.Helper()
	listener := p.listen(fmt.Sprintf("[::]:%d", PodPort))
	server := &http.Server{
		ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			self, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
			if !ok {
				http.Error(w, "not reached over TCP", http.StatusInternalServerError)
				return
			}
			at := netip.AddrPortFrom(self.AddrPort().Addr().Unmap(), self.AddrPort().Port())
			before(at)
			_, _ = io.WriteString(w, at.String())
		}),
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // until it is closed
	}()
	p.cluster.tb.Cleanup(func() {
		_ = server.Close()
		<-done
	})
}
