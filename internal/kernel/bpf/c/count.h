// Counting: what became of a connection.
#pragma once

#include <linux/tcp.h>

#include "maps.h"

// The one field of the kernel's socket that is read; its place is found when the program is loaded.
struct sock {
	int sk_err;
} __attribute__((preserve_access_index));

// A client that gives up after the first retransmission would have waited for its endpoint in vain.
#define GIVEN_UP_AFTER 1000000000ULL

#define ECONNREFUSED 111
#define ETIMEDOUT 110
#define EHOSTUNREACH 113
#define ENETUNREACH 101

static __always_inline void failed(struct endpoint *endpoint, int error, __u64 waited)
{
	if (error == ECONNREFUSED)
		__sync_fetch_and_add(&endpoint->refused, 1);
	else if (error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH || waited > GIVEN_UP_AFTER)
		__sync_fetch_and_add(&endpoint->timed_out, 1);
	else
		__sync_fetch_and_add(&endpoint->abandoned, 1);
}

static __always_inline void count(struct bpf_sock_ops *ctx)
{
	struct bpf_sock *sk = ctx->sk;
	if (!sk)
		return;
	struct connection *kept = bpf_sk_storage_get(&weir_conns, sk, 0, 0);
	if (!kept)
		return;
	struct endpoint *endpoint = bpf_map_lookup_elem(&weir_endpoints, &kept->endpoint);
	if (!endpoint)
		return;
	__u64 waited = bpf_ktime_get_ns() - kept->started;
	switch (ctx->op) {
	case BPF_SOCK_OPS_TCP_CONNECT_CB:
		if (kept->phase != PHASE_PLACED)
			return;
		kept->phase = PHASE_CONNECTING;
		__sync_fetch_and_add(&endpoint->started, 1);
		bpf_sock_ops_cb_flags_set(ctx, ctx->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_STATE_CB_FLAG);
		return;
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
		if (kept->phase != PHASE_CONNECTING)
			return;
		kept->phase = PHASE_ESTABLISHED;
		__sync_fetch_and_add(&endpoint->established, 1);
		__sync_fetch_and_add(&endpoint->connect_nanos, waited);
		return;
	case BPF_SOCK_OPS_STATE_CB:
		break;
	default:
		return;
	}
	if (ctx->args[1] != BPF_TCP_CLOSE || kept->phase == PHASE_CLOSED)
		return;
	int error = 0;
	struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
	if (tcp)
		error = ((struct sock *)tcp)->sk_err;
	if (kept->phase == PHASE_ESTABLISHED) {
		if (error)
			__sync_fetch_and_add(&endpoint->reset, 1);
		__sync_fetch_and_add(&endpoint->closed, 1);
	} else if (kept->phase == PHASE_CONNECTING) {
		failed(endpoint, error, waited);
	}
	kept->phase = PHASE_CLOSED;
}
