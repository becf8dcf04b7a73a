package kube

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Churn replaces pods of the app, at random, perSecond of them, until stop is called, which tells how many were replaced.
// Each keeps its zone, so that the counts by zone stay as they are but for moments. Stop before scaling the app.
func (a *App) Churn(perSecond float64, random *rand.Rand) (stop func() int) {
	tb := a.Cluster.tb
	tb.Helper()
	ctx, cancel := context.WithCancel(tb.Context())
	zones := a.zones()
	replaced := 0
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(time.Duration(float64(time.Second) / perSecond))
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			// A replacement that has begun is finished: the cluster is left with all pods.
			if err := a.replace(context.WithoutCancel(ctx), zones[random.IntN(len(zones))]); err != nil {
				tb.Errorf("churn: %v", err)
				return
			}
			replaced++
		}
	})
	stop = sync.OnceValue(func() int {
		cancel()
		done.Wait()
		return replaced
	})
	tb.Cleanup(func() { stop() })
	return stop
}

// zones lists the zone of each pod, so that a random one of them stands for a random pod.
func (a *App) zones() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var zones []string
	for _, zone := range slices.Sorted(maps.Keys(a.pods)) {
		for range a.pods[zone] {
			zones = append(zones, zone)
		}
	}
	return zones
}

func (a *App) replace(ctx context.Context, zone string) error {
	if err := a.add(ctx, zone); err != nil {
		return err
	}
	return a.remove(ctx, zone)
}
