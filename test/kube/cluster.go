package kube

import (
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Addresses of a cluster. They mean nothing outside it.
const (
	serviceRanges = "10.96.0.0/16,fd00:10:96::/112"
	podRange4     = "10.244.0.0/16"
	podRange6     = "fd00:10:244::/64"
	nodeRange4    = "10.100.0.0/16"
	nodeRange6    = "fd00:10:100::/64"
	// advertised is the API server's address in the default kubernetes Service; of the block for documentation (RFC 5737),
	// because loopback is refused and nothing connects to it.
	advertised = "192.0.2.1"
)

// Limit is how long the harness waits for what has to happen. It is far above what a busy machine needs, so that only a
// hang meets it.
const Limit = time.Minute

// Options says how a cluster differs from the usual one; the zero value is usual.
type Options struct {
	// APIServer, ControllerManager and Proxy are further flags of these programs. A flag given here wins.
	APIServer, ControllerManager, Proxy []string
	// FirstPod is added to the numbers of pods, so that those of two clusters have different addresses.
	FirstPod uint32
	// Controllers are those of kube-controller-manager that run. Nil: the ones that write and remove EndpointSlices.
	Controllers []string
}

// A Cluster is a control plane, as one test sees it. Its methods fail that test when the cluster does not do as told, so they
// belong in the test's goroutine unless they say otherwise.
type Cluster struct {
	Admin  *rest.Config         // may do everything; not limited in its rate
	Client kubernetes.Interface // of Admin

	tb   testing.TB
	logs string // the folder of the logs of the programs that this test started
	*controlPlane
}

// controlPlane is what all tests of a cluster share.
type controlPlane struct {
	options   Options
	programs  string // the folder with the programs
	folder    string // of this cluster: certificates, data, logs
	authority *authority
	owner     *Cluster // the view of the test that started it, with which its programs end
	views     atomic.Uint32

	etcdPort, apiPort, managerPort int

	apiServer, manager *Process // nil while stopped

	nodes     nodes
	routes    routes
	audit     audit
	podNumber atomic.Uint32
}

// Start starts a control plane, without nodes, and waits until it answers.
func Start(tb testing.TB, o Options) *Cluster {
	tb.Helper()
	if o.Controllers == nil {
		// The collector removes the slices of a removed Service, and the namespace controller what is in a namespace.
		o.Controllers = []string{"endpointslice-controller", "garbage-collector-controller", "namespace-controller", "serviceaccount-controller"}
	}
	c := &Cluster{tb: tb, controlPlane: &controlPlane{options: o, programs: programs(tb), folder: folder(tb)}}
	c.logs, c.owner = c.folder, c
	c.podNumber.Store(o.FirstPod)
	c.authority = newAuthority(tb, c.folder)
	if err := errors.Join(c.authority.server("server", "kubernetes", "kubernetes.default", "kubernetes.default.svc"), c.authority.user("tokens", pkix.Name{CommonName: "tokens"})); err != nil {
		tb.Fatal(err)
	}
	c.etcdPort, c.apiPort, c.managerPort = c.Port(), c.Port(), c.Port()
	c.serveRoutes()
	c.startEtcd()
	c.connect()
	c.StartAPIServer()
	c.StartControllerManager()
	return c
}

// For is the cluster as a subtest of the one that started it sees it: programs that it starts end with the subtest, and its
// failures are the subtest's.
//
// Subtests share nodes, cluster-wide objects and the audit log. One of them at a time may have weir's controller run.
func (c *Cluster) For(tb testing.TB) *Cluster {
	tb.Helper()
	view := &Cluster{Admin: c.Admin, Client: c.Client, tb: tb, controlPlane: c.controlPlane}
	view.logs = filepath.Join(c.folder, fmt.Sprintf("test-%d", c.views.Add(1)))
	if err := os.Mkdir(view.logs, 0o700); err != nil {
		tb.Fatal(err)
	}
	return view
}

// programs finds the folder with the programs of the control plane.
func programs(tb testing.TB) string {
	tb.Helper()
	const remedy = "run the tests by `make e2e`, or set KUBE_BIN to what `make kube` prints"
	folder := os.Getenv("KUBE_BIN")
	if folder == "" {
		tb.Fatal("KUBE_BIN is not set: ", remedy)
	}
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-proxy", "kubectl"} {
		if _, err := exec.LookPath(filepath.Join(folder, name)); err != nil {
			tb.Fatalf("%s is not in KUBE_BIN (%v): %s", name, err, remedy)
		}
	}
	return folder
}

// folder makes a folder with a short name, as a socket's must be, and removes it after the test.
func folder(tb testing.TB) string {
	tb.Helper()
	path, err := os.MkdirTemp("", "weir-kube-") //nolint:usetesting // a test's own folder is named after the test.
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(path) })
	return path
}

// connect makes the administrator's client.
func (c *Cluster) connect() {
	c.tb.Helper()
	var err error
	if c.Admin, err = clientcmd.BuildConfigFromFlags("", c.AdminKubeconfig()); err != nil {
		c.tb.Fatal(err)
	}
	c.Admin.QPS = -1 // no limit: tests make many objects
	c.Admin.UserAgent = "weir-test"
	quick := rest.CopyConfig(c.Admin)
	quick.ContentType = "application/vnd.kubernetes.protobuf" // much less work than JSON for both sides
	if c.Client, err = kubernetes.NewForConfig(quick); err != nil {
		c.tb.Fatal(err)
	}
}

func (c *Cluster) startEtcd() {
	c.tb.Helper()
	client, peer := fmt.Sprintf("http://127.0.0.1:%d", c.etcdPort), fmt.Sprintf("http://127.0.0.1:%d", c.Port())
	c.start(command{name: "etcd", program: filepath.Join(c.programs, "etcd"), args: []string{
		"--data-dir", filepath.Join(c.folder, "etcd"),
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default=" + peer,
		"--unsafe-no-fsync", // the data is not needed after a crash
		"--quota-backend-bytes", "8589934592",
		"--log-level", "warn",
	}})
}

// URL is where the API server listens, also from the namespace of a Proxy.
func (c *Cluster) URL() string { return fmt.Sprintf("https://127.0.0.1:%d", c.apiPort) }

// StartAPIServer starts the API server, at the same place as before, and waits until it is ready. Start has done so.
func (c *Cluster) StartAPIServer() {
	c.tb.Helper()
	c.apiServer = c.owner.start(command{name: "kube-apiserver", program: filepath.Join(c.programs, "kube-apiserver"), args: append([]string{
		fmt.Sprintf("--etcd-servers=http://127.0.0.1:%d", c.etcdPort),
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", c.apiPort),
		"--advertise-address=" + advertised,
		"--tls-cert-file=" + c.authority.path("server.pem"), "--tls-private-key-file=" + c.authority.path("server.key"),
		"--client-ca-file=" + c.authority.path("ca.pem"),
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + c.authority.path("tokens.pem"), "--service-account-signing-key-file=" + c.authority.path("tokens.key"),
		"--service-cluster-ip-range=" + serviceRanges,
		// Pods here have no service account's token mounted, and nodes become ready by a patch, not by a controller that
		// removes taints.
		"--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
		"--egress-selector-config-file=" + c.writeEgress(),
		"--audit-policy-file=" + c.writeAuditPolicy(), "--audit-log-path=" + c.auditPath(), "--audit-log-mode=blocking",
		"--audit-log-maxsize=1000000", // in MiB: never starts another file
	}, c.options.APIServer...)})
	until(c.tb, "the API server is ready", Limit, func() error {
		if err := c.apiServer.Running(); err != nil {
			c.tb.Fatal(err)
		}
		return c.Client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(c.tb.Context()).Error()
	})
}

// StopAPIServer kills the API server: an outage. Clients get connections refused until StartAPIServer.
func (c *Cluster) StopAPIServer() {
	c.apiServer.Kill()
}

// StartControllerManager starts kube-controller-manager and waits until it is healthy. Start has done so.
func (c *Cluster) StartControllerManager() {
	c.tb.Helper()
	c.manager = c.owner.start(command{name: "kube-controller-manager", program: filepath.Join(c.programs, "kube-controller-manager"), args: append([]string{
		"--kubeconfig=" + c.Kubeconfig(userControllerManager),
		"--controllers=" + strings.Join(c.options.Controllers, ","),
		"--use-service-account-credentials=true",
		"--leader-elect=false",
		"--cluster-cidr=" + podRange4 + "," + podRange6, "--allocate-node-cidrs=false",
		"--service-cluster-ip-range=" + serviceRanges,
		"--kube-api-qps=500", "--kube-api-burst=1000", // so that the tests wait for decisions and not for a rate limit
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", c.managerPort),
		"--cert-dir=" + filepath.Join(c.folder, "manager"),
		"--authorization-always-allow-paths=/healthz,/metrics",
	}, c.options.ControllerManager...)})
	until(c.tb, "kube-controller-manager is healthy", Limit, func() error {
		if err := c.manager.Running(); err != nil {
			c.tb.Fatal(err)
		}
		_, err := c.Fetch(fmt.Sprintf("https://127.0.0.1:%d/healthz", c.managerPort), "")
		return err
	})
}

// StopControllerManager kills kube-controller-manager.
func (c *Cluster) StopControllerManager() {
	c.manager.Kill()
}

// Kubectl runs kubectl as the administrator and gives what it prints.
func (c *Cluster) Kubectl(args ...string) string {
	c.tb.Helper()
	cmd := exec.CommandContext(c.tb.Context(), filepath.Join(c.programs, "kubectl"), append([]string{"--kubeconfig", c.AdminKubeconfig()}, args...)...)
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		c.tb.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, problems.String())
	}
	return string(out)
}

// Apply applies a file or a folder of manifests, server-side, as an installation does.
func (c *Cluster) Apply(path string) {
	c.tb.Helper()
	c.Kubectl("apply", "--server-side", "-f", path)
}

// Until asks holds until it gives nil, tells how long that took, and fails the test with the last error after Limit.
func (c *Cluster) Until(what string, holds func() error) time.Duration {
	c.tb.Helper()
	return until(c.tb, what, Limit, holds)
}

// UntilWithin is Until with a limit of its own.
func (c *Cluster) UntilWithin(limit time.Duration, what string, holds func() error) time.Duration {
	c.tb.Helper()
	return until(c.tb, what, limit, holds)
}
