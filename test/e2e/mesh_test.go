package e2e_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weir-lb/weir/internal/patience"
	"github.com/weir-lb/weir/test/local"
)

// mesh is the world that the documents of a mesh are about: three zones with two nodes each, the pods of the services
// shop/backend and shop/payments, which are the same, and the pod default/front of the service default/web, a client.
type mesh struct {
	folder string
	block  string // the first three numbers of its addresses, which nobody else uses
	port   uint16
	pods   []*backend
}

// The zones of the specification's example.
var meshZones = []string{"us-east", "us-west", "eu-north"}

// backend is an endpoint that tells its name to whoever asks.
type backend struct {
	name, zone, node string
	key              string // its label kuma.io/hash; empty: it has none
	unready          bool
	addr             netip.AddrPort
	server           *http.Server
	hits             atomic.Int64
	held             atomic.Int64 // requests to /held that wait
	free             chan struct{}
	done             chan struct{}
}

// newMesh makes pods in these zones, pod-0 and so on, each on the zone's first node and with the hash key shard-0 and so on.
func newMesh(t *testing.T, number int, zones ...string) *mesh {
	t.Helper()
	m := &mesh{folder: t.TempDir(), block: fmt.Sprintf("127.83.%d.", number)}
	m.port = local.FreePort(t, m.block+"1")
	for i, zone := range zones {
		p := &backend{name: fmt.Sprintf("pod-%d", i), zone: zone, node: "node-" + zone, key: fmt.Sprintf("shard-%d", i)}
		m.pods = append(m.pods, p)
		p.serve(t, fmt.Sprintf("%s%d", m.block, 41+i))
	}
	m.write(t)
	return m
}

// serve runs the pod on a free port of ip for the length of the test.
func (p *backend) serve(t *testing.T, ip string) {
	t.Helper()
	l, err := net.Listen("tcp", ip+":0") //nolint:noctx // binds at once.
	if err != nil {
		t.Fatal(err)
	}
	p.addr, p.done, p.free = netip.MustParseAddrPort(l.Addr().String()), make(chan struct{}), make(chan struct{})
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: limit}
	server, done := p.server, p.done
	go func() {
		defer close(done)
		_ = server.Serve(l)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
}

// stop takes the pod away as a crash does: its port refuses.
func (p *backend) stop() {
	_ = p.server.Close()
	<-p.done
}

func (p *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.hits.Add(1)
	if r.URL.Path == "/held" {
		p.held.Add(1)
		defer p.held.Add(-1)
		select {
		case <-p.free:
		case <-r.Context().Done():
			return
		}
	}
	_, _ = io.WriteString(w, p.name)
}

// write writes the manifests of what is there.
func (m *mesh) write(t *testing.T) {
	t.Helper()
	var text strings.Builder
	for _, zone := range meshZones {
		for _, node := range []string{"node-", "far-"} {
			fmt.Fprintf(&text, `---
apiVersion: v1
kind: Node
metadata: {name: %s%s, labels: {topology.kubernetes.io/zone: %[2]s}}
status: {allocatable: {cpu: "4"}, conditions: [{type: Ready, status: "True"}]}
`, node, zone)
		}
	}
	for _, p := range m.pods {
		label := ""
		if p.key != "" {
			label = "kuma.io/hash: " + p.key
		}
		fmt.Fprintf(&text, `---
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: shop, labels: {%s}}
spec: {nodeName: %s}
status: {podIP: %s, podIPs: [{ip: %[4]s}]}
`, p.name, label, p.node, p.addr.Addr())
	}
	for _, service := range []string{"backend", "payments"} {
		fmt.Fprintf(&text, "---\napiVersion: v1\nkind: Service\nmetadata: {name: %s, namespace: shop}\n", service)
		fmt.Fprintf(&text, "spec:\n  clusterIP: None\n  ports: [{name: http, port: %d, appProtocol: http}]\n", m.port)
		for _, p := range m.pods {
			m.writeSlice(&text, "shop/"+service, p)
		}
	}
	fmt.Fprintf(&text, `---
apiVersion: v1
kind: Pod
metadata: {name: front, namespace: default, labels: {tier: web, version: v1}}
spec: {nodeName: node-us-east}
status: {podIP: %[1]s, podIPs: [{ip: %[1]s}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: default}
spec: {clusterIP: None, ports: [{port: 80}]}
`, m.front())
	front := &backend{name: "front", zone: "us-east", node: "node-us-east"}
	front.addr = netip.AddrPortFrom(netip.MustParseAddr(m.front()), 80)
	m.writeSlice(&text, "default/web", front)
	m.put(t, "cluster.yaml", text.String())
}

func (m *mesh) writeSlice(text *strings.Builder, service string, p *backend) {
	namespace, name, _ := strings.Cut(service, "/")
	port := "http"
	if service == "default/web" {
		port = ""
	}
	fmt.Fprintf(text, `---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %[2]s-%[3]s, namespace: %[1]s, labels: {kubernetes.io/service-name: %[2]s}}
addressType: IPv4
ports: [{name: "%[4]s", port: %[5]d, protocol: TCP}]
endpoints:
- addresses: [%[6]s]
  zone: %[7]s
  nodeName: %[8]s
  conditions: {ready: %[9]t}
  targetRef: {kind: Pod, namespace: %[1]s, name: %[3]s}
`, namespace, name, p.name, port, p.addr.Port(), p.addr.Addr(), p.zone, p.node, !p.unready)
}

// front is the address of the client default/front.
func (m *mesh) front() string { return m.block + "101" }

// put writes a file whole, as kubectl and editors do.
func (m *mesh) put(t *testing.T, name, text string) {
	t.Helper()
	next := filepath.Join(m.folder, ".next")
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, filepath.Join(m.folder, name)); err != nil {
		t.Fatal(err)
	}
}

// start runs weir agent on the first node of a zone until the test ends. It serves one service, shop/backend or so.
func (m *mesh) start(t *testing.T, zone, service string) *node {
	t.Helper()
	n := &node{ip: m.block + fmt.Sprint(1+index(meshZones, zone)), ports: map[string]uint16{"http": m.port}, log: &patience.Log{}}
	admin := n.ip + "0" // of its own, so that the port cannot be that of the service
	n.admin = fmt.Sprintf("%s:%d", admin, local.FreePort(t, admin))
	n.process = exec.CommandContext(context.WithoutCancel(t.Context()), program, "agent", "-f", m.folder,
		"--node", "node-"+zone, "--map", service+"="+n.ip, "--admin-bind-address", n.admin)
	n.process.Stdout, n.process.Stderr = n.log, n.log
	if err := n.process.Start(); err != nil {
		t.Fatal(err)
	}
	n.ended = sync.OnceValue(n.process.Wait)
	t.Cleanup(func() {
		_ = n.process.Process.Kill()
		_ = n.ended()
		if t.Failed() {
			t.Logf("log of node-%s:\n%.5000s", zone, n.log)
		}
	})
	patience.Until(t, "node-"+zone+" is ready", func() bool {
		resp, err := http.Get("http://" + n.admin + "/readyz") //nolint:noctx // ends with the agent.
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	return n
}

func index(all []string, one string) int {
	for i, s := range all {
		if s == one {
			return i
		}
	}
	return -1
}

// asker asks from an address; empty: any that no pod has.
type asker struct {
	*http.Client
	t      *testing.T
	prefix string // of URLs
	header http.Header
}

// asker gives a client of the node's service.
func (n *node) asker(t *testing.T, ip string) *asker {
	t.Helper()
	var dialer net.Dialer
	if ip != "" {
		dialer.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(ip), 0))
	}
	transport := &http.Transport{DialContext: dialer.DialContext}
	t.Cleanup(transport.CloseIdleConnections)
	return &asker{&http.Client{Transport: transport, Timeout: limit}, t, "http://" + n.at("http"), http.Header{}}
}

// with gives the client with header fields, of which there are name and value by turns, beside those that it has.
func (c *asker) with(fields ...string) *asker {
	other := *c
	other.header = c.header.Clone()
	for i := 0; i < len(fields); i += 2 {
		other.header.Add(fields[i], fields[i+1])
	}
	return &other
}

// do asks for a path.
func (c *asker) do(path string) (status int, body string, header http.Header) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, c.prefix+path, http.NoBody)
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header = c.header.Clone()
	resp, err := c.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return resp.StatusCode, string(text), resp.Header
}

// get gives the pod that answers; other statuses than 200 are told as they are.
func (c *asker) get(path string) string {
	c.t.Helper()
	status, body, _ := c.do(path)
	if status != http.StatusOK {
		return fmt.Sprint(status)
	}
	return body
}

// counts asks n times and counts who answers.
func (c *asker) counts(n int) map[string]int {
	c.t.Helper()
	counts := make(map[string]int)
	for range n {
		counts[c.get("/")]++
	}
	return counts
}

// zones asks n times and counts the zones of who answers.
func (m *mesh) zones(c *asker, n int) map[string]int {
	c.t.Helper()
	zones := make(map[string]int)
	for name, count := range c.counts(n) {
		zones[m.zoneOf(name)] += count
	}
	return zones
}

// zoneOf gives a pod's zone; what is no pod's name is given back.
func (m *mesh) zoneOf(name string) string {
	for _, p := range m.pods {
		if p.name == name {
			return p.zone
		}
	}
	return name
}

// in gives the pods of a zone.
func (m *mesh) in(zone string) []*backend {
	var here []*backend
	for _, p := range m.pods {
		if p.zone == zone {
			here = append(here, p)
		}
	}
	return here
}

// hits counts the requests that the pods of a zone got.
func (m *mesh) hits(zone string) int64 {
	var sum int64
	for _, p := range m.in(zone) {
		sum += p.hits.Load()
	}
	return sum
}

// weir runs another command to its end and gives what it prints.
func weir(t *testing.T, stdin string, args ...string) (out string, err error) {
	t.Helper()
	c := exec.CommandContext(t.Context(), program, args...)
	c.Stdin = strings.NewReader(stdin)
	text, err := c.CombinedOutput()
	return string(text), err
}
