// Package attach tells people what became of their load-balancing policies: conditions on each policy for each of its
// targets, a condition on the Services that policies are attached to, and events.
//
// It says something when something changed. It decides nothing about requests: data planes read the same policies
// themselves, by the same rules. What others wrote in a policy's status stays as it is.
package attach
