// Package demo plays scenarios on real sockets of one machine: HTTP servers with limited capacity that can be overloaded,
// slowed down, broken and taken away, a real node agent for each client, and clients that keep their rate whatever happens.
// Its own scenario, the script, is what weir demo plays when it is given none.
//
// It promises that what it reports was measured at the clients, from the moment at which a request was due, by the
// simulator's definitions. It refuses to help: agents are told of a fault when the scenario's API would tell them, and a
// request that could not even be sent counts as an error.
package demo
