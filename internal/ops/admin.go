package ops

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// The admin server's limits. It answers short requests of few clients; those beyond are cut off.
const (
	adminHeaderTimeout = 5 * time.Second  // loopback heads arrive at once
	adminWriteTimeout  = 60 * time.Second // above pprof's default profile of 30 s
	adminIdleTimeout   = 2 * time.Minute  // above the usual scrape interval, so that scrapers keep their connection
	adminHeaderBytes   = 16 << 10         // no cookies, no tokens
	adminConnections   = 64               // a scraper, the kubelet and a few shells
	adminStopTimeout   = 2 * time.Second  // no answer is worth waiting for longer
)

// AdminOptions say what the admin server shows.
type AdminOptions struct {
	Gatherer prometheus.Gatherer // /metrics; nil: none
	Ready    []Check             // /readyz
	Live     []Check             // /livez
	Pprof    bool                // /debug/pprof/: shows memory and costs time, so only on request
	// Pages are further read-only pages by pattern ("/pools/{namespace}/{name}"), without a method.
	Pages  map[string]http.Handler
	Logger *slog.Logger // nil: none
	// TLS serves the pages over TLS; nil: in plain text.
	TLS *tls.Config
	// Filter is put before all pages, such as one that asks for credentials; nil: none.
	Filter func(http.Handler) http.Handler
}

// Admin is the admin HTTP server. Use ListenAdmin.
type Admin struct {
	listener net.Listener
	server   *http.Server
}

// ListenAdmin binds the admin server to address ("127.0.0.1:9902"; port 0 takes a free one). Call Run next.
func ListenAdmin(ctx context.Context, address string, o AdminOptions) (*Admin, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for admin requests on %s: %w", address, err)
	}
	limited := limit(l, adminConnections)
	l = limited
	if o.TLS != nil {
		l = tls.NewListener(l, o.TLS)
	}
	pages := readOnly(adminPages(o))
	if o.Filter != nil {
		pages = o.Filter(pages)
	}
	pages = sparing(limited, pages)
	return &Admin{
		listener: l,
		server: &http.Server{
			Handler:           pages,
			ReadHeaderTimeout: adminHeaderTimeout,
			ReadTimeout:       adminHeaderTimeout,
			WriteTimeout:      adminWriteTimeout,
			IdleTimeout:       adminIdleTimeout,
			MaxHeaderBytes:    adminHeaderBytes,
			ErrorLog:          slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug),
		},
	}, nil
}

// Addr is where the server listens.
func (a *Admin) Addr() net.Addr { return a.listener.Addr() }

// Run serves until ctx is done, then lets answers in progress finish for a moment.
func (a *Admin) Run(ctx context.Context) error {
	served := make(chan error, 1)
	go func() { served <- a.server.Serve(a.listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve admin requests on %s: %w", a.Addr(), err)
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), adminStopTimeout)
	defer cancel()
	if err := a.server.Shutdown(stop); err != nil {
		_ = a.server.Close() // what is still open had its time
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve admin requests on %s: %w", a.Addr(), err)
	}
	return nil
}

// adminPages mounts everything, and an index at the root.
func adminPages(o AdminOptions) http.Handler {
	mux := http.NewServeMux()
	var index []string
	page := func(pattern string, h http.Handler) {
		mux.Handle(pattern, h)
		index = append(index, pattern)
	}
	for path, checks := range map[string][]Check{"/livez": o.Live, "/readyz": o.Ready} {
		h := &healthHandler{path: path, checks: checks}
		page(path, h)
		mux.Handle(path+"/", h)
	}
	if o.Gatherer != nil {
		page("/metrics", promhttp.HandlerFor(o.Gatherer, promhttp.HandlerOpts{
			MaxRequestsInFlight: 4, // scrapers in a redundant pair, and a person
			EnableOpenMetrics:   true,
		}))
	}
	if o.Pprof {
		page("/debug/pprof/", http.HandlerFunc(pprof.Index))
		mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	for pattern, h := range o.Pages {
		page(pattern, h)
	}
	slices.Sort(index)
	body := strings.Join(index, "\n") + "\n"
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte(body))
	})
	return mux
}

// sparing keeps connections for further requests only while there are few. Otherwise idle clients could take all of them,
// and a kubelet that finds no place ends the process.
func sparing(l *limitListener, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if l.isBusy() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// readOnly refuses every method that could mean a change, and a body.
func readOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "the admin pages are read-only", http.StatusMethodNotAllowed)
			return
		}
		r.Body = http.NoBody
		next.ServeHTTP(w, r)
	})
}
