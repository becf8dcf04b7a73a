// Package l7 proxies the connections of one service port: HTTP/1, HTTP/2 by prior knowledge, gRPC, WebSocket and other
// upgrades, and raw TCP. Which endpoint answers is the pool's decision, request by request for HTTP, connection by
// connection for TCP; this package decides how a request travels, when it may be tried again, and what each end of an
// attempt says about the endpoint.
//
// It promises that bodies are streamed and never held back, that nothing is sent twice unless that is safe, that a
// client whose framing is ambiguous is refused and not guessed at, and that every ticket of the pool is answered and
// closed once. It refuses to be a forward proxy, to end TLS, and to rewrite what the service said.
//
// Which pool a request asks, and what it is hashed by, is its client's Upstream. Follow swaps all upstreams at once: requests take
// no lock to find theirs, and keep it to their end.
//
// Two halves meet at a seam. The forwarding half knows no connections: upstream, retrier (pick, retry, tickets), hash, request (what
// rules ask), budget, classify. The engine half, streams, carries the bytes: a call is one request between two connections, a link (HTTP/2),
// inbound and outbound (HTTP/1) are connections, an outlet is what each sends through, origins keep those to endpoints, the watch keeps time.
// TCP has a wire. ADR-0027 and ADR-0029 say why.
package l7
