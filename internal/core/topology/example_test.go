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
