package sim

import "github.com/weir-lb/weir/internal/core/pick"

// UnderWay gives the number of requests that are not over.
func (s *Simulation) UnderWay() int { return s.underWay }

// Exchanges gives the number of attempts that somebody still holds: a client, the network or an endpoint.
func (s *Simulation) Exchanges() int { return len(s.exchanges.all) - len(s.exchanges.free) }

// Clients gives the number of clients.
func (s *Simulation) Clients() int { return len(s.clients) }

// Pool gives a client's pool.
func (s *Simulation) Pool(client int) *pick.Pool { return s.clients[client].pool }
