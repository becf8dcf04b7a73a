package kube

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os/exec"
	"time"
)

// Bare makes a node of the cluster that no kube-proxy runs on: a network namespace like that of Proxy. Pods answer HTTP with
// their address and port.
func (c *Cluster) Bare(node string) *Proxy {
	c.tb.Helper()
	p := &Proxy{Node: node, cluster: c, namespace: newNamespace(c.tb)}
	p.configure()
	p.relay()
	p.answerHTTP()
	return p
}

// Own makes an address one of the node's own, so that a program there can listen on it.
func (p *Proxy) Own(address netip.Addr) {
	p.cluster.tb.Helper()
	err := p.namespace.Do(func() error {
		prefix := netip.PrefixFrom(address, address.BitLen()).String()
		out, err := exec.CommandContext(p.cluster.tb.Context(), "ip", "address", "add", prefix, "dev", "lo").CombinedOutput()
		if err != nil {
			return fmt.Errorf("give node %s the address %s: %w: %s", p.Node, prefix, err, out)
		}
		return nil
	})
	if err != nil {
		p.cluster.tb.Fatal(err)
	}
}

// answerHTTP makes each pod address tell who it is.
func (p *Proxy) answerHTTP() {
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
			place := self.AddrPort()
			_, _ = io.WriteString(w, netip.AddrPortFrom(place.Addr().Unmap(), place.Port()).String())
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
