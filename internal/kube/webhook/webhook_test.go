package webhook_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/webhook"
	"github.com/weir-lb/weir/internal/patience"
)

// folder writes a certificate for localhost into dir, as cert-manager's volume would have it, and gives whom to trust.
func folder(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	parsed, err := x509.ParseCertificate(cert)
	if err != nil {
		t.Fatal(err)
	}
	pool.AddCert(parsed)
	for name, block := range map[string]*pem.Block{
		"tls.crt": {Type: "CERTIFICATE", Bytes: cert}, "tls.key": {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return pool
}

// offline is a cluster without an API server.
func offline() *rest.Config { return &rest.Config{Host: "http://127.0.0.1:1"} }

// freeAddress is one of loopback that nobody listened on a moment ago.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func TestTheWebhookServesWithTheFilesOfAFolderAndFollowsThem(t *testing.T) {
	dir, address := t.TempDir(), freeAddress(t)
	pool := folder(t, dir)
	list := slices(3)
	hook, err := webhook.New(offline(), decisions{web(): decide(list, topology.ModePreferSameZone)}, webhook.Options{Address: address, CertDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- hook.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("want the webhook to end without an error, got %v", err)
		}
	})
	r := review(list[0])
	call := func(pool *x509.CertPool) (string, error) {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "localhost"}, DisableKeepAlives: true}
		w, err := (&http.Client{Transport: transport}).Post("https://"+address+webhook.Path, "application/json", strings.NewReader(encode(r)))
		if err != nil {
			return "", err
		}
		defer func() { _ = w.Body.Close() }()
		answer, err := io.ReadAll(w.Body)
		return string(answer), err
	}
	patches := func(pool *x509.CertPool) func() bool {
		return func() bool {
			answer, err := call(pool)
			return err == nil && strings.Contains(answer, `"patchType":"JSONPatch"`)
		}
	}
	patience.Within(t, 5*time.Second, "the webhook answers with a patch", patches(pool))
	next := folder(t, dir)
	patience.Within(t, 3*time.Second, "the webhook serves with the new file", patches(next))
	patience.Stays(t, 200*time.Millisecond, "the webhook serves with the new file", patches(next))
}

func TestAFolderWithoutCertificatesIsRefused(t *testing.T) {
	if _, err := webhook.New(offline(), decisions{}, webhook.Options{CertDir: t.TempDir()}); err == nil {
		t.Error("want an error")
	}
}
