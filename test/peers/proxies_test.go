package peers_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-lb/weir/internal/patience"
	"github.com/weir-lb/weir/test/local"
)

// route is a port of a proxy and the endpoint behind it. The endpoint is spoken to in HTTP/1.1 unless h2, grpc or tcp is set;
// clients may speak HTTP/1 or, by prior knowledge, HTTP/2.
type route struct {
	name          string
	endpoint      string
	h2, grpc, tcp bool
}

// proxy is a proxy that runs as a process.
type proxy struct {
	name    string
	address map[string]string // by the route's name
	pid     int
	log     *patience.Log
}

// starter starts a proxy for routes on an address of its own, until the test ends.
type starter func(t *testing.T, ip string, routes []route) *proxy

// launch runs a proxy's process until the test ends, and waits until each route accepts connections.
func (p *proxy) launch(t *testing.T, command string, args ...string) {
	t.Helper()
	p.log = &patience.Log{}
	process := exec.CommandContext(context.WithoutCancel(t.Context()), command, args...)
	process.Stdout, process.Stderr = p.log, p.log
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	p.pid = process.Process.Pid
	ended := make(chan struct{})
	go func() {
		_ = process.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = process.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("log of %s:\n%.20000s", p.name, p.log)
		}
	})
	for _, address := range p.address {
		patience.Until(t, p.name+" accepts connections", func() bool {
			select {
			case <-ended:
				t.Fatalf("%s ended:\n%s", p.name, p.log)
			default:
			}
			c, err := net.Dial("tcp", address) //nolint:noctx // answers at once.
			if err != nil {
				return false
			}
			_ = c.Close()
			return true
		})
	}
}

// newProxy gives each route a port of ip.
func newProxy(t *testing.T, name, ip string, routes []route) *proxy {
	t.Helper()
	p := &proxy{name: name, address: map[string]string{}}
	for _, r := range routes {
		p.address[r.name] = fmt.Sprintf("%s:%d", ip, local.FreePort(t, ip))
	}
	return p
}

// write writes a proxy's configuration and gives its path.
func (p *proxy) write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func startWeir(t *testing.T, ip string, routes []route) *proxy {
	t.Helper()
	p := newProxy(t, "weir", ip, routes)
	var ports, slices strings.Builder
	for _, r := range routes {
		kind := "kubernetes.io/ws" // both of HTTP's versions for clients, HTTP/1.1 for the endpoint
		switch {
		case r.h2:
			kind = "kubernetes.io/h2c"
		case r.grpc:
			kind = "grpc"
		case r.tcp:
			kind = "tcp"
		}
		fmt.Fprintf(&ports, "  - {name: %s, port: %d, appProtocol: %s}\n", r.name, portOf(p.address[r.name]), kind)
		fmt.Fprintf(&slices, `---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-%[1]s, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports:
- {name: %[1]s, port: %[2]d, protocol: TCP}
endpoints:
- {addresses: [%[3]s], zone: zone-a, conditions: {ready: true}}
`, r.name, portOf(r.endpoint), ipOf(r.endpoint))
	}
	manifests := p.write(t, "cluster.yaml", fmt.Sprintf(`apiVersion: v1
kind: Node
metadata: {name: node-a, labels: {topology.kubernetes.io/zone: zone-a, topology.kubernetes.io/region: eu}}
status: {allocatable: {cpu: "4"}, conditions: [{type: Ready, status: "True"}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec:
  clusterIP: %[1]s
  clusterIPs: [%[1]s]
  ports:
%[2]s%[3]s`, ip, ports.String(), slices.String()))
	admin := fmt.Sprintf("%s:%d", ip, local.FreePort(t, ip))
	p.launch(t, program, "agent", "--node", "node-a", "--admin-bind-address", admin, "-f", manifests, "--map", "shop/web="+ip)
	patience.Until(t, "weir is ready", func() bool {
		resp, err := http.Get("http://" + admin + "/readyz") //nolint:noctx // ends with the agent.
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	return p
}

func startHAProxy(t *testing.T, ip string, routes []route) *proxy {
	t.Helper()
	p := newProxy(t, "HAProxy", ip, routes)
	var b strings.Builder
	b.WriteString(`global
  nbthread 2
  maxconn 4000
defaults
  mode http
  option forwardfor
  http-reuse always
  timeout connect 1s
  timeout client 60s
  timeout server 60s
`)
	for _, r := range routes {
		mode, server := "http", ""
		if r.tcp {
			mode = "tcp"
		} else if r.h2 || r.grpc {
			server = " proto h2"
		}
		fmt.Fprintf(&b, "listen %s\n  mode %s\n  bind %s\n  server one %s%s\n", r.name, mode, p.address[r.name], r.endpoint, server)
	}
	p.launch(t, "haproxy", "-db", "-f", p.write(t, "haproxy.cfg", b.String()))
	return p
}

func startEnvoy(t *testing.T, ip string, routes []route) *proxy {
	t.Helper()
	p := newProxy(t, "Envoy", ip, routes)
	var listeners, clusters strings.Builder
	for _, r := range routes {
		filter := fmt.Sprintf(`name: envoy.filters.network.http_connection_manager
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
        stat_prefix: x
        codec_type: AUTO
        use_remote_address: true
        generate_request_id: false
        route_config: {virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: "/"}, route: {cluster: %s, timeout: 60s}}]}]}
        http_filters: [{name: r, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}]`, r.name)
		options := ""
		if r.tcp {
			filter = fmt.Sprintf(`name: envoy.filters.network.tcp_proxy
      typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, stat_prefix: x, cluster: %s}`, r.name)
		} else if r.h2 || r.grpc {
			options = `, typed_extension_protocol_options: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: ` +
				`{"@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions, explicit_http_config: {http2_protocol_options: {}}}}`
		}
		fmt.Fprintf(&listeners, "  - name: %s\n    address: {socket_address: {address: %s, port_value: %d}}\n    filter_chains:\n    - filters:\n      - %s\n",
			r.name, ip, portOf(p.address[r.name]), strings.ReplaceAll(filter, "\n      ", "\n        "))
		fmt.Fprintf(&clusters, "  - {name: %[1]s, type: STATIC, connect_timeout: 1s, load_assignment: {cluster_name: %[1]s, endpoints: [{lb_endpoints: "+
			"[{endpoint: {address: {socket_address: {address: %[2]s, port_value: %[3]d}}}}]}]}%[4]s}\n", r.name, ipOf(r.endpoint), portOf(r.endpoint), options)
	}
	config := p.write(t, "envoy.yaml", "static_resources:\n  listeners:\n"+listeners.String()+"  clusters:\n"+clusters.String())
	p.launch(t, envoy(t), "-c", config, "--concurrency", "2", "--use-dynamic-base-id", "--log-level", "error")
	return p
}

// envoy installs Envoy once, and gives its path.
func envoy(t *testing.T) string {
	t.Helper()
	install := exec.CommandContext(t.Context(), "./envoy.sh")
	install.Stderr = os.Stderr
	path, err := install.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(path))
}

func portOf(address string) uint16 { return netip.MustParseAddrPort(address).Port() }

func ipOf(address string) string { return netip.MustParseAddrPort(address).Addr().String() }
