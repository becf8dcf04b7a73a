package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// fileInterval is the time between two reads of the files: short against the minute that the kubelet takes to update a
// volume, and two small files cost next to nothing.
const fileInterval = time.Second

// files holds the certificate of a folder in memory, and reads it again when the files change. It is safe for concurrent
// use.
type files struct {
	options   *Options
	metrics   *metrics
	cert, key []byte // as last read; owned by run
	current   atomic.Pointer[tls.Certificate]
}

// newFiles reads the folder for the first time.
func newFiles(o *Options, m *metrics) (*files, error) {
	f := &files{options: o, metrics: m}
	if err := f.read(); err != nil {
		return nil, fmt.Errorf("read the webhook's certificate in %s: %w", o.CertDir, err)
	}
	return f, nil
}

// run follows the files until ctx is done. Files that make no certificate, as between the writes of both, leave the one
// before in place.
func (f *files) run(ctx context.Context) error {
	tick := time.NewTicker(fileInterval)
	defer tick.Stop()
	failed := false
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		err := f.read()
		if err != nil && !failed {
			f.options.Logger.Warn("certificate is of no use, the one before is served", "folder", f.options.CertDir, "error", err)
		}
		failed = err != nil
	}
}

// read takes the certificate of the files if they changed.
func (f *files) read() error {
	cert, err := os.ReadFile(filepath.Join(f.options.CertDir, corev1.TLSCertKey))
	if err != nil {
		return err
	}
	key, err := os.ReadFile(filepath.Join(f.options.CertDir, corev1.TLSPrivateKeyKey))
	if err != nil {
		return err
	}
	if bytes.Equal(cert, f.cert) && bytes.Equal(key, f.key) {
		return nil
	}
	c, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return err
	}
	f.cert, f.key = cert, key
	f.current.Store(&c)
	f.metrics.expiry.Set(float64(c.Leaf.NotAfter.Unix()))
	return nil
}

// certificate gives the current certificate.
func (f *files) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return f.current.Load(), nil
}
