package pick_test

import (
	"testing"

	"github.com/weir-lb/weir/internal/core/pick"
)

func TestEndpointsDoNotShareCacheLines(t *testing.T) {
	if pick.EndpointShared != pick.CacheLine {
		t.Errorf("what requests write of an endpoint takes %d B, want one cache line", pick.EndpointShared)
	}
	if pick.EndpointSize%pick.CacheLine != 0 || pick.ShardSize%pick.CacheLine != 0 {
		t.Errorf("an endpoint takes %d B, a shard %d B; want whole cache lines", pick.EndpointSize, pick.ShardSize)
	}
	p := pick.NewPool(pick.Options{})
	p.Update(0, targets(300))
	if n := p.Misaligned(); n != 0 {
		t.Errorf("%d of 300 endpoints straddle cache lines", n)
	}
}
