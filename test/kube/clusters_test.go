//go:build e2e

package kube_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/weir-lb/weir/test/kube"
)

const (
	// westPods is the number after which those of the second cluster are counted, so that its addresses differ.
	westPods = 1 << 12
	// A pod answers podWorkers requests at a time, each in podTime: 40 requests a second.
	podWorkers = 2
	podTime    = 50 * time.Millisecond
	// clustersLimit is how long a change may take to show in where requests go: seconds on a quiet machine.
	clustersLimit = time.Minute
	clusterSetIP  = "10.96.200.1"
	secretsIn     = "weir-clusters"
)

// twoClusters are two control planes, an agent in the first, and the Service shop/web in both.
type twoClusters struct {
	*nodeClient
	here, west   *kube.Cluster
	ours, theirs *kube.App
	agent        *kube.Process
	link         *kube.Link
	address      netip.AddrPort
	isWestCut    atomic.Bool // the pods of the second cluster cannot be reached
	mu           sync.Mutex
	workers      map[netip.AddrPort]chan struct{} // of each pod
}

// TestTwoClustersServeOneService has agents of one cluster send to the other under overload, on loss of all own zones, and with the
// link between the two cut, and return each time.
func TestTwoClustersServeOneService(t *testing.T) {
	t.Parallel()
	w := startTwoClusters(t)
	w.wantOwn("at rest")
	w.overload()
	w.wantOwn("after the overload")
	w.loseOwnZones()
	w.wantOwn("after the loss")
	w.cutAPI()
	w.cutAll()
	w.imports()
}

func startTwoClusters(t *testing.T) *twoClusters {
	t.Helper()
	w := &twoClusters{workers: make(map[netip.AddrPort]chan struct{})}
	w.here, w.west = kube.Start(t, kube.Options{}), kube.Start(t, kube.Options{FirstPod: westPods})
	w.here.Nodes(1, "zone-a", "zone-b")
	w.west.Nodes(1, "zone-a", "zone-c")
	app := kube.AppOptions{Namespace: "shop", Name: "web"}
	app.Pods = map[string]int{"zone-a": 1, "zone-b": 1}
	w.ours = w.here.Deploy(app)
	app.Pods = map[string]int{"zone-a": 2, "zone-c": 2}
	w.theirs = w.west.Deploy(app)
	w.address = w.ours.Addresses()[0]

	node := w.here.BareWith("zone-a-0", w.answer)
	node.Own(w.address.Addr())
	node.Own(netip.MustParseAddr(clusterSetIP))
	w.nodeClient = newNodeClient(t, node)
	w.link = node.Link(w.west)
	kubeconfig := agentKubeconfig(w.here)
	w.follow()
	w.agent = node.Weir("agent", "agent", "--node=zone-a-0", "--serve=all", "--cluster-secrets="+secretsIn, "--kubeconfig="+kubeconfig)
	w.here.Until("the agent has the endpoints of both clusters", func() error { return w.hasEndpoints("shop/web", 6) })
	return w
}

// follow runs the commands of docs/clusters.md as written, with a context for each cluster.
func (w *twoClusters) follow() {
	w.t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		w.t.Fatal(err)
	}
	folder := w.t.TempDir()
	for _, name := range []string{"docs", "deploy"} {
		if err := os.Symlink(filepath.Join(root, name), filepath.Join(folder, name)); err != nil {
			w.t.Fatal(err)
		}
	}
	config := clientcmdapi.NewConfig()
	for name, c := range map[string]*kube.Cluster{"here": w.here, "west": w.west} {
		one, err := clientcmd.LoadFromFile(c.AdminKubeconfig())
		if err != nil {
			w.t.Fatal(err)
		}
		context := one.Contexts[one.CurrentContext]
		config.Clusters[name], config.AuthInfos[name] = one.Clusters[context.Cluster], one.AuthInfos[context.AuthInfo]
		config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	}
	path := filepath.Join(folder, "config")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		w.t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "clusters.md"))
	if err != nil {
		w.t.Fatal(err)
	}
	commands := 0
	for line := range strings.Lines(string(page)) {
		command, isCommand := strings.CutPrefix(line, "    kubectl ")
		if !isCommand {
			continue
		}
		commands++
		run := exec.CommandContext(w.t.Context(), "bash", "-c", "kubectl "+command)
		run.Dir = folder
		run.Env = append(os.Environ(), "KUBECONFIG="+path, "PATH="+os.Getenv("KUBE_BIN")+":"+os.Getenv("PATH"))
		if out, err := run.CombinedOutput(); err != nil {
			w.t.Fatalf("kubectl %s: %v\n%s", command, err, out)
		}
	}
	if commands == 0 {
		w.t.Fatal("docs/clusters.md has no commands")
	}
}

// answer is a pod with podWorkers workers.
func (w *twoClusters) answer(pod netip.AddrPort) {
	if w.isWest(pod) && w.isWestCut.Load() {
		panic(http.ErrAbortHandler)
	}
	w.mu.Lock()
	workers := w.workers[pod]
	if workers == nil {
		workers = make(chan struct{}, podWorkers)
		w.workers[pod] = workers
	}
	w.mu.Unlock()
	workers <- struct{}{}
	time.Sleep(podTime)
	<-workers
}

// isWest tells whether a pod is of the second cluster.
func (*twoClusters) isWest(pod netip.AddrPort) bool {
	return pod.Addr().Compare(netip.MustParseAddr("10.244.16.0")) >= 0
}

// page reads a page of the agent.
func (w *twoClusters) page(path string) string {
	w.t.Helper()
	if err := w.agent.Running(); err != nil {
		w.t.Fatal(err)
	}
	text, err := w.get(agentAdmin + path)
	if err != nil {
		return err.Error()
	}
	return text
}

// hasEndpoints sees that the agent has so many endpoints for a service.
func (w *twoClusters) hasEndpoints(service string, want int) error {
	var status struct {
		Services []struct {
			Service string
			Ports   []struct{ Endpoints int }
		}
	}
	text := w.page("/services")
	if err := json.Unmarshal([]byte(text), &status); err != nil {
		return fmt.Errorf("%w: %s", err, text)
	}
	for _, s := range status.Services {
		if s.Service == service && len(s.Ports) > 0 && s.Ports[0].Endpoints == want {
			return nil
		}
	}
	return fmt.Errorf("not %d endpoints of %s: %s", want, service, text)
}

// load sends requests with so many clients at once for a while, and gives how many each cluster answered and how many failed.
func (w *twoClusters) load(clients int, pause, lasts time.Duration) (own, west, failed int64) {
	var group sync.WaitGroup
	var counts [3]atomic.Int64
	end := time.Now().Add(lasts)
	for range clients {
		group.Go(func() {
			for time.Now().Before(end) {
				pod, err := w.reached(w.address)
				switch {
				case err != nil:
					counts[2].Add(1)
				case w.isWest(pod):
					counts[1].Add(1)
				default:
					counts[0].Add(1)
				}
				time.Sleep(pause)
			}
		})
	}
	group.Wait()
	return counts[0].Load(), counts[1].Load(), counts[2].Load()
}

// wantOwn waits until a light load stays in its cluster.
func (w *twoClusters) wantOwn(when string) {
	w.t.Helper()
	took := w.here.UntilWithin(clustersLimit, "requests stay in their cluster "+when, func() error {
		own, west, failed := w.load(2, 5*time.Millisecond, 500*time.Millisecond)
		if west > 0 || failed > 0 || own == 0 {
			return fmt.Errorf("%d of its own, %d of the other cluster, %d failed", own, west, failed)
		}
		return nil
	})
	w.t.Logf("measured: %s requests stay in their cluster after %.1f s", when, took.Seconds())
}

// overload sends more than the own pods can take.
func (w *twoClusters) overload() {
	w.t.Helper()
	took := w.here.UntilWithin(clustersLimit, "the excess goes to the other cluster", func() error {
		own, west, failed := w.load(40, 0, time.Second)
		if failed > 0 {
			w.t.Errorf("%d of %d requests failed under overload", failed, own+west+failed)
		}
		if own == 0 || west*10 < own {
			return fmt.Errorf("%d of its own, %d of the other cluster", own, west)
		}
		return nil
	})
	w.t.Logf("measured: the excess goes to the other cluster after %.1f s", took.Seconds())
}

// loseOwnZones takes all own pods away, and brings them back.
func (w *twoClusters) loseOwnZones() {
	w.t.Helper()
	w.ours.Scale("zone-a", 0)
	w.ours.Scale("zone-b", 0)
	took := w.here.UntilWithin(clustersLimit, "the other cluster answers", func() error {
		own, west, failed := w.load(2, 5*time.Millisecond, 300*time.Millisecond)
		if own > 0 || failed > 0 || west == 0 {
			return fmt.Errorf("%d of its own, %d of the other cluster, %d failed", own, west, failed)
		}
		return nil
	})
	w.t.Logf("measured: without pods of its own the other cluster answers after %.1f s", took.Seconds())
	w.ours.Scale("zone-a", 1)
	w.ours.Scale("zone-b", 1)
}

// cutAPI takes the other API server away, and with it no request.
func (w *twoClusters) cutAPI() {
	w.t.Helper()
	w.link.Cut()
	w.here.Until("the agent says that its state of the other cluster is stale", func() error {
		if text := w.page("/services"); !strings.Contains(text, "ClusterStale") {
			return fmt.Errorf("no such problem: %s", text)
		}
		if text := w.page("/metrics"); !strings.Contains(text, `weir_cluster_stale{cluster="west"} 1`) {
			return errors.New("the metric does not say so")
		}
		return nil
	})
	if err := w.hasEndpoints("shop/web", 6); err != nil {
		w.t.Error(err)
	}
	w.loseOwnZones() // the last state serves
	w.theirs.Scale("zone-c", 3)
	w.link.Mend()
	took := w.here.UntilWithin(clustersLimit, "the agent follows the other cluster again", func() error {
		if strings.Contains(w.page("/services"), "ClusterStale") {
			return errors.New("it is stale")
		}
		return w.hasEndpoints("shop/web", 7)
	})
	w.t.Logf("measured: the other cluster is followed again %.1f s after the link is back", took.Seconds())
}

// cutAll breaks the connections to the pods, too: that costs no request of the own cluster.
func (w *twoClusters) cutAll() {
	w.t.Helper()
	w.wantOwn("before the link is cut")
	w.link.Cut()
	w.isWestCut.Store(true)
	if own, west, failed := w.load(2, 5*time.Millisecond, 2*time.Second); own == 0 || west > 0 || failed > 0 {
		w.t.Errorf("with the link cut: %d of its own, %d of the other cluster, %d failed", own, west, failed)
	}
	w.isWestCut.Store(false)
	w.link.Mend()
}

// imports installs the Multi-Cluster Services API while the agent runs, and serves what an implementation of it would write.
func (w *twoClusters) imports() {
	w.t.Helper()
	w.here.Apply("testdata/serviceimport.yaml")
	w.here.Until("the ServiceImport is there", func() error {
		_, err := w.here.Client.Discovery().ServerResourcesForGroupVersion("multicluster.x-k8s.io/v1alpha1")
		return err
	})
	w.here.Apply("testdata/import.yaml")
	took := w.here.UntilWithin(2*clustersLimit, "the agent serves the import", func() error { return w.hasEndpoints("shop/cart.clusterset", 1) })
	w.t.Logf("measured: a ServiceImport of a kind that came later is served after %.1f s", took.Seconds())
	pod, err := w.reached(netip.AddrPortFrom(netip.MustParseAddr(clusterSetIP), kube.ServicePort))
	if err != nil || pod.String() != "10.244.32.1:8080" {
		w.t.Errorf("the cluster-set IP reaches %v, %v; want 10.244.32.1:8080", pod, err)
	}
}
