package pick_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/core/hash"
	"github.com/weir-lb/weir/internal/core/pick"
)

// owner gives the endpoint that a request with the key is sent to, and lets it answer that way.
func owner(p *pick.Pool, now time.Duration, key uint64, how pick.Outcome) netip.AddrPort {
	ticket, _ := p.Pick(now, pick.Request{Key: key, HasKey: true})
	ticket.Answer(now, how)
	ticket.Close(now, how)
	return ticket.Addr()
}

// someKey is the hash of some text.
func someKey(i int) uint64 { return hash.XXH64(0, []byte{byte(i), byte(i >> 8), 'k'}) }

func TestEjectionMovesOnlyTheKeysOfWhoIsEjected(t *testing.T) {
	for _, a := range []pick.Algorithm{pick.RingHash, pick.Maglev} {
		t.Run(string(a), func(t *testing.T) {
			p := pick.NewPool(pick.Options{Zone: "zone-a", Config: pick.Config{Algorithm: a}})
			p.Update(0, home(10))
			const keys = 2000
			var before [keys]netip.AddrPort
			for i := range before {
				before[i] = owner(p, 0, someKey(i), pick.Success)
			}
			victim := before[0]
			now := millis(10)
			for range 50 { // failures in a row
				if owner(p, now, someKey(0), pick.Failure) != victim {
					break
				}
			}
			substitutes := make(map[netip.AddrPort]bool)
			for _, tick := range []bool{false, true} { // before and after the view is made anew
				if tick {
					now += millis(100)
					p.Tick(now)
				}
				for i, was := range before {
					switch is := owner(p, now, someKey(i), pick.Success); {
					case was != victim && is != was:
						t.Fatalf("key %d moved from %v to %v although its endpoint serves", i, was, is)
					case was == victim && is == victim:
						t.Fatalf("key %d still goes to the endpoint that sits out", i)
					case was == victim:
						substitutes[is] = true
					}
				}
			}
			if len(substitutes) < 5 {
				t.Errorf("its keys went to %d of 9 endpoints", len(substitutes))
			}
			for range 6000 { // its pause ends, one of its keys is the trial
				now += millis(100)
				p.Tick(now)
				owner(p, now, someKey(0), pick.Success)
			}
			for i, was := range before {
				if is := owner(p, now, someKey(i), pick.Success); is != was {
					t.Fatalf("key %d did not come back to %v but is at %v", i, was, is)
				}
			}
		})
	}
}

func TestAnEndpointThatComesBackUnderItsHashKeyHasItsKeys(t *testing.T) {
	for _, a := range []pick.Algorithm{pick.RingHash, pick.Maglev} {
		t.Run(string(a), func(t *testing.T) {
			p := pick.NewPool(pick.Options{Config: pick.Config{Algorithm: a}})
			list := home(4)
			for i := range list {
				list[i].HashKey = string(rune('a' + i))
			}
			p.Update(0, list)
			before := make(map[int]netip.AddrPort)
			for i := range 500 {
				before[i] = owner(p, 0, someKey(i), pick.Success)
			}
			old, again := list[1].Addr, netip.MustParseAddrPort("10.9.9.9:80")
			list[1].Addr = again // a pod that was started again
			p.Update(0, list)
			for i, was := range before {
				want := was
				if was == old {
					want = again
				}
				if got := owner(p, 0, someKey(i), pick.Success); got != want {
					t.Fatalf("key %d came from %v to %v, want %v", i, was, got, want)
				}
			}

			// The same when others stand where it stood.
			list = append(list[1:], list[0])
			p.Update(0, list)
			for i, was := range before {
				if got := owner(p, 0, someKey(i), pick.Success); got != was && (was != old || got != again) {
					t.Fatalf("in another order key %d came from %v to %v", i, was, got)
				}
			}
		})
	}
}
