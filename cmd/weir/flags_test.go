package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/weir-lb/weir/internal/l7"
)

func TestAZeroInAFlagMeansNoneAndNotTheDefault(t *testing.T) {
	var f agentFlags
	flags := pflag.NewFlagSet("agent", pflag.ContinueOnError)
	for _, g := range []flagGroup{f.source.group(), f.node(), f.balancing(), f.retries(), f.limits(), f.operation()} {
		flags.AddFlagSet(g.FlagSet)
	}
	if err := flags.Parse([]string{
		"--node=a", "--max-connections=0", "--max-pending=0", "--max-head-bytes=0", "--connect-timeout=0",
		"--head-timeout=0", "--response-timeout=0", "--idle-timeout=0", "--retry-budget=0", "--retry-min=0",
		"--drain-timeout=0",
	}); err != nil {
		t.Fatal(err)
	}
	config, err := f.resolve()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(l7.Limits{Connections: -1, Pending: -1, Head: -1}, config.Limits); diff != "" {
		t.Errorf("limits (-want +got)\n%s", diff)
	}
	none := l7.Timeouts{Connect: -1, Head: -1, Response: -1, Request: -1, Idle: -1}
	if diff := cmp.Diff(none, config.Timeouts); diff != "" {
		t.Errorf("timeouts (-want +got)\n%s", diff)
	}
	retry := l7.DefaultRetry()
	retry.BudgetRatio, retry.MinPerSecond = -1, -1
	if diff := cmp.Diff(retry, config.Retry); diff != "" {
		t.Errorf("retries (-want +got)\n%s", diff)
	}
	if config.Drain >= time.Millisecond {
		t.Errorf("requests in flight have %v, want none", config.Drain)
	}
}
