package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/weir-lb/weir/internal/ops"
)

// The standard limits of what weir asks of an API server: those of kube-controller-manager, which a cluster's API server
// is made to stand.
const (
	defaultAPIPerSecond = 20
	defaultAPIBurst     = 30
)

// clusterFlags say which cluster to talk to, as which user and how much.
type clusterFlags struct {
	kubeconfig string
	context    string
	perSecond  float32
	burst      int
}

func (f *clusterFlags) group() flagGroup {
	g := group("Cluster")
	g.StringVar(&f.kubeconfig, "kubeconfig", "",
		"kubeconfig file (default: the pod's own service account in a cluster, else $KUBECONFIG, else ~/.kube/config)")
	g.StringVar(&f.context, "context", "", "context of the kubeconfig (default: its current one)")
	g.Float32Var(&f.perSecond, "kube-api-qps", defaultAPIPerSecond,
		"requests to the API server each second; watching takes none")
	g.IntVar(&f.burst, "kube-api-burst", defaultAPIBurst, "requests to the API server at once, above that rate")
	return g
}

// config finds the cluster and says how to reach it. It asks the cluster nothing.
//
// The content type is left open: controller-runtime then speaks protobuf about every type that has it, which is all
// that weir reads, and JSON about the rest.
func (f *clusterFlags) config() (*rest.Config, error) {
	if !(f.perSecond > 0) { // also when it is not a number
		return nil, &usageError{fmt.Errorf("--kube-api-qps=%v: want more than 0", f.perSecond)}
	}
	if f.burst < 1 {
		return nil, &usageError{fmt.Errorf("--kube-api-burst=%d: want at least 1", f.burst)}
	}
	c, err := f.load()
	if err != nil {
		return nil, err
	}
	c.QPS, c.Burst = f.perSecond, f.burst
	c.UserAgent = userAgent(ops.ReadBuild())
	return c, nil
}

// isInside tells whether weir runs in a pod and was not pointed elsewhere.
func (f *clusterFlags) isInside() bool {
	return f.kubeconfig == "" && f.context == "" && os.Getenv(clientcmd.RecommendedConfigPathEnvVar) == "" &&
		os.Getenv("KUBERNETES_SERVICE_HOST") != ""
}

func (f *clusterFlags) load() (*rest.Config, error) {
	if f.isInside() {
		c, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("use the pod's service account (--kubeconfig or --context would point elsewhere): %w", err)
		}
		return c, nil
	}
	c, _, err := readKubeconfig(f.kubeconfig, &clientcmd.ConfigOverrides{CurrentContext: f.context})
	if errors.Is(err, errNoKubeconfig) {
		return nil, &usageError{errors.New("no cluster: name a kubeconfig with --kubeconfig or in $KUBECONFIG")}
	}
	return c, err
}

// errNoKubeconfig tells that no kubeconfig was named and none is where it is looked for.
var errNoKubeconfig = errors.New("there is no kubeconfig")

// readKubeconfig finds a cluster, and the namespace that the user works in, as kubectl does: in the file that is named,
// else in those of $KUBECONFIG, else in ~/.kube/config, else by the service account of the pod.
func readKubeconfig(file string, overrides *clientcmd.ConfigOverrides) (c *rest.Config, namespace string, err error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath, rules.WarnIfAllMissing = file, false
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	c, err = loader.ClientConfig()
	if err == nil {
		namespace, _, err = loader.Namespace()
	}
	switch {
	case err == nil:
		return c, namespace, nil
	case clientcmd.IsEmptyConfig(err) && file == "":
		return nil, "", errNoKubeconfig
	default:
		files := cmp.Or(file, strings.Join(rules.GetLoadingPrecedence(), ", "))
		return nil, "", fmt.Errorf("read the kubeconfig %s: %w", files, err)
	}
}

// userAgent names weir in the API server's logs and metrics. A version in brackets, as that of a working tree, would be a
// comment there.
func userAgent(b ops.Build) string {
	agent := "weir/" + strings.Trim(b.Version, "()") + " (" + b.Platform + ")"
	if b.Revision != "" {
		agent += " " + b.Revision
	}
	return agent
}
