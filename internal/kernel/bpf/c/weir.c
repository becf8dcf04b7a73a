// The programs of the kernel data plane. Each leaves a socket alone when in doubt: kube-proxy then serves it.

#include <linux/bpf.h>
#include <linux/in.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "maps.h"
#include "place.h"
#include "count.h"

char _license[] SEC("license") = "Dual MIT/GPL";

#define MAPPED bpf_htonl(0xffff)
#define ALLOW 1

// protocol_of gives 0, which no service has, for what does not fit: MPTCP would be cut to TCP, and cannot be counted.
static __always_inline __u8 protocol_of(struct bpf_sock_addr *ctx)
{
	return ctx->protocol > 255 ? 0 : ctx->protocol;
}

// Addresses of contexts may only be read and written a word at a time, and ports as the lower half of one.

static __always_inline struct vip read4(struct bpf_sock_addr *ctx)
{
	struct vip v = {.port = ctx->user_port, .protocol = protocol_of(ctx)};
	v.addr[2] = MAPPED;
	v.addr[3] = ctx->user_ip4;
	return v;
}

static __always_inline void write4(struct bpf_sock_addr *ctx, const struct vip *to)
{
	ctx->user_ip4 = to->addr[3];
	ctx->user_port = to->port;
}

static __always_inline struct vip read6(struct bpf_sock_addr *ctx)
{
	struct vip v = {.port = ctx->user_port, .protocol = protocol_of(ctx)};
	v.addr[0] = ctx->user_ip6[0];
	v.addr[1] = ctx->user_ip6[1];
	v.addr[2] = ctx->user_ip6[2];
	v.addr[3] = ctx->user_ip6[3];
	return v;
}

static __always_inline void write6(struct bpf_sock_addr *ctx, const struct vip *to)
{
	ctx->user_ip6[0] = to->addr[0];
	ctx->user_ip6[1] = to->addr[1];
	ctx->user_ip6[2] = to->addr[2];
	ctx->user_ip6[3] = to->addr[3];
	ctx->user_port = to->port;
}

SEC("cgroup/connect4")
int connect4(struct bpf_sock_addr *ctx)
{
	struct vip vip = read4(ctx);
	struct endpoint *endpoint = place(ctx, &vip);
	if (endpoint)
		write4(ctx, &endpoint->to);
	return ALLOW;
}

SEC("cgroup/connect6")
int connect6(struct bpf_sock_addr *ctx)
{
	struct vip vip = read6(ctx);
	struct endpoint *endpoint = place(ctx, &vip);
	if (endpoint)
		write6(ctx, &endpoint->to);
	return ALLOW;
}

SEC("cgroup/getpeername4")
int getpeername4(struct bpf_sock_addr *ctx)
{
	struct vip vip;
	if (peer(ctx, &vip))
		write4(ctx, &vip);
	return ALLOW;
}

SEC("cgroup/getpeername6")
int getpeername6(struct bpf_sock_addr *ctx)
{
	struct vip vip;
	if (peer(ctx, &vip))
		write6(ctx, &vip);
	return ALLOW;
}

SEC("cgroup/sendmsg4")
int sendmsg4(struct bpf_sock_addr *ctx)
{
	struct vip vip = read4(ctx), to;
	if (send(ctx, &vip, &to))
		write4(ctx, &to);
	return ALLOW;
}

SEC("cgroup/sendmsg6")
int sendmsg6(struct bpf_sock_addr *ctx)
{
	struct vip vip = read6(ctx), to;
	if (send(ctx, &vip, &to))
		write6(ctx, &to);
	return ALLOW;
}

SEC("cgroup/recvmsg4")
int recvmsg4(struct bpf_sock_addr *ctx)
{
	struct vip from = read4(ctx), vip;
	if (received(ctx, &from, &vip))
		write4(ctx, &vip);
	return ALLOW;
}

SEC("cgroup/recvmsg6")
int recvmsg6(struct bpf_sock_addr *ctx)
{
	struct vip from = read6(ctx), vip;
	if (received(ctx, &from, &vip))
		write6(ctx, &vip);
	return ALLOW;
}

SEC("sockops")
int count_tcp(struct bpf_sock_ops *ctx)
{
	count(ctx);
	return ALLOW;
}
