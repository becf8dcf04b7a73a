package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"github.com/weir-lb/weir/internal/agent"
	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/l7"
	"github.com/weir-lb/weir/internal/latest"
	"github.com/weir-lb/weir/internal/manifest"
	"github.com/weir-lb/weir/internal/ops"
)

const agentLong = `Serve the services of a cluster on one node: listen on their cluster IPs, send each request to an endpoint of the
node's own zone while that copes, and the excess to the next-cheapest zone when it does not.

Without -f the cluster that this machine is in, or that of the kubeconfig, is followed, with the hints that are on its
EndpointSlices; while its API server is gone the last state is served. There it serves only what was given to it by the
label service.kubernetes.io/service-proxy-name=weir or by --map, and what asks for the kernel, so that it can run beside
kube-proxy.

The connections and UDP flows of pods to a service with the label weir.dev/data-plane=kernel are placed by programs in the
kernel as they are made, with no listener between; kube-proxy serves what they do not. That takes root.

With -f manifests are served and watched, with the load-balancing policies among them: a change is followed within a
second. While a file is invalid the last valid state is served; while a policy is invalid its last valid form applies. On
SIGTERM or SIGINT the listeners close and requests in flight finish; a second signal ends at once.`

const agentExample = `  # Serve, on the node that the pod runs on, the services of the cluster that were given to weir
  weir agent --node "$NODE_NAME"

  # Serve a folder of manifests as the node worker-1
  weir agent -f manifests/ --node worker-1

  # Serve one service on a loopback address, try 5xx again elsewhere
  weir agent -f manifests/ --node worker-1 --map shop/web=127.0.10.1 --retry-on 5xx

  # Print what would be served, and serve nothing
  weir agent -f manifests/ --node worker-1 --dry-run`

// defaultAdmin is on loopback, because the admin pages do not authenticate clients, and on a port next to Envoy's.
const defaultAdmin = "127.0.0.1:9902"

// agentFlags are the command's flags as typed.
type agentFlags struct {
	source   sourceFlags
	cluster  clusterFlags
	config   agent.Config
	nodes    string
	pods     string
	policies bool
	serves   string

	clusterSecrets string // namespace
	zone           string
	hints          string
	mappings       []string
	filters        []string
	retryOn        string
	admin          string
	profiling      bool
	log            logFlags
	detach         bool
	dryRun         bool
	output         string
}

// agentCommand makes weir agent.
func agentCommand() *cobra.Command {
	var f agentFlags
	c := &cobra.Command{
		Use:     "agent [-f FILENAME] --node NAME",
		Short:   "Serve a cluster's services on one node",
		Long:    agentLong,
		Example: agentExample,
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	f.source.group().addTo(c)
	f.cluster.group().addTo(c)
	for _, g := range []flagGroup{f.node(), f.balancing(), f.retries(), f.limits(), f.kernel(), f.operation()} {
		g.addTo(c)
	}
	return c
}

func (f *agentFlags) node() flagGroup {
	g := group("Node")
	g.StringVar(&f.config.Node, "node", os.Getenv("NODE_NAME"),
		"name of the node to serve; its zone decides which endpoints are near (default: $NODE_NAME)")
	g.StringVar(&f.zone, "zone", "", "take this zone instead of the node's own; the node need not exist then")
	g.StringVar(&f.nodes, "nodes", "",
		"which nodes to know: own (this one; needs native hints) or all (default: own in a cluster with native hints, else all)")
	g.StringVar(&f.pods, "pods", "",
		"which pods of a cluster to know, for policies that select clients or ask for labels of endpoints: none, own (those "+
			"of this node) or all (default: own)")
	g.StringVar(&f.clusterSecrets, "cluster-secrets", "",
		"namespace of the Secrets with the label weir.dev/cluster, which name further clusters to follow (default: none are)")
	g.StringVar(&f.serves, "serve", "",
		"which services to serve: labelled (given to weir by service.kubernetes.io/service-proxy-name=weir or weir.dev/data-plane, or mapped) or all "+
			"(default: labelled in a cluster, all with -f)")
	g.StringArrayVar(&f.mappings, "map", nil,
		"listen elsewhere than on the cluster IP: [NAMESPACE/]SERVICE[:PORT]=ADDRESS[:PORT]; may be repeated")
	return g
}

func (f *agentFlags) balancing() flagGroup {
	g := group("Balancing")
	g.StringVar(&f.hints, "hints", "",
		"which hints decide what the node may use: plan (weir's own) or native (those on the EndpointSlices) "+
			"(default: native in a cluster, plan with -f)")
	g.BoolVar(&f.policies, "policies", true, "follow the LoadBalancingPolicies of the cluster; those of manifests always are")
	g.StringVar(&f.config.Strategy, "strategy", agent.DefaultStrategy,
		"overflow strategy of services that ask for none, and that no policy is about: "+strings.Join(overflow.Names(), ", "))
	g.StringVar(&f.config.Algorithm, "algorithm", string(pick.PowerOfTwo),
		"how an endpoint of a zone is chosen where no policy says so: "+join(pick.Algorithms()))
	g.StringSliceVar(&f.filters, "trusted-filter", nil,
		"networks of clients, such as a gateway's, that may say what a request is hashed by in the header "+l7.FilterStateField+
			"; may be repeated")
	return g
}

func (f *agentFlags) retries() flagGroup {
	g, standard := group("Retries"), l7.DefaultRetry()
	g.StringVar(&f.retryOn, "retry-on", "connect-failure,reset",
		"when to try another endpoint, where that is safe: any of connect-failure, reset, gateway-error, 5xx (the last two include the first two)")
	g.IntVar(&f.config.Retry.Attempts, "retry-attempts", standard.Attempts,
		"endpoints tried for a request at most, 1 (no retries) to 8")
	g.Float64Var(&f.config.Retry.BudgetRatio, "retry-budget", standard.BudgetRatio,
		"retries allowed for each request, beside those of --retry-min; 0: only those")
	g.IntVar(&f.config.Retry.MinPerSecond, "retry-min", standard.MinPerSecond,
		"retries allowed each second whatever the traffic; 0: none")
	return g
}

func (f *agentFlags) limits() flagGroup {
	g := group("Limits of each listener (0: no limit)")
	limits, timeouts := l7.DefaultLimits(), l7.DefaultTimeouts()
	g.IntVar(&f.config.Limits.Connections, "max-connections", limits.Connections,
		"connections of clients; more are told 503 and closed")
	g.IntVar(&f.config.Limits.Pending, "max-pending", limits.Pending,
		"requests that wait for the head of an answer; more are told 503")
	g.IntVar(&f.config.Limits.Head, "max-head-bytes", limits.Head,
		"bytes of a request's head; more are told 431")
	g.DurationVar(&f.config.Timeouts.Connect, "connect-timeout", timeouts.Connect,
		"for a connection to an endpoint; then another one is tried")
	g.DurationVar(&f.config.Timeouts.Head, "head-timeout", timeouts.Head,
		"for a request's whole head; then 408")
	g.DurationVar(&f.config.Timeouts.Response, "response-timeout", timeouts.Response,
		"for the head of an answer, once the request is sent; then 504; not for gRPC")
	g.DurationVar(&f.config.Timeouts.Request, "request-timeout", timeouts.Request,
		"for a whole request and its answer")
	g.DurationVar(&f.config.Timeouts.Idle, "idle-timeout", timeouts.Idle,
		"for the next request on a client's kept connection")
	return g
}

func (f *agentFlags) kernel() flagGroup {
	g := group("Kernel data plane")
	g.StringVar(&f.config.Kernel.Cgroup, "cgroup", "",
		"folder of the cgroup whose processes are served (default: the root of the cgroup2 file system)")
	g.StringVar(&f.config.Kernel.Pins, "bpf-path", defaultPins,
		"folder in a bpf file system where programs and counters outlive the agent; empty: they do not")
	g.BoolVar(&f.detach, "detach", false, "remove what agents left in --bpf-path, and serve nothing")
	return g
}

// defaultPins is in the bpf file system of every distribution that mounts one.
const defaultPins = "/sys/fs/bpf/weir"

// remove removes what agents have pinned.
func (f *agentFlags) remove(c *cobra.Command) error {
	c.SilenceUsage = true
	freed, err := agent.DetachKernel(f.config.Kernel.Pins)
	if err != nil {
		return fmt.Errorf("detach the programs in %s: %w", f.config.Kernel.Pins, err)
	}
	c.Printf("%d programs detached, nothing is left in %s\n", freed, f.config.Kernel.Pins)
	return nil
}

func (f *agentFlags) operation() flagGroup {
	g := group("Operation")
	g.StringVar(&f.admin, "admin-bind-address", defaultAdmin,
		"where /metrics, /readyz, /livez, /services, /policies, /plans and /pools are; empty: nowhere")
	g.BoolVar(&f.profiling, "profiling", false, "serve /debug/pprof there, too")
	g.DurationVar(&f.config.Drain, "drain-timeout", agent.DefaultDrain,
		"how long requests in flight may go on after their listener closed; 0: not at all")
	f.log.addTo(g)
	g.BoolVar(&f.dryRun, "dry-run", false, "print what would be served, and serve nothing")
	g.StringVarP(&f.output, "output", "o", "table", "of --dry-run: table, json or yaml")
	return g
}

// run serves until the command's context ends.
func (f *agentFlags) run(c *cobra.Command) error {
	if f.detach {
		return f.remove(c)
	}
	config, err := f.resolve()
	if err != nil {
		return err
	}
	logger, err := f.log.logger(c.ErrOrStderr())
	if err != nil {
		return err
	}
	if f.inCluster() {
		return f.runCluster(c, config, logger)
	}
	source, read, err := f.source.source(c.InOrStdin())
	if err != nil {
		return err
	}
	c.SilenceUsage = true
	result, err := manifest.Read(c.Context(), source, read)
	if err != nil {
		return err
	}
	filter := f.filter(&config)
	if f.dryRun {
		for _, p := range result.Problems {
			c.PrintErrln("warning: " + p.String())
		}
		selected := filter.apply(&result.Snapshot)
		return f.preview(c.OutOrStdout(), config, &selected, result.Policies)
	}
	f.logStart(c, logger)
	feed := newFeed(reading{source, read, filter}, result, logger)
	registry := ops.NewRegistry(ops.ReadBuild())
	if err := registry.Register(feed.errors); err != nil {
		return err
	}
	s := served{config: config, logger: logger, registry: registry, snapshots: feed.snapshots, policies: feed.policies}
	if feed.watches() {
		s.follow = []ops.Part{{Name: "manifests", Run: feed.run}}
	}
	return f.serve(c.Context(), s)
}

func (*agentFlags) logStart(c *cobra.Command, logger *slog.Logger) {
	logger.Info("starting", "version", ops.ReadBuild().Version, slog.Group("config", settings(c.Flags())...))
}

// served is what an agent serves, wherever that comes from.
type served struct {
	config    agent.Config
	logger    *slog.Logger
	registry  *prometheus.Registry
	snapshots *latest.Value[topology.Snapshot]
	policies  *latest.Value[*policy.Set] // nil: none
	follow    []ops.Part                 // what keeps snapshots new
}

// serve constructs the agent and what shows it, and runs them.
func (f *agentFlags) serve(ctx context.Context, s served) error {
	node, err := agent.New(s.config, s.snapshots, agent.Deps{
		Logger: s.logger, Registerer: s.registry, Policies: s.policies,
	})
	if err != nil {
		return err
	}
	var parts []ops.Part
	if f.admin != "" {
		admin, err := ops.ListenAdmin(ctx, f.admin, ops.AdminOptions{
			Gatherer: s.registry,
			Ready:    []ops.Check{{Name: "agent", Probe: node.Serving}},
			Live:     []ops.Check{{Name: "pools", Probe: node.Alive}},
			Pprof:    f.profiling,
			Pages:    node.Pages(),
			Logger:   s.logger,
		})
		if err != nil {
			return err
		}
		s.logger.Info("admin pages", "address", "http://"+admin.Addr().String())
		parts = append(parts, ops.Part{Name: "admin", Run: admin.Run})
	}
	parts = append(parts, s.follow...)
	return ops.Run(ctx, append(parts, ops.Part{Name: "agent", Run: node.Run})...)
}

// resolve checks the flags and makes the agent's config of them.
func (f *agentFlags) resolve() (agent.Config, error) {
	config := f.config
	config.Zone, config.Hints = topology.Zone(f.zone), agent.HintSource(f.hints)
	config.Mode = topology.Mode(f.source.defaultMode)
	if err := f.scope(&config); err != nil {
		return config, err
	}
	if config.Retry.Attempts == 0 {
		return config, errors.New("--retry-attempts=0: want 1 to 8, 1 for no retries")
	}
	zeroIsNone(&config)
	for _, text := range f.mappings {
		m, err := agent.ParseMapping(text)
		if err != nil {
			return config, err
		}
		config.Map = append(config.Map, m)
	}
	for _, text := range f.filters {
		filter, err := netip.ParsePrefix(text)
		if err != nil {
			return config, fmt.Errorf("--trusted-filter=%s: want a network, as in 10.0.0.0/8", text)
		}
		config.TrustedFilters = append(config.TrustedFilters, filter)
	}
	var err error
	if config.Retry.On, err = l7.ParseRetryOn(f.retryOn); err != nil {
		return config, err
	}
	switch f.output {
	case "table", "json", "yaml":
	default:
		return config, fmt.Errorf("--output=%s: want table, json or yaml", f.output)
	}
	if config.Node == "" {
		return config, fmt.Errorf("no node: name it with --node or in $NODE_NAME")
	}
	return config, config.Validate()
}

// Values of --nodes and --serve.
const (
	nodesOwn       = "own"
	nodesAll       = "all"
	servesLabelled = "labelled"
	servesAll      = "all"
)

// inCluster tells whether a cluster is followed and not manifests.
func (f *agentFlags) inCluster() bool { return len(f.source.files) == 0 }

// scope finds out which hints count, which nodes are needed for that and which services are served, where that depends
// on whether a cluster is followed.
func (f *agentFlags) scope(c *agent.Config) error {
	nodes, serves, hints := nodesAll, servesAll, agent.HintsFromPlan
	if f.inCluster() {
		hints, serves = agent.HintsNative, servesLabelled
	}
	c.Hints = cmp.Or(c.Hints, hints)
	if f.inCluster() && c.Hints == agent.HintsNative {
		nodes = nodesOwn
	}
	f.nodes, f.serves = cmp.Or(f.nodes, nodes), cmp.Or(f.serves, serves)
	switch {
	case f.nodes != nodesOwn && f.nodes != nodesAll:
		return fmt.Errorf("--nodes=%s: want own or all", f.nodes)
	case f.serves != servesLabelled && f.serves != servesAll:
		return fmt.Errorf("--serve=%s: want labelled or all", f.serves)
	case f.nodes == nodesOwn && c.Hints != agent.HintsNative:
		return fmt.Errorf("--nodes=own: a plan is made of all nodes; want --nodes=all, or --hints=native")
	case f.nodes == nodesOwn && !f.inCluster():
		return fmt.Errorf("--nodes=own: manifests are read whole; want --nodes=all, or a cluster instead of -f")
	}
	c.OneNode = f.nodes == nodesOwn
	c.Partial = f.serves != servesAll
	return f.scopePods()
}

// zeroIsNone gives a 0 the meaning that it has in a flag, none. In a config it asks for the default, which a flag has
// already where it was not typed.
func zeroIsNone(c *agent.Config) {
	for _, n := range []*int{&c.Limits.Connections, &c.Limits.Pending, &c.Limits.Head, &c.Retry.MinPerSecond} {
		if *n == 0 {
			*n = -1
		}
	}
	t := &c.Timeouts
	for _, d := range []*time.Duration{&t.Connect, &t.Head, &t.Response, &t.Request, &t.Idle} {
		if *d == 0 {
			*d = -1
		}
	}
	if c.Retry.BudgetRatio == 0 {
		c.Retry.BudgetRatio = -1
	}
	if c.Drain == 0 {
		c.Drain = 1 // ns: over before anything can be waited for
	}
}

func join[T ~string](names []T) string {
	texts := make([]string, 0, len(names))
	for _, n := range names {
		texts = append(texts, string(n))
	}
	return strings.Join(texts, ", ")
}
