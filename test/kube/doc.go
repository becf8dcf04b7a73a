// Package kube runs a real Kubernetes control plane for tests: etcd, kube-apiserver and kube-controller-manager as processes
// on loopback, kube-proxy in network namespaces, and weir beside them under the roles that it is deployed with. Nodes and
// pods are objects whose status the test writes; nothing runs in them.
//
// It promises that a cluster is empty and ready when Start returns, that everything ends with the test, also when the test
// panics or is killed, and that the root network namespace is left as it was. It refuses to skip: what is missing on the
// machine fails the test with the command that installs it.
package kube
