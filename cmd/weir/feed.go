package main

import (
	"context"
	"log/slog"
	"reflect"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/latest"
	"github.com/weir-lb/weir/internal/manifest"
)

// feed keeps the newest snapshot and policies of manifests that are watched.
type feed struct {
	reading   reading
	logger    *slog.Logger
	snapshots *latest.Value[topology.Snapshot]
	policies  *latest.Value[*policy.Set]
	errors    prometheus.Counter
	problems  map[string]bool // that were logged and are still there
	broken    bool            // since the manifests were last read well
}

// reading says what is read, how, and what of it is served.
type reading struct {
	source  manifest.Source
	options manifest.Options
	filter  serviceFilter
}

// newFeed makes a feed that holds the first result.
func newFeed(r reading, first manifest.Result, logger *slog.Logger) *feed {
	f := &feed{
		reading: r, logger: logger, snapshots: latest.New(r.filter.apply(&first.Snapshot)),
		policies: latest.New(first.Policies.Keep(nil, first.Refused)),
		errors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "weir_manifest_errors_total",
			Help: "Failed reads of manifests; the last good state stays.",
		}),
	}
	f.log(&first)
	f.warn(&first)
	return f
}

// watches tells whether the source can change: standard input and pipes are read once.
func (f *feed) watches() bool { return f.reading.source.CanWatch() }

// run watches the manifests until ctx is done.
func (f *feed) run(ctx context.Context) error {
	return manifest.Watch(ctx, f.reading.source, f.reading.options, manifest.Events{
		Publish: func(r manifest.Result) {
			before, _ := f.snapshots.Load()
			now := f.reading.filter.apply(&r.Snapshot)
			rules, _ := f.policies.Load()
			kept := r.Policies.Keep(rules, r.Refused) // an invalid policy keeps its last valid form
			isSame := reflect.DeepEqual(before, now)  // as when watching begins, or a comment was written
			isSamePolicy := samePolicies(rules, kept)
			if f.broken || !isSame || !isSamePolicy {
				f.log(&r)
			}
			f.broken = false
			f.warn(&r)
			if !isSamePolicy {
				f.policies.Store(kept)
			}
			if !isSame {
				f.snapshots.Store(now)
			}
		},
		Report: func(err error) {
			f.broken = true
			f.errors.Inc()
			f.logger.Error("the manifests cannot be read, the last good state stays", "error", err)
		},
	})
}

// samePolicies tells whether two sets say the same; what a set looks up with does not count.
func samePolicies(a, b *policy.Set) bool {
	if a == nil || b == nil {
		return a == b
	}
	return reflect.DeepEqual(a.Rules, b.Rules) && reflect.DeepEqual(a.Refused, b.Refused) &&
		reflect.DeepEqual(a.Routes, b.Routes) && reflect.DeepEqual(a.Pods, b.Pods) &&
		reflect.DeepEqual(a.Namespaces, b.Namespaces) && reflect.DeepEqual(a.Nodes, b.Nodes)
}

// log tells what was read.
func (f *feed) log(r *manifest.Result) {
	f.logger.Info("manifests read", "nodes", len(r.Snapshot.Nodes), "services", len(r.Snapshot.Services),
		"policies", len(r.Policies.Rules), "refused_policies", len(r.Refused))
}

// warn tells each problem once for as long as it is there.
func (f *feed) warn(r *manifest.Result) {
	now := make(map[string]bool, len(r.Problems))
	for _, p := range r.Problems {
		text := p.String()
		now[text] = true
		if !f.problems[text] {
			f.logger.Warn("manifest problem", "problem", text)
		}
	}
	f.problems = now
}
