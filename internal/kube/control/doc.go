// Package control is the control plane at work: it follows a cluster, plans its services and makes their EndpointSlices
// say the plan.
//
// Every replica plans, so that the webhook of each has an answer; the leader alone writes. It writes hints, weir's mark
// on the slices that carry them, conditions on Services and events, and nothing else. It never overwrites what another
// writer wrote since it last read, and what the API server refuses leaves the last good hints.
package control
