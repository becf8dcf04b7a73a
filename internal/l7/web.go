package l7

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"

	"github.com/weir-lb/weir/internal/core/reason"
)

// web is the engine for HTTP: net/http serves the clients, one http.Transport per endpoint and version asks the
// endpoints, and an exchange stands between for each request.
type web struct {
	shared    *shared
	options   *Options
	endpoints *endpoints
	texts     map[reason.Code]string
	buffers   *sync.Pool // of *copyBuffer
	server    *http.Server
}

type guardKey struct{}

func newWeb(s *shared, o *Options, e *endpoints) *web {
	w := &web{shared: s, options: o, endpoints: e, buffers: newBuffers(), texts: make(map[reason.Code]string)}
	for _, code := range refusalReasons() {
		w.texts[code] = reason.New(code).String()
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	w.server = &http.Server{
		Handler:                      w,
		Protocols:                    protocols,
		HTTP2:                        &http.HTTP2Config{MaxConcurrentStreams: max(o.Limits.Streams, 0), SendPingTimeout: pingAfter, PingTimeout: pingWait},
		IdleTimeout:                  o.Timeouts.Idle,
		DisableGeneralOptionsHandler: true, // OPTIONS * is the service's to answer
		ErrorLog:                     slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug),
		// The guard bounds an HTTP/1 head first, and exactly; this bounds HTTP/2.
		MaxHeaderBytes: headBytes(o.Limits.Head),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, guardKey{}, c)
		},
	}
	return w
}

// headBytes gives net/http's bound: a little above the guard's, since both count differently.
func headBytes(limit int) int {
	const slack = 4 << 10
	if limit < 0 {
		return 1 << 30 // net/http knows no bound that is none; 1 GiB never comes
	}
	return limit + slack
}

// ServeHTTP forwards one request.
func (h *web) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g := h.guard(r)
	x := exchange{
		web:     h,
		retrier: h.shared.begin(g.client.remote.Addr()),
		guard:   g,
		w:       w,
		r:       r,
		asked:   requestOf(r),
		rc:      http.NewResponseController(w),
	}
	defer x.finish()
	x.classify()
	x.prepareBody()
	if r.Method == refusedMethod && r.ProtoMajor == 1 {
		x.refuse(g.refusal())
		return
	}
	if r.Method == http.MethodConnect {
		x.refuse(reason.UnsupportedMethod)
		return
	}
	if !h.shared.enter(g.client) {
		x.refuse(reason.PendingLimit)
		return
	}
	x.waiting = true
	x.run()
}

// guard finds the connection that a request came on. All do on one: handoff takes nothing else.
func (h *web) guard(r *http.Request) *requestGuard {
	g, _ := r.Context().Value(guardKey{}).(*requestGuard)
	return g
}

// transport chooses how an endpoint is spoken to.
func (h *web) transport(e *endpoint, clientMajor int) *http.Transport {
	switch h.options.Protocol {
	case H2C, GRPC:
		return e.http2
	case WebSocket:
		return e.http1
	default:
		if clientMajor == 2 {
			return e.http2
		}
		return e.http1
	}
}
