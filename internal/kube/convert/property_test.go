package convert_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/convert"
)

// randomSlices makes slices over few addresses, so that many occur in several of them.
func randomSlices(random *rand.Rand) []*discoveryv1.EndpointSlice {
	condition := func() *bool {
		return []*bool{nil, new(true), new(false)}[random.IntN(3)]
	}
	var list []*discoveryv1.EndpointSlice
	for i := range 1 + random.IntN(4) {
		s := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}
		s.Name = fmt.Sprintf("s%d", i)
		for port := range random.IntN(3) {
			s.Ports = append(s.Ports, discoveryv1.EndpointPort{
				Name: new(fmt.Sprintf("p%d", port)), Port: new(int32(80 + random.IntN(2))),
			})
		}
		for range random.IntN(6) {
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
				Addresses:  []string{fmt.Sprintf("10.0.0.%d", 1+random.IntN(6))},
				Conditions: discoveryv1.EndpointConditions{Ready: condition(), Serving: condition(), Terminating: condition()},
			})
		}
		list = append(list, s)
	}
	return list
}

// readyPlaces gives address, port name and number of whatever is ready and stays.
func readyPlaces(list []*discoveryv1.EndpointSlice) map[string]bool {
	places := make(map[string]bool)
	for _, s := range list {
		for _, e := range s.Endpoints {
			isReady := e.Conditions.Ready == nil || *e.Conditions.Ready
			isTerminating := e.Conditions.Terminating != nil && *e.Conditions.Terminating
			for _, port := range s.Ports {
				if isReady && !isTerminating {
					places[fmt.Sprint(e.Addresses[0], *port.Name, *port.Port)] = true
				}
			}
		}
	}
	return places
}

func TestNoReadyEndpointIsLostAndNoneCountsTwice(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for range 2000 {
		list := randomSlices(random)
		endpoints, _ := convert.Slices(list, nil)
		count, ready := make(map[string]int), make(map[string]bool)
		for _, e := range endpoints {
			for _, port := range e.Ports {
				key := fmt.Sprint(e.Addr, port.Name, port.Port)
				count[key]++
				ready[key] = e.IsReady() && !e.IsTerminating()
			}
		}
		for key := range readyPlaces(list) {
			if !ready[key] {
				t.Fatalf("%s is ready in a slice, but not in %s", key, text(endpoints))
			}
		}
		for key, n := range count {
			if n > 1 {
				t.Fatalf("%s is there %d times in %s", key, n, text(endpoints))
			}
		}
	}
}

func TestOrderOfSlicesDoesNotMatter(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	for range 500 {
		list := randomSlices(random)
		want, _ := convert.Slices(list, nil)
		random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		got, _ := convert.Slices(list, nil)
		equal(t, "endpoints", text(want), text(got))
	}
}

func TestFoundEndpointsAreDistinctInTheTextForm(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 12))
	for range 500 {
		endpoints, _ := convert.Slices(randomSlices(random), nil)
		if _, err := topology.ParseSnapshot("service web; endpoints " + text(endpoints)); err != nil {
			t.Fatal(err)
		}
	}
}
