package topology_test

import (
	"fmt"

	"github.com/weir-lb/weir/internal/core/topology"
)

func ExampleParseSnapshot() {
	s, err := topology.ParseSnapshot("nodes a:4x2 b:4; service shop/web mode=Auto; endpoints a:2>a a:1>b b:1!")
	if err != nil {
		fmt.Println(err)
		return
	}
	web := s.Service(topology.ServiceName{Namespace: "shop", Name: "web"})
	fmt.Println(len(s.Nodes), "nodes,", len(web.Endpoints), "endpoints, the first in zone", web.Endpoints[0].Zone)
	fmt.Println(s)
	// Output:
	// 3 nodes, 4 endpoints, the first in zone a
	// nodes a:4x2 b:4
	// service shop/web mode=Auto
	// endpoints a:2>a a:1>b b:1!
}

func ExampleParseSnapshot_error() {
	_, err := topology.ParseSnapshot("nodes a:4 b:4\nservice shop/web; endpoints a:three")
	fmt.Println(err)
	// Output: line 2, column 31: bad number of endpoints "": want a whole number from 1 to 10000
}

func ExampleParseEndpoints() {
	endpoints, err := topology.ParseEndpoints("a:2 b:1!@n7 v6=-:1")
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range endpoints {
		e := &endpoints[i]
		fmt.Printf("%s zone=%q node=%q ready=%t\n", e.Addr, e.Zone, e.Node, e.IsReady())
	}
	// Output:
	// 10.0.0.1 zone="a" node="" ready=true
	// 10.0.0.2 zone="a" node="" ready=true
	// 10.0.0.3 zone="b" node="n7" ready=false
	// fd00::4 zone="" node="" ready=true
}

func ExampleParseNodes() {
	nodes, err := topology.ParseNodes("eu/a:4x2 gone=b:2!")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, n := range nodes {
		fmt.Println(n)
	}
	// Output:
	// a-1=eu/a:4
	// a-2=eu/a:4
	// gone=b:2!
}
