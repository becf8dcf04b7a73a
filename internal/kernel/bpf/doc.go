// Package bpf holds the programs of the kernel data plane and the maps through which an agent steers them.
//
// The programs hang on a cgroup. They place connections and UDP flows of its processes to known service ports on endpoints
// drawn from slots, give back the service's address where a socket asks for its peer, and count what becomes of connections.
// While the heartbeat is old they leave every socket alone.
//
// The package loads, attaches, pins and removes; it decides nothing. What the running kernel lacks is named in Kernel.Missing.
package bpf

//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -cc clang -target bpfel,bpfeb -type state -type vip -type table -type slots -type endpoint -cflags "-O2 -g -Wall -Werror -mcpu=v3 $BPF_INCLUDE" objects c/weir.c
