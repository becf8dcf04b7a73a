package main

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// reach tells why the API server cannot be reached; nil if it answers anything. What follows a cluster tries again without
// end and keeps the cause to its log, which is no help to a command that reads the cluster once.
func reach(ctx context.Context, config *rest.Config) error {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client of the API server %s: %w", config.Host, err)
	}
	err = client.RESTClient().Get().AbsPath("/version").Do(ctx).Error()
	if _, answered := errors.AsType[*apierrors.StatusError](err); err == nil || answered {
		return nil
	}
	if ctx.Err() != nil {
		return unread(ctx, config)
	}
	return fmt.Errorf("reach the API server %s: %w", config.Host, err)
}

// unread tells that a cluster was not read before ctx, which allows previewPatience, was done.
func unread(ctx context.Context, config *rest.Config) error {
	if err := ctx.Err(); !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("interrupted before the API server %s told of the cluster: %w", config.Host, err)
	}
	return fmt.Errorf("the API server %s did not tell of the cluster's services, endpoints and nodes within %v", config.Host, previewPatience)
}
