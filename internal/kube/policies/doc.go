// Package policies reads load-balancing policies, and what they refer to, from Kubernetes objects.
//
// Its conversions are total: any object gives a value, and what is wrong with it is a Problem with the field's path. A
// Follower keeps the newest policy.Set of a cluster. The package decides nothing and writes nothing.
package policies
