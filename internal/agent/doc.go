// Package agent is the data plane of one node: snapshots of the cluster in, listeners that answer for services out.
//
// It turns each snapshot into a world, a plain value that says which service port listens where and which endpoints it
// may use, and then makes the running pools and listeners equal to that world. Whatever a snapshot asks for that
// cannot be had is reported as a problem with its reason, and the rest is served.
//
// It decides nothing itself: plans and choices are package plan's, overflow and picking package pick's, and requests
// are package l7's. It promises that every goroutine it starts has ended when Run returns.
package agent
