package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	// transferTimeout is several times what an API server waits for an answer.
	transferTimeout = 10 * time.Second
	// idleTimeout is longer than an API server keeps an idle connection (90 s), so that it is always the client that
	// closes one, and no request runs into a closed connection.
	idleTimeout = 3 * time.Minute
	headerLimit = 64 << 10
)

// server serves the webhook over TLS, on every replica.
//
// It speaks HTTP/1.1 only: API servers call webhooks with that, so as to spread their calls over replicas
// (https://issue.k8s.io/75791), and a protocol that is not served cannot be attacked.
type server struct {
	address     string
	handler     http.Handler
	certificate certify
	now         func() time.Time
	logger      *slog.Logger
	// bound is the address that is listened on; nil before and after.
	bound atomic.Pointer[net.Addr]
}

// run serves until ctx ends, and then finishes what it has begun.
func (s *server) run(ctx context.Context) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", s.address)
	if err != nil {
		return fmt.Errorf("listen for the webhook: %w", err)
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	web := &http.Server{
		Handler:           s.handler,
		TLSConfig:         &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.certificate},
		Protocols:         protocols,
		ReadHeaderTimeout: transferTimeout,
		ReadTimeout:       transferTimeout,
		WriteTimeout:      transferTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    headerLimit,
		// Failed handshakes are logged once for each connection: too much for the default level.
		ErrorLog: slog.NewLogLogger(s.logger.Handler(), slog.LevelDebug),
	}
	bound := listener.Addr()
	s.bound.Store(&bound)
	s.logger.Info("webhook is listening", "address", bound.String())
	served := make(chan error, 1)
	go func() { served <- web.ServeTLS(listener, "", "") }()
	select {
	case err := <-served:
		s.bound.Store(nil)
		return fmt.Errorf("serve the webhook: %w", err)
	case <-ctx.Done():
	}
	s.bound.Store(nil)
	finish, cancel := context.WithTimeout(context.WithoutCancel(ctx), transferTimeout)
	defer cancel()
	err = web.Shutdown(finish)
	if closed := <-served; !errors.Is(closed, http.ErrServerClosed) {
		err = errors.Join(err, closed)
	}
	if err != nil {
		return fmt.Errorf("stop the webhook's server: %w", err)
	}
	return nil
}

// check tells why the webhook cannot be called now; nil when it can.
func (s *server) check() error {
	if s.bound.Load() == nil {
		return errors.New("the webhook does not listen")
	}
	c, err := s.certificate(nil)
	if err != nil {
		return err
	}
	if c == nil || c.Leaf == nil {
		return errNoCertificate
	}
	if now := s.now(); now.After(c.Leaf.NotAfter) || now.Before(c.Leaf.NotBefore) {
		return fmt.Errorf("the webhook's certificate is valid from %s to %s, and now it is %s",
			c.Leaf.NotBefore.Format(time.RFC3339), c.Leaf.NotAfter.Format(time.RFC3339), now.Format(time.RFC3339))
	}
	return nil
}
