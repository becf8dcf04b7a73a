package plan

import (
	"slices"

	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// Client is where requests start.
type Client struct {
	Node string
	Zone topology.Zone // empty: not known
}

// Choice lists what a client may use, as ascending indexes into the endpoints that were given. Nil: none, or not used.
type Choice struct {
	Cluster []int // for traffic under policy Cluster; hints decide
	Local   []int // for traffic under policy Local: on the client's node; hints never apply
	All     []int // what either policy can reach
	// HasAny tells whether the service has anything usable anywhere. When it has and the list that applies is empty,
	// traffic is dropped rather than rejected.
	HasAny bool

	Reason      reason.Reason // of Cluster
	LocalReason reason.Reason // of Local; zero when no policy asks for it
}

// Inside gives the list for traffic to the cluster IP, which the internal policy rules, and why it is so.
func (c *Choice) Inside(svc *topology.Service) ([]int, reason.Reason) {
	if svc.InternalPolicy == topology.PolicyLocal {
		return c.Local, c.LocalReason
	}
	return c.Cluster, c.Reason
}

// Choose tells which of the endpoints, all of one family, a client may use for one port of the service.
//
// Shape: endpoints that do not answer the port are not considered, so neither do their hints count.
// Source: kube-proxy 1.36 (CategorizeEndpoints), row by row. Two departures: an endpoint in another cluster is never
// local, whatever the name of its node; and where endpoints of this cluster carry hints, those of other clusters that carry
// none are not considered, so that they do not annul the hints.
func Choose(svc *topology.Service, endpoints []topology.Endpoint, port topology.Port, c Client) Choice {
	considered := make([]int, 0, len(endpoints))
	for i := range endpoints {
		if _, ok := endpoints[i].Port(port); ok {
			considered = append(considered, i)
		}
	}
	considered = withoutUnhinted(endpoints, considered)
	t := tabulate(hintedEndpoints{endpoints: endpoints}, considered)
	choice := Choice{HasAny: len(t.ready)+len(t.leaving) > 0}
	if usesCluster(svc) {
		var row reason.Code
		choice.Cluster, row = t.cluster(c)
		choice.Reason = t.explain(row, c)
	} else {
		choice.Reason = reason.New(reason.LocalTrafficOnly)
	}
	if !usesLocal(svc) {
		choice.All = choice.Cluster
		return choice
	}
	var row reason.Code
	choice.Local, row = t.local(c)
	choice.LocalReason = reason.New(row, c.Node)
	choice.All = union(choice.Cluster, choice.Local)
	return choice
}

// withoutUnhinted leaves out the endpoints of other clusters that carry no hints, where a ready one of this cluster does. Nothing
// writes hints for the endpoints that other clusters add to a service.
func withoutUnhinted(endpoints []topology.Endpoint, considered []int) []int {
	isHinted := func(i int) bool {
		e := &endpoints[i]
		return e.Cluster == "" && e.IsReady() && !e.Hints.IsZero()
	}
	if !slices.ContainsFunc(considered, isHinted) {
		return considered
	}
	return slices.DeleteFunc(considered, func(i int) bool { return endpoints[i].Cluster != "" && endpoints[i].Hints.IsZero() })
}

// usesCluster tells whether any traffic may go to other nodes. A service that both policies restrict still does when it
// is reachable from outside: clients inside the cluster that use its outside address are not restricted.
func usesCluster(svc *topology.Service) bool {
	return svc.InternalPolicy != topology.PolicyLocal || svc.ExternallyAccessible
}

func usesLocal(svc *topology.Service) bool {
	return svc.InternalPolicy == topology.PolicyLocal ||
		svc.ExternalPolicy == topology.PolicyLocal && svc.ExternallyAccessible
}

// hintedEndpoints are endpoints with the hints they carry, or with others that are considered for them.
type hintedEndpoints struct {
	endpoints []topology.Endpoint
	instead   []topology.Hints // nil: the endpoints' own
}

func (h *hintedEndpoints) hints(i int) *topology.Hints {
	if h.instead != nil {
		return &h.instead[i]
	}
	return &h.endpoints[i].Hints
}

// table is what kube-proxy looks up once for a service port before it asks for a client.
type table struct {
	hintedEndpoints
	ready   []int // R of the decision table
	leaving []int // serving although terminating
	zoned   bool  // every ready endpoint names a zone
	noded   bool  // every ready endpoint names a node
	bare    bool  // no ready endpoint names anything

	// What a scan finds for one client, an index finds in one step for many. Nil: scan.
	byZone map[topology.Zone][]int // ready endpoints by the zones they name
	byNode map[string][]int        // ready endpoints by the nodes they name
}

func tabulate(h hintedEndpoints, considered []int) *table {
	t := &table{hintedEndpoints: h, zoned: true, noded: true, bare: true}
	t.ready = make([]int, 0, len(considered))
	for _, i := range considered {
		e := &h.endpoints[i]
		switch {
		case e.IsReady():
			t.ready = append(t.ready, i)
			hints := t.hints(i)
			t.zoned = t.zoned && len(hints.Zones) > 0
			t.noded = t.noded && len(hints.Nodes) > 0
			t.bare = t.bare && hints.IsZero()
		case e.IsServing() && e.IsTerminating():
			t.leaving = append(t.leaving, i)
		}
	}
	return t
}

// cluster walks the decision table for the list of policy Cluster; the first row that holds decides.
func (t *table) cluster(c Client) ([]int, reason.Code) {
	if len(t.ready) == 0 {
		if len(t.leaving) == 0 {
			return nil, reason.NoEndpoints
		}
		return t.leaving, reason.OnlyTerminating
	}
	if t.noded && c.Node != "" {
		if named := t.forNode(c.Node); len(named) > 0 {
			return named, reason.HintedToNode
		}
	}
	if t.zoned && c.Zone != "" {
		if named := t.forZone(c.Zone); len(named) > 0 {
			return named, reason.HintedToZone
		}
	}
	return t.ready, t.whyAll(c)
}

// whyAll says which part of the last row applies.
func (t *table) whyAll(c Client) reason.Code {
	switch {
	case t.bare:
		return reason.NoHints
	case !t.zoned:
		return reason.HintMissing
	case c.Zone == "":
		return reason.ClientWithoutZone
	default:
		return reason.ZoneNotHinted
	}
}

// explain names what the row's text speaks of.
func (t *table) explain(row reason.Code, c Client) reason.Reason {
	switch row {
	case reason.HintedToNode, reason.ClientWithoutZone:
		return reason.New(row, c.Node)
	case reason.HintedToZone, reason.ZoneNotHinted:
		return reason.New(row, string(c.Zone))
	case reason.HintMissing:
		var missing []string
		for _, i := range t.ready {
			if len(t.hints(i).Zones) == 0 {
				missing = append(missing, nameOf(&t.endpoints[i]))
			}
		}
		return reason.New(row, missing...)
	default:
		return reason.New(row)
	}
}

// local gives the list of policy Local: hints never apply.
func (t *table) local(c Client) ([]int, reason.Code) {
	if c.Node == "" {
		return nil, reason.NoneOnNode
	}
	if local := t.onNode(c.Node, t.ready); len(local) > 0 {
		return local, reason.OnNode
	}
	if local := t.onNode(c.Node, t.leaving); len(local) > 0 {
		return local, reason.OnlyTerminatingOnNode
	}
	return nil, reason.NoneOnNode
}

// indexHints lets forZone and forNode answer in one step.
func (t *table) indexHints() {
	t.byZone = make(map[topology.Zone][]int)
	t.byNode = make(map[string][]int)
	for _, i := range t.ready {
		hints := t.hints(i)
		for _, z := range hints.Zones {
			t.byZone[z] = append(t.byZone[z], i)
		}
		for _, n := range hints.Nodes {
			t.byNode[n] = append(t.byNode[n], i)
		}
	}
}

func (t *table) forZone(z topology.Zone) []int {
	if t.byZone != nil {
		return t.byZone[z]
	}
	return filter(t.ready, func(i int) bool { return slices.Contains(t.hints(i).Zones, z) })
}

func (t *table) forNode(node string) []int {
	if t.byNode != nil {
		return t.byNode[node]
	}
	return filter(t.ready, func(i int) bool { return slices.Contains(t.hints(i).Nodes, node) })
}

// onNode gives those that live on a node of this cluster.
func (t *table) onNode(node string, from []int) []int {
	return filter(from, func(i int) bool { return t.endpoints[i].Node == node && t.endpoints[i].Cluster == "" })
}

func filter(from []int, keep func(int) bool) []int {
	var kept []int
	for _, i := range from {
		if keep(i) {
			kept = append(kept, i)
		}
	}
	return kept
}

// nameOf is how a person knows an endpoint: by its pod, else by its address.
func nameOf(e *topology.Endpoint) string {
	if e.Pod != "" {
		return e.Pod
	}
	return e.Addr.String()
}

// union merges two ascending lists.
func union(a, b []int) []int {
	if len(b) == 0 {
		return a
	}
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}
