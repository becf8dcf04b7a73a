// Placing: which endpoint a connection or flow to a service port gets.
#pragma once

#include "maps.h"

// The agent writes the heartbeat ten times a second; after this time without it kube-proxy serves.
#define HEARTBEAT_LIMIT 1500000000ULL

// A table may hold endpoints that have just failed: as many draws as let nearly all find another one, where half are down.
#define DRAWS 4

static __always_inline int is_alive(void)
{
	__u32 zero = 0;
	struct state *state = bpf_map_lookup_elem(&weir_state, &zero);
	if (!state || bpf_ktime_get_ns() - state->heartbeat > HEARTBEAT_LIMIT)
		return 0;
	return !state->cgroup || state->cgroup != bpf_get_current_cgroup_id();
}

static __always_inline int is_same(const struct vip *a, const struct vip *b)
{
	return a->addr[0] == b->addr[0] && a->addr[1] == b->addr[1] && a->addr[2] == b->addr[2] &&
	       a->addr[3] == b->addr[3] && a->port == b->port && a->protocol == b->protocol;
}

static __always_inline struct table *table_of(const struct vip *vip)
{
	__u32 *index = bpf_map_lookup_elem(&weir_services, vip);
	if (!index)
		return 0;
	__u32 at = *index;
	struct table *table = bpf_map_lookup_elem(&weir_tables, &at);
	if (!table || !is_same(&table->vip, vip))
		return 0;
	return table;
}

// draw gives an endpoint that is up, and its index; null if none was found.
static __always_inline struct endpoint *draw(struct table *table, __u32 *index)
{
	__u32 offset = table->offset[0];
	if (*(volatile __u32 *)&table->active)
		offset = table->offset[1];
#pragma unroll
	for (int i = 0; i < DRAWS; i++) {
		__u32 at = offset + (bpf_get_prandom_u32() & table->mask);
		__u32 block = at / SLOTS_IN_BLOCK;
		struct slots *slots = bpf_map_lookup_elem(&weir_slots, &block);
		if (!slots)
			continue;
		__u32 id = slots->of[at % SLOTS_IN_BLOCK];
		struct endpoint *endpoint = bpf_map_lookup_elem(&weir_endpoints, &id);
		if (endpoint && endpoint->flags & ENDPOINT_UP) {
			*index = id;
			__sync_fetch_and_add(&table->placed, 1);
			return endpoint;
		}
	}
	__sync_fetch_and_add(&table->unplaced, 1);
	return 0;
}

// place gives the endpoint for a socket that connects to a VIP, and remembers it; null: the socket is left alone.
static __always_inline struct endpoint *place(struct bpf_sock_addr *ctx, const struct vip *vip)
{
	struct endpoint *endpoint = 0;
	struct table *table = 0;
	__u32 index = 0;
	if (is_alive())
		table = table_of(vip);
	if (table)
		endpoint = draw(table, &index);
	if (!ctx->sk)
		return 0;
	if (!endpoint) { // a socket may connect a second time
		bpf_sk_storage_delete(&weir_conns, ctx->sk);
		return 0;
	}
	struct connection fresh = {.vip = *vip, .endpoint = index, .started = bpf_ktime_get_ns()};
	struct connection *kept = bpf_sk_storage_get(&weir_conns, ctx->sk, &fresh, BPF_SK_STORAGE_GET_F_CREATE);
	if (!kept)
		return 0;
	*kept = fresh;
	if (vip->protocol == IPPROTO_UDP)
		__sync_fetch_and_add(&endpoint->started, 1);
	return endpoint;
}

// send gives the address for a datagram of an unconnected socket: the same for as long as its endpoint is up.
static __always_inline int send(struct bpf_sock_addr *ctx, const struct vip *vip, struct vip *to)
{
	struct flow key = {.peer = *vip, .forward = 1};
	struct endpoint *endpoint;
	if (!is_alive())
		return 0;
	struct table *table = table_of(vip);
	if (!table)
		return 0;
	key.socket = bpf_get_socket_cookie(ctx);
	struct flow_end *known = bpf_map_lookup_elem(&weir_flows, &key);
	if (known) {
		__u32 id = known->endpoint;
		endpoint = bpf_map_lookup_elem(&weir_endpoints, &id);
		if (endpoint && endpoint->flags & ENDPOINT_UP && is_same(&endpoint->to, &known->peer)) {
			*to = known->peer;
			return 1;
		}
	}
	struct flow_end end = {};
	endpoint = draw(table, &end.endpoint);
	if (!endpoint)
		return 0;
	end.peer = endpoint->to;
	if (bpf_map_update_elem(&weir_flows, &key, &end, BPF_ANY))
		return 0;
	*to = end.peer;
	key.peer = end.peer;
	key.forward = 0;
	end.peer = *vip;
	if (bpf_map_update_elem(&weir_flows, &key, &end, BPF_ANY))
		return 0;
	__sync_fetch_and_add(&endpoint->started, 1);
	return 1;
}

// received gives the VIP for which a datagram's source stands; 0: the source is left alone.
static __always_inline int received(struct bpf_sock_addr *ctx, const struct vip *from, struct vip *vip)
{
	struct flow key = {.peer = *from};
	struct connection *kept = 0;
	if (ctx->sk)
		kept = bpf_sk_storage_get(&weir_conns, ctx->sk, 0, 0);
	if (kept) {
		struct endpoint *endpoint = bpf_map_lookup_elem(&weir_endpoints, &kept->endpoint);
		if (endpoint && kept->phase == PHASE_PLACED) {
			kept->phase = PHASE_ESTABLISHED;
			__sync_fetch_and_add(&endpoint->established, 1);
		}
		*vip = kept->vip;
		return 1;
	}
	key.socket = bpf_get_socket_cookie(ctx);
	struct flow_end *known = bpf_map_lookup_elem(&weir_flows, &key);
	if (!known)
		return 0;
	*vip = known->peer;
	return 1;
}

// peer gives the VIP that a connected socket asked for; 0: no program placed it.
static __always_inline int peer(struct bpf_sock_addr *ctx, struct vip *vip)
{
	if (!ctx->sk)
		return 0;
	struct connection *kept = bpf_sk_storage_get(&weir_conns, ctx->sk, 0, 0);
	if (!kept)
		return 0;
	*vip = kept->vip;
	return 1;
}
