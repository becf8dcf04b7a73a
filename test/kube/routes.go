package kube

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"sync"
)

// routes says where the API server gets to when it calls a Service: no kube-proxy stands between them, so its connections
// go through a CONNECT proxy of the harness, as those of managed control planes do.
type routes struct {
	mu      sync.Mutex
	targets map[netip.AddrPort][]string // by cluster IP and port

	cut func() // ends the connections that the API server has
}

// CutRoutes ends the connections that the API server has to webhooks, so that its next call takes the routes as they are
// now. Without it a connection that stands is used for as long as both ends keep it.
func (c *Cluster) CutRoutes() { c.routes.cut() }

// Route makes the API server reach a Service's port at one of these addresses, the first that accepts. It replaces the
// route before; without addresses the port refuses.
func (c *Cluster) Route(namespace, service string, port uint16, addresses ...string) {
	c.tb.Helper()
	s := c.Service(namespace, service)
	ip, err := netip.ParseAddr(s.Spec.ClusterIP)
	if err != nil {
		c.tb.Fatalf("the Service %s/%s: %v", namespace, service, err)
	}
	c.routes.mu.Lock()
	defer c.routes.mu.Unlock()
	if c.routes.targets == nil {
		c.routes.targets = make(map[netip.AddrPort][]string)
	}
	c.routes.targets[netip.AddrPortFrom(ip, port)] = addresses
}

func (r *routes) of(target string) []string {
	address, err := netip.ParseAddrPort(target)
	if err != nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.targets[address]
}

// writeEgress tells the API server to connect to what is in the cluster through the harness.
func (c *Cluster) writeEgress() string {
	c.tb.Helper()
	return c.write("egress.yaml", fmt.Sprintf(`apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection: {proxyProtocol: HTTPConnect, transport: {uds: {udsName: %s}}}
`, strconv.Quote(c.routesSocket())))
}

func (c *Cluster) routesSocket() string { return filepath.Join(c.folder, "routes.sock") }

// write writes a file of the cluster and gives its path.
func (c *Cluster) write(name, text string) string {
	c.tb.Helper()
	path := filepath.Join(c.folder, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		c.tb.Fatal(err)
	}
	return path
}

// serveRoutes answers CONNECT until the test ends.
func (c *Cluster) serveRoutes() {
	c.tb.Helper()
	listener, err := net.Listen("unix", c.routesSocket()) //nolint:noctx // returns at once.
	if err != nil {
		c.tb.Fatal(err)
	}
	c.routes.cut = serve(c.tb, listener, func(client net.Conn) {
		request, err := http.ReadRequest(bufio.NewReader(client))
		if err != nil {
			return
		}
		for _, address := range c.routes.of(request.RequestURI) {
			server, err := net.Dial("tcp", address) //nolint:noctx // loopback accepts or refuses at once.
			if err != nil {
				continue
			}
			if _, err := io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n"); err == nil {
				splice(client, server)
			}
			_ = server.Close()
			return
		}
		_, _ = io.WriteString(client, "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
	})
}
