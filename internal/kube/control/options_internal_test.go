package control

import (
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/kube/webhook"
)

func TestOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	for name, o := range map[string]Options{
		"workers":     {Workers: -1},
		"retry":       {LeaderElection: LeaderElection{On: true, RetryPeriod: -time.Second}},
		"one try":     {LeaderElection: LeaderElection{On: true, RetryPeriod: 10 * time.Second}},
		"jitter":      {LeaderElection: LeaderElection{On: true, RetryPeriod: 9 * time.Second}},
		"two leaders": {LeaderElection: LeaderElection{On: true, LeaseDuration: 10 * time.Second}},
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

func TestAKilledLeaderIsFollowedWithinTheLeaseAndTwoSeconds(t *testing.T) {
	looks := 1 + jitterFactor // how many retry periods are between two looks at the lease, at most
	late := time.Duration(2 * looks * float64(DefaultRetryPeriod))
	if late > 1800*time.Millisecond { // the rest is for writing
		t.Errorf("the next leader may begin %v after the lease", late)
	}
}
