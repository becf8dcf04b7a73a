package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/patience"
	"github.com/weir-lb/weir/test/local"
)

// limit is how long a test waits for something that has to happen. It is far above what a busy machine needs, so that
// only a hang meets it.
const limit = time.Minute

// followed is within which time the guide promises that a change of manifests takes effect.
const followed = time.Second

// cluster is three zones with a node and an endpoint in each, the service shop/web, and the manifests of it all.
type cluster struct {
	folder    string
	block     string // the first three numbers of its addresses, which no other cluster uses
	ports     map[string]uint16
	endpoints []*endpoint
}

// newCluster makes a cluster on the addresses 127.79.number.
func newCluster(t *testing.T, number int) *cluster {
	t.Helper()
	c := &cluster{folder: t.TempDir(), block: fmt.Sprintf("127.79.%d.", number), ports: make(map[string]uint16)}
	var nodes strings.Builder
	for i, z := range []string{"a", "b", "c"} {
		c.endpoints = append(c.endpoints, startEndpoint(t, "zone-"+z, fmt.Sprintf("%s%d", c.block, 11+i)))
		fmt.Fprintf(&nodes, `---
apiVersion: v1
kind: Node
metadata: {name: node-%[1]s, labels: {topology.kubernetes.io/zone: zone-%[1]s, topology.kubernetes.io/region: eu}}
status: {allocatable: {cpu: "4"}, conditions: [{type: Ready, status: "True"}]}
`, z)
	}
	for _, name := range []string{"http", "grpc", "echo", "greet"} {
		c.ports[name] = local.FreePort(t, c.block+"1")
	}
	c.write(t, "nodes.yaml", nodes.String())
	c.writeService(t, c.endpoints...)
	return c
}

// write writes a file whole, as kubectl and editors do.
func (c *cluster) write(t *testing.T, name, text string) {
	t.Helper()
	next := filepath.Join(c.folder, ".next")
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, filepath.Join(c.folder, name)); err != nil {
		t.Fatal(err)
	}
}

// writeService writes the service with these endpoints.
func (c *cluster) writeService(t *testing.T, endpoints ...*endpoint) {
	t.Helper()
	var text strings.Builder
	fmt.Fprintf(&text, `apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop, labels: {weir.dev/distribution: PreferSameZone}}
spec:
  clusterIP: %[1]s1
  clusterIPs: [%[1]s1]
  ports:
  - {name: http, port: %[2]d, appProtocol: http}
  - {name: grpc, port: %[3]d, appProtocol: grpc}
  - {name: echo, port: %[4]d}
  - {name: greet, port: %[5]d}
`, c.block, c.ports["http"], c.ports["grpc"], c.ports["echo"], c.ports["greet"])
	for _, e := range endpoints {
		fmt.Fprintf(&text, `---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-%s, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports:
`, e.zone)
		for name, port := range e.ports {
			fmt.Fprintf(&text, "- {name: %s, port: %d, protocol: TCP}\n", name, port)
		}
		fmt.Fprintf(&text, "endpoints:\n- {addresses: [%s], zone: %s, conditions: {ready: true}}\n", e.ip, e.zone)
	}
	c.write(t, "web.yaml", text.String())
}

// node is a weir agent that runs as a process.
type node struct {
	name    string
	ip      string
	ports   map[string]uint16
	admin   string
	log     *patience.Log
	process *exec.Cmd
	ended   func() error // waits for the end, once
}

// start runs weir agent for the node of a zone, a, b or c, until the test ends.
func (c *cluster) start(t *testing.T, zone string) *node {
	t.Helper()
	n := &node{name: "node-" + zone, ip: c.block + fmt.Sprint(strings.Index("abc", zone)+1), ports: c.ports}
	n.run(t, "-f", c.folder, "--map", "shop/web="+n.ip)
	return n
}

// run runs the agent of the node until the test ends, and waits until it is ready.
func (n *node) run(t *testing.T, args ...string) {
	t.Helper()
	n.log = &patience.Log{}
	n.admin = fmt.Sprintf("%s:%d", n.ip, local.FreePort(t, n.ip))
	args = append([]string{"agent", "--node", n.name, "--admin-bind-address", n.admin}, args...)
	n.process = exec.CommandContext(context.WithoutCancel(t.Context()), program, args...)
	n.process.Stdout, n.process.Stderr = n.log, n.log
	if err := n.process.Start(); err != nil {
		t.Fatal(err)
	}
	n.ended = sync.OnceValue(n.process.Wait)
	t.Cleanup(func() {
		_ = n.process.Process.Kill()
		_ = n.ended()
		if t.Failed() {
			t.Logf("log of %s:\n%s", n.name, n.log)
		}
	})
	patience.Until(t, n.name+" is ready", func() bool {
		resp, err := http.Get("http://" + n.admin + "/readyz") //nolint:noctx // ends with the agent.
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// at gives the address of a port of the service on this node.
func (n *node) at(port string) string { return fmt.Sprintf("%s:%d", n.ip, n.ports[port]) }

// url gives the URL of a path.
func (n *node) url(path string) string { return "http://" + n.at("http") + path }

// stop ends the node as kubelet does and checks that it ended well.
func (n *node) stop(t *testing.T) {
	t.Helper()
	if err := n.process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := n.ended(); err != nil {
		t.Errorf("the agent ended with %v, log:\n%s", err, n.log)
	}
}
