// Package kernel places connections and UDP flows of a node's processes on endpoints at connect time, without a proxy.
//
// A Plane keeps service ports in the maps of package bpf: which address leads to which endpoints, and in which shares, which
// are those of a balance.Decision. It gives back what the programs counted as balance.Counters. It decides nothing.
//
// What it does not serve, and everything while its owner does not call Beat, kube-proxy serves.
package kernel
