// Package agent is the data plane of one node: snapshots of the cluster in, listeners that answer for services out.
//
// It plans each snapshot, has package route compile it into a table of what the clients on the node may use, and hands the
// table to its data plane, which makes the running pools and listeners equal to it. What cannot be had is reported as a
// problem with its reason, and the rest is served.
//
// It decides nothing itself: package plan makes plans, route tables, balance shares and ejections; pick selects endpoints, and
// l7 handles requests. Every goroutine that it starts has ended when Run returns.
package agent
