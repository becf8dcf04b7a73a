package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/patience"
	"github.com/weir-lb/weir/test/local"
)

// site is a cluster with one service, whose pods are real servers, and the manifests of it all. A test writes policies
// beside them and looks at which pods answer whom.
type site struct {
	folder  string
	block   string // the first three numbers of its addresses, which no other site uses
	service string // namespace/name
	port    uint16
	places  []place
	pods    []*pod
	taken   int // addresses that pods and agents have
}

// place is a node.
type place struct {
	name, zone, region string
	labels             map[string]string
}

// zones are three of them, with a node in each.
func zones() []place {
	return []place{{name: "node-a", zone: "a"}, {name: "node-b", zone: "b"}, {name: "node-c", zone: "c"}}
}

// pod is an HTTP server that answers with its name. What it does can be changed while it runs.
type pod struct {
	name, node  string
	labels      map[string]string
	annotations map[string]string

	addr    netip.AddrPort
	server  *http.Server
	hits    atomic.Int64
	answer  atomic.Pointer[http.HandlerFunc] // nil: 200 with the name
	unready atomic.Bool
}

// newSite makes a cluster on the addresses 127.84.number. Nothing answers for the service yet.
func newSite(t *testing.T, number int, service string, places []place) *site {
	t.Helper()
	s := &site{folder: t.TempDir(), block: fmt.Sprintf("127.84.%d.", number), service: service, places: places}
	s.port = local.FreePort(t, s.block+"1")
	var nodes strings.Builder
	for _, p := range places {
		labels := map[string]string{"topology.kubernetes.io/zone": p.zone, "topology.kubernetes.io/region": p.region, "kubernetes.io/hostname": p.name}
		maps.Copy(labels, p.labels)
		fmt.Fprintf(&nodes, `---
apiVersion: v1
kind: Node
metadata: {name: %s, labels: %s}
status: {allocatable: {cpu: "4"}, conditions: [{type: Ready, status: "True"}]}
`, p.name, asJSON(t, labels))
	}
	s.write(t, "nodes.yaml", nodes.String())
	return s
}

// with starts pods, given as name@node.
func (s *site) with(t *testing.T, pods ...string) *site {
	t.Helper()
	for _, text := range pods {
		name, node, _ := strings.Cut(text, "@")
		s.pods = append(s.pods, s.newPod(t, name, node))
	}
	return s
}

// newPod starts a pod on an address of its own. It is part of the service when it is among s.pods and apply is called.
func (s *site) newPod(t *testing.T, name, node string) *pod {
	t.Helper()
	s.taken++
	l, err := net.Listen("tcp", fmt.Sprintf("%s%d:0", s.block, 10+s.taken)) //nolint:noctx // binds at once.
	if err != nil {
		t.Fatal(err)
	}
	p := &pod{name: name, node: node, addr: netip.MustParseAddrPort(l.Addr().String())}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: limit}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = p.server.Serve(l)
	}()
	t.Cleanup(func() {
		_ = p.server.Close()
		<-done
	})
	return p
}

func (p *pod) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.hits.Add(1)
	if f := p.answer.Load(); f != nil {
		(*f)(w, r)
		return
	}
	_, _ = io.WriteString(w, p.name)
}

// answers sets what the pod does.
func (p *pod) answers(f http.HandlerFunc) { p.answer.Store(&f) }

// behaves goes back to answering with the name.
func (p *pod) behaves() { p.answer.Store(nil) }

// fails answers each request with this status.
func (p *pod) fails(status int) {
	p.answers(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, p.name, status) })
}

// takes answers each request after that long.
func (p *pod) takes(d time.Duration) {
	p.answers(func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(d)
		_, _ = io.WriteString(w, p.name)
	})
}

// pod finds a pod.
func (s *site) pod(name string) *pod {
	return s.pods[slices.IndexFunc(s.pods, func(p *pod) bool { return p.name == name })]
}

// on lists the pods whose nodes' zones, or regions, begin with that.
func (s *site) on(prefix string) []*pod {
	var found []*pod
	for _, p := range s.pods {
		place := s.place(p.node)
		if strings.HasPrefix(place.zone, prefix) || strings.HasPrefix(place.region, prefix) {
			found = append(found, p)
		}
	}
	return found
}

func (s *site) place(node string) place {
	return s.places[slices.IndexFunc(s.places, func(p place) bool { return p.name == node })]
}

// hits counts the requests that pods have had.
func hits(pods []*pod) (n int64) {
	for _, p := range pods {
		n += p.hits.Load()
	}
	return n
}

// write writes a file whole, as kubectl and editors do.
func (s *site) write(t *testing.T, name, text string) {
	t.Helper()
	next := filepath.Join(s.folder, ".next")
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, filepath.Join(s.folder, name)); err != nil {
		t.Fatal(err)
	}
}

// apply writes the service and its pods as they are now.
func (s *site) apply(t *testing.T) {
	t.Helper()
	namespace, name, _ := strings.Cut(s.service, "/")
	var text strings.Builder
	fmt.Fprintf(&text, `apiVersion: v1
kind: Service
metadata: {name: %s, namespace: %s, labels: {weir.dev/distribution: PreferSameZone}}
spec:
  clusterIP: %[3]s1
  clusterIPs: [%[3]s1]
  ports: [{name: http, port: %[4]d, appProtocol: http}]
`, name, namespace, s.block, s.port)
	for _, p := range s.pods {
		fmt.Fprintf(&text, `---
apiVersion: v1
kind: Pod
metadata: {name: %[1]s, namespace: %[2]s, labels: %[3]s, annotations: %[4]s}
spec: {nodeName: %[5]s}
status: {phase: Running, podIPs: [{ip: %[6]s}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %[1]s, namespace: %[2]s, labels: {kubernetes.io/service-name: %[7]s}}
addressType: IPv4
ports: [{name: http, port: %[8]d, protocol: TCP}]
endpoints:
- addresses: [%[6]s]
  zone: %[9]q
  nodeName: %[5]s
  targetRef: {kind: Pod, namespace: %[2]s, name: %[1]s}
  conditions: {ready: %[10]t}
`, p.name, namespace, asJSON(t, p.labels), asJSON(t, p.annotations), p.node, p.addr.Addr(), name, p.addr.Port(),
			s.place(p.node).zone, !p.unready.Load())
	}
	s.write(t, "service.yaml", text.String())
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// example gives one of the policies in deploy/examples/policies, as it stands.
func example(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../deploy/examples/policies", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// replace changes a text in one place.
func replace(t *testing.T, text, before, after string) string {
	t.Helper()
	if strings.Count(text, before) != 1 {
		t.Fatalf("%q is not in the text once:\n%s", before, text)
	}
	return strings.Replace(text, before, after, 1)
}

// policy writes a policy for the service, given the rest of its spec as lines of YAML without indent.
func (s *site) policy(t *testing.T, spec string) {
	t.Helper()
	namespace, name, _ := strings.Cut(s.service, "/")
	s.write(t, "policy.yaml", fmt.Sprintf(`apiVersion: weir.dev/v1alpha1
kind: LoadBalancingPolicy
metadata: {name: tested, namespace: %s}
spec:
  targetRefs: [{group: "", kind: Service, name: %s}]
  %s
`, namespace, name, strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  ")))
}

// start runs weir agent for a node until the test ends.
func (s *site) start(t *testing.T, name string, args ...string) *node {
	t.Helper()
	s.taken++
	n := &node{name: name, ip: fmt.Sprintf("%s%d", s.block, 10+s.taken), ports: map[string]uint16{"http": s.port}}
	n.run(t, append([]string{"-f", s.folder, "--map", s.service + "=" + n.ip}, args...)...)
	return n
}

// servicePage is the part of the agent's page /services that tests look at.
type servicePage struct {
	Services []struct {
		Ports []struct {
			Endpoints int
			Policy    policyPage
			Classes   []struct{ Policy policyPage }
		}
	}
}

type policyPage struct {
	Algorithm string
	Fields    []struct{ Path, Value, Policy string }
}

func (p *policyPage) has(path, value string) bool {
	if path == "algorithm" {
		return p.Algorithm == value
	}
	for _, f := range p.Fields {
		if f.Path == path && (f.Value == value || value == "*") {
			return true
		}
	}
	return false
}

// holds waits until the agent serves by what a policy says: path=value, where the value * is any, and - is none.
func (n *node) holds(t *testing.T, wants ...string) {
	t.Helper()
	for _, want := range wants {
		path, value, _ := strings.Cut(want, "=")
		patience.Until(t, n.name+" serves by "+want, func() bool {
			page, ok := n.services(t)
			if !ok {
				return false
			}
			port := &page.Services[0].Ports[0]
			found := port.Policy.has(path, value)
			for i := range port.Classes {
				found = found || port.Classes[i].Policy.has(path, value)
			}
			if value == "-" {
				return !port.Policy.has(path, "*")
			}
			return found
		})
	}
}

func (n *node) services(t *testing.T) (page servicePage, ok bool) {
	t.Helper()
	return page, n.page(t, "/services", &page) && len(page.Services) == 1 && len(page.Services[0].Ports) == 1
}

// poolPage is the part of the agent's page /pools that tests look at.
type poolPage []struct {
	Endpoints []struct {
		Address    string
		Out        bool
		OutSeconds float64
	}
}

// out tells for how many seconds an endpoint is ejected; 0: it does not.
func (n *node) out(t *testing.T, p *pod) float64 {
	t.Helper()
	var page poolPage
	if !n.page(t, "/pools", &page) {
		return 0
	}
	for _, pool := range page {
		for _, e := range pool.Endpoints {
			if e.Address == p.addr.String() && e.Out {
				return e.OutSeconds
			}
		}
	}
	return 0
}

// page reads a page of the agent's; false when it has nothing to say yet.
func (n *node) page(t *testing.T, path string, into any) bool {
	t.Helper()
	resp, err := http.Get("http://" + n.admin + path) //nolint:noctx // ends with the agent.
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return resp.StatusCode == http.StatusOK
}

// reply is what a client was told.
type reply struct {
	status int
	pod    string // the whole text
	header http.Header
}

// client asks a node. Its connections come from one address.
type client struct {
	url  string
	http *http.Client
}

// client makes a client of the node that connects from an address of the site's block; 0: from any.
func (n *node) client(t *testing.T, number int) *client {
	t.Helper()
	var dialer net.Dialer
	if number > 0 {
		block := n.ip[:strings.LastIndexByte(n.ip, '.')+1]
		dialer.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(fmt.Sprintf("%s%d", block, number)), 0))
	}
	transport := &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	return &client{url: "http://" + n.at("http"), http: &http.Client{Transport: transport, Timeout: limit}}
}

// get asks for a path with header fields: name, value, name, value.
func (c *client) get(path string, fields ...string) (reply, error) {
	r, err := http.NewRequest(http.MethodGet, c.url+path, http.NoBody) //nolint:noctx // the client has a limit.
	if err != nil {
		return reply{}, err
	}
	for i := 0; i+1 < len(fields); i += 2 {
		r.Header.Add(fields[i], fields[i+1])
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, string(body), resp.Header}, err
}

// ask gets an answer that has to be good, and tells which pod gave it.
func (c *client) ask(t *testing.T, path string, fields ...string) string {
	t.Helper()
	got, err := c.get(path, fields...)
	if err != nil || got.status != http.StatusOK {
		t.Fatalf("%s: %v, %d %q", path, err, got.status, got.pod)
	}
	return got.pod
}

// count asks that often, one after the other, and tells how often each pod answered.
func (c *client) count(t *testing.T, times int) map[string]int {
	t.Helper()
	answers := make(map[string]int)
	for range times {
		answers[c.ask(t, "/")]++
	}
	return answers
}

// tally is how a run of many requests went.
type tally struct {
	mu      sync.Mutex
	answers map[string]int // by pod, of the good ones
	bad     []string       // what was told otherwise
}

// flood asks from that many workers until the function that it gives is called, which tells how it went.
func (c *client) flood(t *testing.T, workers int, request func(i int) (path string, fields []string)) func() *tally {
	t.Helper()
	r := &tally{answers: make(map[string]int)}
	var stopped atomic.Bool
	var number atomic.Int64
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for !stopped.Load() {
				path, fields := request(int(number.Add(1)))
				got, err := c.get(path, fields...)
				r.mu.Lock()
				if err != nil || got.status != http.StatusOK {
					r.bad = append(r.bad, fmt.Sprint(got.status, got.pod, err))
				} else {
					r.answers[got.pod]++
				}
				r.mu.Unlock()
			}
		})
	}
	stop := sync.OnceFunc(func() {
		stopped.Store(true)
		running.Wait()
	})
	t.Cleanup(stop)
	return func() *tally {
		stop()
		return r
	}
}

// plain is a request of which nothing is special.
func plain(int) (string, []string) { return "/", nil }

// about is a share that is expected of a number of requests.
type about struct {
	of           int
	want, within float64
}

// near checks a share of requests.
func near(t *testing.T, what string, got int, a about) {
	t.Helper()
	if share := float64(got) / float64(a.of); share < a.want-a.within || share > a.want+a.within {
		t.Errorf("%s: %d of %d are %.4f, want %.4f ± %.4f", what, got, a.of, share, a.want, a.within)
	}
}

// total is the number of answers.
func total(answers map[string]int) (n int) {
	for _, count := range answers {
		n += count
	}
	return n
}
