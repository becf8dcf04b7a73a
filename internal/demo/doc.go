// Package demo runs weir's main job on one machine: three zones on loopback, real HTTP endpoints that can be overloaded,
// slowed down, broken and taken away, a real node agent in each zone, and clients that keep their rate whatever happens.
//
// It promises that what it prints was measured at the clients: which zone answered, how well, and how long after the
// request was due. It refuses to help: endpoints stay in the manifests while they are gone, nobody tells the agents of a
// fault, and a request that could not even be sent counts as an error.
package demo
