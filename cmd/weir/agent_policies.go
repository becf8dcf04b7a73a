package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"

	"k8s.io/client-go/rest"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/kube/policyset"
	"github.com/weir-lb/weir/internal/latest"
)

// scopePods finds out which pods are needed.
func (f *agentFlags) scopePods() error {
	if !f.inCluster() {
		if f.pods != "" && f.pods != string(policyset.All) {
			return fmt.Errorf("--pods=%s: manifests are read whole; want a cluster instead of -f", f.pods)
		}
		return nil
	}
	f.pods = cmp.Or(f.pods, string(policyset.Own))
	switch policyset.Reach(f.pods) {
	case policyset.None, policyset.Own, policyset.All:
		return nil
	default:
		return fmt.Errorf("--pods=%s: want none, own or all", f.pods)
	}
}

// followPolicies makes what follows the policies of a cluster; nil where that is not asked for. It starts nothing.
func (f *agentFlags) followPolicies(config *rest.Config, logger *slog.Logger) (*policyset.Follower, error) {
	if !f.policies {
		return nil, nil //nolint:nilnil // no policies are no error.
	}
	return policyset.NewFollower(config, policyset.Options{
		Node: f.config.Node, Pods: policyset.Reach(f.pods), Nodes: policyset.Reach(f.nodes), Logger: logger,
	})
}

// awaitPolicies gives the policies of a cluster once they were told, or have been waited for long enough; nil for none, and
// when ctx is done.
func awaitPolicies(ctx context.Context, f *policyset.Follower) *latest.Value[*policy.Set] {
	if f == nil {
		return nil
	}
	select {
	case <-f.Ready():
		return f.Sets()
	case <-ctx.Done():
		return nil
	}
}
