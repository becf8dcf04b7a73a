package kube

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Proxy is kube-proxy as it runs on one node: in a network namespace of its own, where each pod address answers too. What
// connects in there is a client on that node.
type Proxy struct {
	Node string

	cluster   *Cluster
	namespace *Namespace
	process   *Process
}

// Proxy starts kube-proxy, in nftables mode, for a node of the cluster and waits until it has programmed the namespace once.
func (c *Cluster) Proxy(node string) *Proxy {
	c.tb.Helper()
	if os.Geteuid() != 0 {
		c.tb.Fatal("kube-proxy needs a network namespace, which only root makes: run `make e2e` as root")
	}
	for _, program := range []string{"ip", "nft"} {
		if _, err := exec.LookPath(program); err != nil {
			c.tb.Fatalf("%v: install it by `make namespaces`", err)
		}
	}
	p := &Proxy{Node: node, cluster: c, namespace: newNamespace(c.tb)}
	p.configure()
	p.relay()
	p.answer()
	zoned := p.zoned()
	for range startLimit {
		before := p.start()
		if !zoned || p.knowsZone(before) {
			return p
		}
		c.tb.Logf("kube-proxy on %s missed the zone of its node and is started again", node)
		p.process.Kill()
	}
	c.tb.Fatalf("kube-proxy on %s did not learn its node's zone in %d starts", node, startLimit)
	return nil
}

// kube-proxy 1.36.3 does not always learn its node's zone, and then ignores the hints for zones for good: it adds the
// handler of the node's labels to an informer that already runs, and what that tells before the next line registers the
// proxier is lost (NewNodeTopologyConfig and RegisterEventHandler in its server.go). It is started again until it says
// that it knows. This can go when kube-proxy registers the proxier first: then no test logs another start.
const (
	startLimit = 10              // most starts know
	zoneLimit  = 5 * time.Second // after its first rules; it takes milliseconds, and another start does no harm
	zoneKnown  = "Updated proxier node topology labels"
)

// start starts kube-proxy and waits until it has programmed the namespace. It gives how long its log was before.
func (p *Proxy) start() int {
	c := p.cluster
	c.tb.Helper()
	before := 0
	if p.process != nil {
		before = len(p.process.Log())
	}
	p.process = c.start(command{name: "kube-proxy-" + p.Node, program: filepath.Join(c.programs, "kube-proxy"), inside: p.namespace, args: append([]string{
		"--kubeconfig=" + c.Kubeconfig(userProxy),
		"--proxy-mode=nftables",
		"--hostname-override=" + p.Node,
		"--conntrack-max-per-core=0",             // a namespace may not change the limit of the kernel
		"--healthz-bind-address=127.0.0.1:10256", // the namespace's own loopback
		"--metrics-bind-address=127.0.0.1:10249",
		"--v=4", // tells when it knows the zone
	}, c.options.Proxy...)})
	c.Until("kube-proxy on "+p.Node+" has programmed the default Service", func() error {
		if err := p.process.Running(); err != nil {
			c.tb.Fatal(err)
		}
		rules, err := p.rules()
		if err != nil {
			return err
		}
		if len(rules.services) == 0 {
			return errors.New("no cluster IP is in its rules")
		}
		return nil
	})
	return before
}

// zoned tells whether the node has a zone to learn.
func (p *Proxy) zoned() bool {
	p.cluster.tb.Helper()
	node, err := p.cluster.Client.CoreV1().Nodes().Get(p.cluster.tb.Context(), p.Node, metav1.GetOptions{})
	if err != nil {
		p.cluster.tb.Fatal(err)
	}
	return node.Labels[corev1.LabelTopologyZone] != ""
}

// knowsZone waits until kube-proxy says in its log, from there on, for both families that it has learnt its zone.
func (p *Proxy) knowsZone(from int) bool {
	for deadline := time.Now().Add(zoneLimit); time.Now().Before(deadline); time.Sleep(pollPause) {
		if strings.Count(p.process.Log()[from:], zoneKnown) >= 2 {
			return true
		}
	}
	return false
}

// configure gives the namespace the node's addresses, routes for what leaves it, and makes every pod address local, so
// that endpoints answer in the client's namespace: tests check which one was reached, not the route.
func (p *Proxy) configure() {
	c := p.cluster
	c.tb.Helper()
	commands := []string{"link set lo up", "link add node0 type veth peer name far0", "link set node0 up", "link set far0 up"}
	for _, a := range p.Addresses() {
		commands = append(commands, fmt.Sprintf("address add %s/%d dev node0%s", a, a.BitLen(), undetected(a)))
	}
	commands = append(commands,
		"-4 route add default dev node0", "-6 route add default dev node0",
		"route add local "+podRange4+" dev lo", "-6 route add local "+podRange6+" dev lo")
	for _, command := range commands {
		p.ip(command)
	}
}

// ip runs a command of ip on this node.
func (p *Proxy) ip(command string) {
	tb := p.cluster.tb
	tb.Helper()
	err := p.namespace.Do(func() error {
		out, err := exec.CommandContext(tb.Context(), "ip", strings.Fields(command)...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("ip %s: %w: %s", command, err, out)
		}
		return nil
	})
	if err != nil {
		tb.Fatalf("node %s: %v", p.Node, err)
	}
}

// Own makes an address one of the node's own, so that a program there can listen on it.
func (p *Proxy) Own(address netip.Addr) {
	p.cluster.tb.Helper()
	p.ip(fmt.Sprintf("address add %s/%d dev lo", address, address.BitLen()))
}

// Addresses are those of the node.
func (p *Proxy) Addresses() []netip.Addr {
	p.cluster.tb.Helper()
	addresses, err := p.cluster.addressesOf(p.Node)
	if err != nil {
		p.cluster.tb.Fatal(err)
	}
	return addresses
}

// undetected is the flag with which an address can be used at once. Linux spends one to two seconds on looking for duplicates
// of an IPv6 address (RFC 4862, section 5.4), and meanwhile lets connections come from a link-local one, whose answers are
// lost: they time out.
func undetected(a netip.Addr) string {
	if a.Is6() {
		return " nodad"
	}
	return ""
}

// relay lets what is in the namespace reach the API server at the same address as outside.
func (p *Proxy) relay() {
	p.cluster.tb.Helper()
	address := fmt.Sprintf("127.0.0.1:%d", p.cluster.apiPort)
	serve(p.cluster.tb, p.listen(address), func(client net.Conn) {
		server, err := net.Dial("tcp", address) //nolint:noctx // loopback accepts or refuses at once.
		if err != nil {
			return // an outage: the client finds its connection closed
		}
		splice(client, server)
	})
}

// answer makes each pod address tell itself in 18 bytes: the address as IPv6, then the port.
func (p *Proxy) answer() {
	p.cluster.tb.Helper()
	serve(p.cluster.tb, p.listen(fmt.Sprintf("[::]:%d", PodPort)), func(client net.Conn) {
		self := client.LocalAddr().(*net.TCPAddr).AddrPort()
		bytes := self.Addr().As16()
		_, _ = client.Write(binary.BigEndian.AppendUint16(bytes[:], self.Port()))
	})
}

func (p *Proxy) listen(address string) net.Listener {
	p.cluster.tb.Helper()
	var listener net.Listener
	err := p.namespace.Do(func() (err error) {
		listener, err = net.Listen("tcp", address) //nolint:noctx // returns at once.
		return err
	})
	if err != nil {
		p.cluster.tb.Fatal(err)
	}
	return listener
}

// Weir starts the weir program on this node, as Cluster.Weir does elsewhere.
func (p *Proxy) Weir(name string, args ...string) *Process {
	p.cluster.tb.Helper()
	return p.cluster.start(command{name: name, program: p.cluster.WeirProgram(), args: args, inside: p.namespace})
}

// Do runs f on this node: the sockets that it makes in this goroutine, and the programs that it starts, belong there.
func (p *Proxy) Do(f func() error) error { return p.namespace.Do(f) }

// Connect opens one connection after the other to address from this node and gives which endpoints answered, sorted, each
// once. It is to be told times enough that chance leaves out none.
//
// Errors: the first connection that was refused, or got no answer within Limit: nothing but a drop in the kernel takes that
// long.
func (p *Proxy) Connect(address netip.AddrPort, times int) ([]netip.AddrPort, error) {
	reached := make(map[netip.AddrPort]bool)
	var found []netip.AddrPort
	for range times {
		self, err := p.connectOnce(address)
		if err != nil {
			return nil, err
		}
		if !reached[self] {
			reached[self] = true
			found = append(found, self)
		}
	}
	slices.SortFunc(found, netip.AddrPort.Compare)
	return found, nil
}

func (p *Proxy) connectOnce(address netip.AddrPort) (netip.AddrPort, error) {
	var conn net.Conn
	err := p.namespace.Do(func() (err error) {
		conn, err = (&net.Dialer{Timeout: Limit}).Dial("tcp", address.String()) //nolint:noctx // has a timeout.
		return err
	})
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("from node %s: %w", p.Node, err)
	}
	defer func() { _ = conn.Close() }()
	var text [18]byte
	if err := conn.SetDeadline(time.Now().Add(Limit)); err != nil {
		return netip.AddrPort{}, err
	}
	if _, err := io.ReadFull(conn, text[:]); err != nil {
		return netip.AddrPort{}, fmt.Errorf("from node %s: %s answers nothing: %w", p.Node, address, err)
	}
	self := netip.AddrFrom16([16]byte(text[:16])).Unmap()
	return netip.AddrPortFrom(self, binary.BigEndian.Uint16(text[16:])), nil
}
