package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/weir-lb/weir/internal/agent"
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/clusters"
	kubefeed "github.com/weir-lb/weir/internal/kube/feed"
	"github.com/weir-lb/weir/internal/kube/policyset"
	"github.com/weir-lb/weir/internal/latest"
	"github.com/weir-lb/weir/internal/ops"
)

// previewPatience is how long --dry-run waits for a cluster's objects: a person sits before it.
const previewPatience = 30 * time.Second

// following is a cluster that is followed.
type following struct {
	config   *rest.Config
	cache    cache.Cache
	feed     *kubefeed.Feed
	policies *policyset.Follower // nil: they are not followed
	clusters *clusters.Follower
}

// runCluster serves the services of a cluster until the command's context ends.
func (f *agentFlags) runCluster(c *cobra.Command, config agent.Config, logger *slog.Logger) error {
	registry := ops.NewRegistry(ops.ReadBuild())
	cluster, err := f.follow(&config, logger, registry)
	if err != nil {
		return err
	}
	c.SilenceUsage = true
	logClients(logger)
	if f.dryRun {
		ctx, cancel := context.WithTimeout(c.Context(), previewPatience)
		defer cancel()
		if err := reach(ctx, cluster.config); err != nil {
			return err
		}
		s, set, err := cluster.first(ctx)
		if err != nil {
			return err
		}
		selected := f.filter(&config).apply(&s.Snapshot)
		return f.previewCluster(c, config, &selected, set)
	}
	f.logStart(c, logger)
	logger.Info("following the cluster", "server", cluster.config.Host, "hints", config.Hints, "nodes", f.nodes, "pods", f.pods, "policies", f.policies, "serve", f.serves)
	parts := []ops.Part{
		{Name: "watch", Run: cluster.cache.Start},
		{Name: "feed", Run: cluster.feed.Run},
		{Name: "clusters", Run: cluster.clusters.Run},
		{Name: "serve", Run: func(ctx context.Context) error {
			return f.serveCluster(ctx, cluster, served{config: config, logger: logger, registry: registry})
		}},
	}
	if cluster.policies != nil {
		parts = append(parts, ops.Part{Name: "policies", Run: cluster.policies.Run})
	}
	return ops.Run(c.Context(), parts...)
}

// follow makes what follows the cluster of the flags. It starts nothing.
func (f *agentFlags) follow(serve *agent.Config, logger *slog.Logger, registry prometheus.Registerer) (*following, error) {
	config, err := f.cluster.config()
	if err != nil {
		return nil, err
	}
	read, err := f.source.options()
	if err != nil {
		return nil, err
	}
	o := kubefeed.Options{Convert: read.Convert, Costs: read.Costs, Logger: logger, Registerer: registry, Clusters: true}
	if serve.OneNode {
		o.Node = serve.Node
	}
	c, err := kubefeed.NewCache(config, o)
	if err != nil {
		return nil, fmt.Errorf("watch the cluster at %s: %w", config.Host, err)
	}
	feed, err := kubefeed.New(c, o)
	if err != nil {
		return nil, err
	}
	follower, err := f.followPolicies(config, logger)
	if err != nil {
		return nil, err
	}
	others, err := clusters.New(config, feed, clusters.Options{Secrets: f.clusterSecrets, Logger: logger, Registerer: registry})
	if err != nil {
		return nil, err
	}
	return &following{config: config, cache: c, feed: feed, policies: follower, clusters: others}, nil
}

// logClients gives the logs of the Kubernetes libraries, which know one logger for the whole process, to logger.
func logClients(logger *slog.Logger) {
	klog.SetSlogLogger(logger)
	ctrllog.SetLogger(logr.FromSlogHandler(logger.Handler()))
}

// serveCluster waits for the cluster's first state, then serves the selected services of it and of those after it.
func (f *agentFlags) serveCluster(ctx context.Context, cluster *following, s served) error {
	feed := cluster.feed
	select {
	case <-feed.Synced():
	case <-ctx.Done():
		return nil
	}
	s.policies = awaitPolicies(ctx, cluster.policies)
	filter := f.filter(&s.config)
	state, changed := feed.States().Load()
	s.logger.Info("cluster read", "nodes", len(state.Snapshot.Nodes), "services", len(state.Snapshot.Services))
	s.snapshots = latest.New(filter.apply(&state.Snapshot))
	s.follow = []ops.Part{{Name: "states", Run: func(ctx context.Context) error {
		passOn(ctx, feed.States(), changed, func(state *kubefeed.State) { storeIfChanged(s.snapshots, filter.apply(&state.Snapshot)) })
		return nil
	}}}
	err := f.serve(ctx, s)
	if _, ok := errors.AsType[*agent.UnknownNodeError](err); ok && s.config.OneNode {
		return fmt.Errorf("the cluster has no node %q: --nodes=all names those nearby, --zone serves without a node", s.config.Node)
	}
	return err
}

// passOn calls do with each newest state after changed closed, until ctx is done.
func passOn(
	ctx context.Context, states *latest.Value[*kubefeed.State], changed <-chan struct{}, do func(*kubefeed.State),
) {
	for {
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
		var state *kubefeed.State
		state, changed = states.Load()
		do(state)
	}
}

// storeIfChanged stores a snapshot unless it is the one before: most changes of a cluster are of services that are not served.
// What a feed did not make anew is the same pointer.
func storeIfChanged(snapshots *latest.Value[topology.Snapshot], now topology.Snapshot) {
	before, _ := snapshots.Load()
	if slices.Equal(before.Nodes, now.Nodes) && slices.Equal(before.Clusters, now.Clusters) && slices.Equal(before.Services, now.Services) {
		return
	}
	snapshots.Store(now)
}

// first gives the cluster's first state and policies, and follows them no longer. ctx allows previewPatience.
func (w *following) first(ctx context.Context) (*kubefeed.State, *policy.Set, error) {
	limit := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return w.cache.Start(ctx) })
	group.Go(func() error { return w.feed.Run(ctx) })
	if w.policies != nil {
		group.Go(func() error { return w.policies.Run(ctx) })
	}
	group.Go(func() error {
		defer cancel()
		awaitPolicies(ctx, w.policies)
		select {
		case <-w.feed.Synced():
			return nil
		case <-ctx.Done():
			return unread(limit, w.config)
		}
	})
	if err := group.Wait(); err != nil {
		return nil, nil, err
	}
	s, _ := w.feed.States().Load()
	var set *policy.Set
	if w.policies != nil {
		set, _ = w.policies.Sets().Load()
	}
	return s, set, nil
}

// previewCluster prints what would be served, with a word on why it may be less than expected.
func (f *agentFlags) previewCluster(
	c *cobra.Command, config agent.Config, s *topology.Snapshot, set *policy.Set,
) error {
	if len(s.Services) == 0 && f.serves == servesLabelled {
		c.PrintErrln("warning: no service is labelled service.kubernetes.io/service-proxy-name=weir or weir.dev/data-plane=kernel: " +
			"--serve=all serves all, --map some")
	}
	return f.preview(c.OutOrStdout(), config, s, set)
}
