// Package route decides what a client may use: for each service port the endpoints that its requests may reach, in groups
// that are used in order, the settings that hold for them, and why.
//
// Compile turns a snapshot, its plans or the hints that it carries, and policies into a Table for one client: a node with
// all that runs on it, a pod, or whatever is in a zone. A Compiler does the same again and again and keeps what did not
// change. The package answers with values and depends on nothing that changes while they are in use: loads, failures and
// shares belong to the packages that consume them.
package route
