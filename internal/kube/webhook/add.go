package webhook

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// certify gives the certificate to serve with, as tls.Config.GetCertificate does.
type certify func(*tls.ClientHelloInfo) (*tls.Certificate, error)

// Add gives a manager the webhook: its server on every replica, the certificates that it serves with, and the readiness
// check "webhook", which holds while the server listens with a certificate that is valid.
//
// The replica that leads makes the certificates and publishes their authority; the others only follow. What goes wrong
// with certificates is logged and tried again, and never ends the manager: without them the webhook is not called, and
// the controller converges alone. An address that cannot be bound does end it, as does a folder without certificates.
func Add(mgr manager.Manager, d Decisions, o Options) error {
	o, err := o.complete()
	if err != nil {
		return err
	}
	m, err := newMetrics(o.Registerer)
	if err != nil {
		return fmt.Errorf("register the webhook's metrics: %w", err)
	}
	certificate, err := addCertificates(mgr, &o, m)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle(Path, newHandler(d, m))
	s := &server{address: o.Address, handler: mux, certificate: certificate, now: o.Now, logger: o.Logger}
	if err := mgr.Add(s); err != nil {
		return fmt.Errorf("add the webhook's server: %w", err)
	}
	return mgr.AddReadyzCheck("webhook", s.check)
}

// addCertificates adds what keeps a certificate at hand: files that are watched, or weir's own in a Secret.
func addCertificates(mgr manager.Manager, o *Options, m *metrics) (certify, error) {
	if o.CertDir != "" {
		files, err := certwatcher.New(filepath.Join(o.CertDir, corev1.TLSCertKey), filepath.Join(o.CertDir, corev1.TLSPrivateKeyKey))
		if err != nil {
			return nil, fmt.Errorf("read the webhook's certificate in %s: %w", o.CertDir, err)
		}
		files.RegisterCallback(func(c tls.Certificate) { m.expiry.Set(float64(c.Leaf.NotAfter.Unix())) })
		return files.GetCertificate, mgr.Add(files)
	}
	client, err := kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("make the client for certificates: %w", err)
	}
	f := newFollower(client, o, m)
	if err := mgr.Add(f); err != nil {
		return nil, fmt.Errorf("add the follower of certificates: %w", err)
	}
	if err := mgr.Add(newKeeper(client, o, f.changed)); err != nil {
		return nil, fmt.Errorf("add the keeper of certificates: %w", err)
	}
	return f.certificate, nil
}
