package latest_test

import (
	"sync"
	"testing"

	"github.com/weir-lb/weir/internal/latest"
)

func TestLoadGivesTheNewestValue(t *testing.T) {
	v := latest.New("first")
	if got, _ := v.Load(); got != "first" {
		t.Errorf("want first, got %q", got)
	}
	v.Store("second")
	v.Store("third")
	if got, _ := v.Load(); got != "third" {
		t.Errorf("want third, got %q", got)
	}
}

func TestStoreClosesTheChannelOfEarlierLoadsOnly(t *testing.T) {
	v := latest.New(0)
	_, before := v.Load()
	v.Store(1)
	_, after := v.Load()
	select {
	case <-before:
	default:
		t.Error("want the earlier channel closed")
	}
	select {
	case <-after:
		t.Error("want the newest channel open")
	default:
	}
}

func TestAReaderThatFollowsTheChannelSeesTheLastOfManyStores(_ *testing.T) {
	const (
		last        = 1000
		readerCount = 4
	)
	v := latest.New(0)
	var readers sync.WaitGroup
	for range readerCount {
		readers.Go(func() {
			for {
				value, changed := v.Load()
				if value == last {
					return
				}
				<-changed
			}
		})
	}
	for i := 1; i <= last; i++ {
		v.Store(i)
	}
	readers.Wait()
}
