package webhook

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"

	"golang.org/x/sync/errgroup"
	admissionv1client "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// certify gives the certificate to serve with, as tls.Config.GetCertificate does.
type certify func(*tls.ClientHelloInfo) (*tls.Certificate, error)

// Webhook is the webhook of one replica: its server and the certificates that it serves with. Use New.
//
// The replica that leads makes the certificates and publishes their authority; the others only follow. What goes wrong
// with certificates is logged and tried again, and never ends the controller: without them the webhook is not called, and
// the controller converges alone.
type Webhook struct {
	server  *server
	follow  func(context.Context) error // keeps a certificate at hand
	rotator *rotator                    // nil: the certificates are made elsewhere
}

// clients reach the objects that hold certificates and their authorities.
type clients struct {
	secrets        corev1client.SecretsGetter
	configurations admissionv1client.MutatingWebhookConfigurationsGetter
}

// New makes the webhook of the cluster that config reaches. It asks the cluster nothing.
//
// Errors: options that make no sense, metrics that are registered already, a folder without certificates.
func New(config *rest.Config, d Decisions, o Options) (*Webhook, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	m, err := newMetrics(o.Registerer)
	if err != nil {
		return nil, fmt.Errorf("register the webhook's metrics: %w", err)
	}
	w := new(Webhook)
	certificate, err := w.certify(config, &o, m)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle(Path, newHandler(d, m))
	w.server = &server{address: o.Address, handler: mux, certificate: certificate, now: o.Now, logger: o.Logger}
	return w, nil
}

// certify makes what keeps a certificate at hand: files that are watched, or weir's own in a Secret.
func (w *Webhook) certify(config *rest.Config, o *Options, m *metrics) (certify, error) {
	if o.CertDir != "" {
		files, err := newFiles(o, m)
		if err != nil {
			return nil, err
		}
		w.follow = files.run
		return files.certificate, nil
	}
	core, err := corev1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make the client for certificates: %w", err)
	}
	admission, err := admissionv1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make the client for certificates: %w", err)
	}
	c := clients{core, admission}
	f := newFollower(c, o, m)
	w.follow, w.rotator = f.run, newRotator(c, o, f.changed)
	return f.certificate, nil
}

// Run serves until ctx is done, and then finishes what it has begun. Every replica does.
//
// Errors: the address cannot be bound.
func (w *Webhook) Run(ctx context.Context) error {
	parts, ctx := errgroup.WithContext(ctx)
	parts.Go(func() error { return w.follow(ctx) })
	parts.Go(func() error { return w.server.run(ctx) })
	return parts.Wait()
}

// Lead makes certificates until ctx is done. Only the leader does.
func (w *Webhook) Lead(ctx context.Context) error {
	if w.rotator == nil {
		<-ctx.Done()
		return nil
	}
	return w.rotator.run(ctx)
}

// Ready gives nil while the server listens with a certificate that is valid, else what is wrong.
func (w *Webhook) Ready() error { return w.server.check() }
