// Package policyset makes a policy.Set of a cluster's objects: once, or for as long as they change.
//
// A Follower keeps the newest set, with all that its policies refer to. What objects mean is package policies' business. The
// package writes nothing.
package policyset
