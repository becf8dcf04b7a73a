package plan

import "github.com/weir-lb/weir/internal/core/topology"

// stopOverStart keeps the KEP's proportion of its two limits, 20 % and 30 %, when a service names only the first.
const stopOverStart = defaultStop / defaultStart

// InputOf gathers what planning one service of a snapshot needs, the service's own wishes included. The survey is
// SurveyNodes(s.Nodes), made once for all services.
func InputOf(s *topology.Snapshot, survey Survey, svc *topology.Service, family topology.Family) Input {
	return Input{
		Service: svc,
		Family:  family,
		Survey:  survey,
		Costs:   s.Costs,
		Demand:  svc.Demand,
		Limits:  Limits{Start: svc.OverloadLimit, Stop: svc.OverloadLimit * stopOverStart},
	}
}
