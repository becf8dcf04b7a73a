package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"

	"k8s.io/client-go/rest"

	"github.com/weir-lb/weir/internal/core/policy"
	kubepolicies "github.com/weir-lb/weir/internal/kube/policies"
	"github.com/weir-lb/weir/internal/latest"
)

// scopePods finds out which pods are needed.
func (f *agentFlags) scopePods() error {
	if !f.inCluster() {
		if f.pods != "" && f.pods != string(kubepolicies.All) {
			return fmt.Errorf("--pods=%s: manifests are read whole; want a cluster instead of -f", f.pods)
		}
		return nil
	}
	f.pods = cmp.Or(f.pods, string(kubepolicies.Own))
	switch kubepolicies.Reach(f.pods) {
	case kubepolicies.None, kubepolicies.Own, kubepolicies.All:
		return nil
	default:
		return fmt.Errorf("--pods=%s: want none, own or all", f.pods)
	}
}

// followPolicies makes what follows the policies of a cluster; nil where nobody asked for that. It starts nothing.
func (f *agentFlags) followPolicies(config *rest.Config, logger *slog.Logger) (*kubepolicies.Follower, error) {
	if !f.policies {
		return nil, nil //nolint:nilnil // no policies are no error.
	}
	return kubepolicies.NewFollower(config, kubepolicies.Options{
		Node: f.config.Node, Pods: kubepolicies.Reach(f.pods), Nodes: kubepolicies.Reach(f.nodes), Logger: logger,
	})
}

// awaitPolicies gives the policies of a cluster once they were told, or have been waited for long enough; nil for none, and
// when ctx is done.
func awaitPolicies(ctx context.Context, f *kubepolicies.Follower) *latest.Value[*policy.Set] {
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
