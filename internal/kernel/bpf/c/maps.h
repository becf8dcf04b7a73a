// The maps that programs and agent share. Fields that go over the network are in its byte order, all others in the machine's.
#pragma once

#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>

// State is written by the agent and read by every program before anything else.
struct state {
	__u64 heartbeat; // CLOCK_MONOTONIC in ns: when the agent was last seen
	__u64 cgroup;    // of the agent, whose own connections are left alone; 0: not known
};

// Vip identifies a service port. An IPv4 address is written as ::ffff:a.b.c.d, as IPv6 sockets name it.
struct vip {
	__u32 addr[4];
	__u16 port;
	__u8 protocol;
	__u8 unused;
};

// Table is a service port. The agent writes all but the counters, and never changes vip, mask and offset of a table that is
// in services: programs check vip, as an entry of services may be used again while they read it.
struct table {
	struct vip vip;
	__u32 mask;      // number of slots - 1; a power of two - 1
	__u32 offset[2]; // of two sets of slots, whole blocks; the one that is not active is rewritten
	__u32 active;    // 0 or 1
	__u64 placed;    // connections and flows, by programs
	__u64 unplaced;  // those for which no draw found an endpoint that is up, by programs
};

// Slots hold indexes of endpoints, each as often as its share says. They come in blocks, since an element of an array takes
// eight bytes at least.
#define SLOTS_IN_BLOCK 64

struct slots {
	__u32 of[SLOTS_IN_BLOCK];
};

// Endpoint flags.
#define ENDPOINT_UP 1

// Endpoint is an address of a table. The agent writes the first three lines of fields, programs the counters. What is open is
// established - closed; what waits for an answer is started less the four results of connecting.
struct endpoint {
	struct vip to;
	__u32 table;
	__u32 flags;
	__u32 unused;
	__u64 started;       // connections, or UDP flows
	__u64 established;   // or answered
	__u64 refused;
	__u64 timed_out;
	__u64 abandoned;     // by the client, before they were established
	__u64 reset;         // after they were established, by the endpoint or the network
	__u64 closed;        // after they were established
	__u64 connect_nanos; // sum over established
};

// Connection is kept beside a socket that a program has placed.
struct connection {
	struct vip vip; // that the client asked for
	__u32 endpoint;
	__u64 started; // CLOCK_MONOTONIC in ns
	__u32 phase;
	__u32 unused;
};

// Phases of a connection.
#define PHASE_PLACED 0
#define PHASE_CONNECTING 1
#define PHASE_ESTABLISHED 2
#define PHASE_CLOSED 3

// Flow identifies the datagrams that an unconnected UDP socket exchanges with a VIP (forward) or with an endpoint.
struct flow {
	__u64 socket; // cookie
	struct vip peer;
	__u32 forward;
};

struct flow_end {
	struct vip peer; // the endpoint of a forward flow; else the VIP
	__u32 endpoint;
};

// Capacities are set by the agent before the maps are made.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct state);
} weir_state SEC(".maps");

// Services leads from a service port to its table. The agent writes it.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct vip);
	__type(value, __u32);
} weir_services SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct table);
} weir_tables SEC(".maps");

// The agent writes slots.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct slots);
} weir_slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct endpoint);
} weir_endpoints SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct connection);
} weir_conns SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct flow);
	__type(value, struct flow_end);
} weir_flows SEC(".maps");
