// Package clusters follows what other clusters serve: the ServiceImports of the Multi-Cluster Services API in this cluster, and
// the global Services of further clusters that Secrets name.
//
// It reads and never writes. A cluster whose API server is lost keeps its last state and is marked stale. What another cluster
// tells is bounded in size, in rate and in number, so that it can harm only the requests to its own endpoints; a kubeconfig that
// would run a program or read a file is refused.
package clusters
