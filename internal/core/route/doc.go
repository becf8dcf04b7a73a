// Package route says what a client may use: for each service port the endpoints that its requests may reach, in groups
// that are used in order, and why.
//
// It answers with values and depends on nothing that changes while they are in use: loads, failures and shares belong to
// the packages that consume them.
package route
