package control

import (
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/kube/webhook"
)

func TestOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	for name, o := range map[string]Options{
		"workers":     {Workers: -1},
		"retry":       {LeaderElection: LeaderElection{RetryPeriod: -time.Second}},
		"one try":     {LeaderElection: LeaderElection{RetryPeriod: 10 * time.Second}},
		"two leaders": {LeaderElection: LeaderElection{LeaseDuration: 10 * time.Second}},
	} {
		if _, err := o.complete(); err == nil {
			t.Errorf("%s: %+v is taken", name, o)
		}
	}
}

func TestTheZeroOptionsWork(t *testing.T) {
	given := &webhook.Options{}
	o, err := Options{Webhook: given}.complete()
	if err != nil {
		t.Fatal(err)
	}
	if o.Workers != DefaultWorkers || o.LeaderElection.Name != DefaultLease || o.Feed.Logger == nil || o.Webhook.Logger == nil {
		t.Errorf("%+v", o)
	}
	if given.Logger != nil {
		t.Error("the caller's options were changed")
	}
}
