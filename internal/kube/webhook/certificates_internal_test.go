package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	admissionv1client "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	clienttesting "k8s.io/client-go/testing"

	"github.com/weir-lb/weir/internal/patience"
)

const host = DefaultService + "." + DefaultNamespace + ".svc"

// clock is a time that the test sets.
type clock struct{ now atomic.Pointer[time.Time] }

func newClock() *clock {
	c := new(clock)
	c.set(time.Now())
	return c
}

func (c *clock) set(now time.Time)       { c.now.Store(&now) }
func (c *clock) read() time.Time         { return *c.now.Load() }
func (c *clock) forward(d time.Duration) { c.set(c.read().Add(d)) }

// fixture is a replica of the controller as far as certificates go, and the API server's objects.
type fixture struct {
	*testing.T
	client   *fake.Clientset
	clock    *clock
	options  *Options
	follower *follower
	rotator  *rotator
}

func newFixture(t *testing.T, o Options) *fixture {
	t.Helper()
	s := &fixture{T: t, clock: newClock()}
	s.client = fake.NewClientset(&admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: DefaultConfiguration, ResourceVersion: "1"},
		Webhooks:   []admissionregistrationv1.MutatingWebhook{{Name: "hints.weir.dev"}, {Name: "more.weir.dev"}},
	})
	o.Now = s.clock.read
	o, err := o.complete()
	if err != nil {
		t.Fatal(err)
	}
	m, err := newMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	s.options = &o
	s.follower = newFollower(clients{plainSecrets{s.client.CoreV1()}, plainConfigurations{s.client.AdmissionregistrationV1()}}, s.options, m)
	s.rotator = newRotator(s.follower.clients, s.options, s.follower.changed)
	return s
}

// The fake API server cannot begin a watch with what is there, and the interfaces for one kind do not say so.
type (
	plainSecrets        struct{ corev1client.SecretsGetter }
	plainSecret         struct{ corev1client.SecretInterface }
	plainConfigurations struct {
		admissionv1client.MutatingWebhookConfigurationsGetter
	}
	plainConfiguration struct {
		admissionv1client.MutatingWebhookConfigurationInterface
	}
)

func (p plainSecrets) Secrets(namespace string) corev1client.SecretInterface {
	return plainSecret{p.SecretsGetter.Secrets(namespace)}
}
func (plainSecret) IsWatchListSemanticsUnSupported() bool { return true }

func (p plainConfigurations) MutatingWebhookConfigurations() admissionv1client.MutatingWebhookConfigurationInterface {
	return plainConfiguration{p.MutatingWebhookConfigurationsGetter.MutatingWebhookConfigurations()}
}
func (plainConfiguration) IsWatchListSemanticsUnSupported() bool { return true }

// keep looks once, and the follower sees what came of it.
func (s *fixture) keep() time.Duration {
	s.Helper()
	next, err := s.rotator.keep(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	s.follower.see(s.secret())
	return next
}

func (s *fixture) secret() *corev1.Secret {
	s.Helper()
	secret, err := s.client.CoreV1().Secrets(DefaultNamespace).Get(s.Context(), DefaultSecret, metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return secret
}

func (s *fixture) put(secret *corev1.Secret) {
	s.Helper()
	if _, err := s.client.CoreV1().Secrets(DefaultNamespace).Update(s.Context(), secret, metav1.UpdateOptions{}); err != nil {
		s.Fatal(err)
	}
}

// bundle is what each of the configuration's webhooks is to be trusted by.
func (s *fixture) bundle() []byte {
	s.Helper()
	c, err := s.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(s.Context(), DefaultConfiguration, metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	if len(c.Webhooks) != 2 || !bytes.Equal(c.Webhooks[0].ClientConfig.CABundle, c.Webhooks[1].ClientConfig.CABundle) {
		s.Fatalf("want two webhooks with one bundle, got %v", c.Webhooks)
	}
	return c.Webhooks[0].ClientConfig.CABundle
}

// trusts tells why a client that trusts the bundle would refuse what is served now; nil if it would not.
func (s *fixture) trusts(bundle []byte) error {
	s.Helper()
	c, err := s.follower.certificate(nil)
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(bundle)
	_, err = c.Leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: pool, CurrentTime: s.clock.read()})
	return err
}

// writes counts the writes to the API server.
func (s *fixture) writes() int {
	n := 0
	for _, a := range s.client.Actions() {
		if slices.Contains([]string{"create", "update", "patch", "delete"}, a.GetVerb()) {
			n++
		}
	}
	return n
}

func TestCertificatesAreMadeOnceAndPublished(t *testing.T) {
	s := newFixture(t, Options{Names: []string{"localhost"}})
	s.keep()
	if err := s.trusts(s.bundle()); err != nil {
		t.Errorf("want what is served trusted: %v", err)
	}
	if c, _ := s.follower.certificate(nil); c.Leaf.VerifyHostname("localhost") != nil {
		t.Errorf("want a certificate for localhost too, got %v", c.Leaf.DNSNames)
	}
	if secret := s.secret(); secret.Type != corev1.SecretTypeTLS {
		t.Errorf("want a Secret of type %s, got %s", corev1.SecretTypeTLS, secret.Type)
	}
	before := s.writes()
	if next := s.keep(); next != recheckInterval {
		t.Errorf("want nothing to do for %s, got %s", recheckInterval, next)
	}
	if after := s.writes(); before != 2 || after != before {
		t.Errorf("want two writes, and no more for a second look: got %d, then %d", before, after)
	}
}

func TestNoCallIsRefusedWhileCertificatesAreRotated(t *testing.T) {
	const day = 24 * time.Hour
	s := newFixture(t, Options{Validity: 30 * day, CAValidity: 90 * day})
	s.keep()
	certificates, authorities := make(map[string]bool), make(map[string]bool)
	for range 30 {
		s.clock.forward(5 * day)
		trusted := s.bundle() // an API server that has not seen the next one yet
		next := s.keep()
		for range 2 { // the second look is that which the first asked for
			if err := s.trusts(trusted); err != nil {
				t.Fatalf("at %s: a client that trusts the bundle before refuses: %v", s.clock.read(), err)
			}
			if err := s.trusts(s.bundle()); err != nil {
				t.Fatalf("at %s: a client that trusts the newest bundle refuses: %v", s.clock.read(), err)
			}
			trusted = s.bundle()
			s.clock.forward(min(next, recheckInterval))
			next = s.keep()
		}
		c, _ := s.follower.certificate(nil)
		certificates[c.Leaf.Issuer.String()+c.Leaf.NotAfter.String()] = true
		authorities[string(c.Leaf.AuthorityKeyId)] = true
	}
	if len(certificates) < 6 || len(authorities) != 3 {
		t.Errorf("want at least 6 certificates of 3 authorities in 150 days, got %d of %d", len(certificates), len(authorities))
	}
	if n := bytes.Count(s.bundle(), []byte("BEGIN CERTIFICATE")); n > 2 {
		t.Errorf("want at most two authorities trusted, got %d", n)
	}
}

func TestASecretThatIsBrokenIsReplaced(t *testing.T) {
	other := newFixture(t, Options{})
	other.keep()
	for name, breakIt := range map[string]func(s *fixture, data map[string][]byte){
		"empty":           func(_ *fixture, data map[string][]byte) { clear(data) },
		"no certificate":  func(_ *fixture, data map[string][]byte) { delete(data, "tls.crt") },
		"no key":          func(_ *fixture, data map[string][]byte) { delete(data, "tls.key") },
		"garbage for all": func(_ *fixture, data map[string][]byte) { fill(data, "garbage") },
		"garbage in PEM for all": func(_ *fixture, data map[string][]byte) {
			fill(data, "-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n")
		},
		"another's key": func(_ *fixture, data map[string][]byte) { data["tls.key"] = other.secret().Data["tls.key"] },
		"another's certificate": func(_ *fixture, data map[string][]byte) {
			data["tls.crt"], data["tls.key"] = other.secret().Data["tls.crt"], other.secret().Data["tls.key"]
		},
		"another's authority":       func(_ *fixture, data map[string][]byte) { data["ca.crt"] = other.secret().Data["ca.crt"] },
		"no authority":              func(_ *fixture, data map[string][]byte) { delete(data, "ca.crt") },
		"no key of the authority":   func(_ *fixture, data map[string][]byte) { delete(data, "ca.key") },
		"a certificate of the past": func(s *fixture, _ map[string][]byte) { s.clock.forward(91 * 24 * time.Hour) },
		"an authority of the past":  func(s *fixture, _ map[string][]byte) { s.clock.forward(11 * 365 * 24 * time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t, Options{})
			s.keep()
			secret := s.secret().DeepCopy()
			breakIt(s, secret.Data)
			s.put(secret)
			s.keep()
			if err := s.trusts(s.bundle()); err != nil {
				t.Errorf("want what is served trusted again: %v", err)
			}
			before := s.writes()
			s.keep()
			if s.writes() != before {
				t.Error("want nothing more to write")
			}
		})
	}
}

func fill(data map[string][]byte, with string) {
	for key := range data {
		data[key] = []byte(with)
	}
}

func TestOthersBundleIsReplacedAndNoConfigurationIsFine(t *testing.T) {
	s := newFixture(t, Options{})
	s.keep()
	configurations := s.client.AdmissionregistrationV1().MutatingWebhookConfigurations()
	c, err := configurations.Get(t.Context(), DefaultConfiguration, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.Webhooks[0].ClientConfig.CABundle, c.Webhooks[1].ClientConfig.CABundle = nil, []byte("somebody else's")
	if _, err := configurations.Update(t.Context(), c, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.keep()
	if err := s.trusts(s.bundle()); err != nil {
		t.Errorf("want what is served trusted again: %v", err)
	}
	if err := configurations.Delete(t.Context(), DefaultConfiguration, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.keep()
}

func TestARefusedWriteIsAnErrorAndPublishesNothing(t *testing.T) {
	s := newFixture(t, Options{})
	conflict := apierrors.NewConflict(corev1.Resource("secrets"), DefaultSecret, errors.New("somebody was faster"))
	s.client.PrependReactor("create", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, conflict })
	if _, err := s.rotator.keep(t.Context()); !apierrors.IsConflict(err) {
		t.Errorf("want the conflict, got %v", err)
	}
	if b := s.bundle(); b != nil {
		t.Errorf("want no authority published that no Secret has, got %s", b)
	}
}

// By when the parts react, and how long a test looks whether that lasts. A retry comes after one second, the next after two
// more, each up to a tenth later; the rest takes a pause of one second, a key and a watch.
const (
	withTwoRetries = 6 * time.Second
	seen           = 4 * time.Second
	lasting        = 300 * time.Millisecond
)

func TestTheRotatorMendsTheSecretAndTriesAgainAfterErrors(t *testing.T) {
	s := newFixture(t, Options{})
	var refusals atomic.Int32
	s.client.PrependReactor("create", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return refusals.Add(1) <= 2, nil, apierrors.NewForbidden(corev1.Resource("secrets"), DefaultSecret, errors.New("not yet"))
	})
	run(t, s.follower.run)
	run(t, s.rotator.run)
	trusted := func() bool { return s.trusts(s.bundle()) == nil }
	patience.Within(t, withTwoRetries, "a certificate is served and trusted", trusted)
	patience.Stays(t, lasting, "the certificate is trusted, and the Secret is not made again", func() bool {
		return trusted() && refusals.Load() == 3
	})
	first, _ := s.follower.certificate(nil)
	if err := s.client.CoreV1().Secrets(DefaultNamespace).Delete(t.Context(), DefaultSecret, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if c, err := s.follower.certificate(nil); err != nil || c == nil {
		t.Errorf("want the last certificate served without a Secret, got %v", err)
	}
	patience.Within(t, seen, "another certificate is served and trusted", func() bool {
		c, _ := s.follower.certificate(nil)
		return c != first && trusted()
	})
	second, _ := s.follower.certificate(nil)
	patience.Stays(t, lasting, "the mended certificate is served", func() bool {
		c, _ := s.follower.certificate(nil)
		return c == second && trusted()
	})
}

// run runs what a manager would, until the test ends.
func run(t *testing.T, start func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("want it to end without an error, got %v", err)
		}
	})
}

func TestAFollowerKeepsItsCertificateWhenTheSecretIsOfNoUse(t *testing.T) {
	s := newFixture(t, Options{})
	s.keep()
	want, _ := s.follower.certificate(nil)
	broken := s.secret().DeepCopy()
	broken.Data["tls.crt"] = []byte("garbage")
	s.follower.see(broken)
	foreign := s.secret().DeepCopy()
	foreign.Name = "other"
	s.follower.see(foreign)
	if got, err := s.follower.certificate(nil); err != nil || got != want {
		t.Errorf("want the certificate before, got %v", err)
	}
}

func TestTheServerIsReadyWhileItListensWithAValidCertificate(t *testing.T) {
	s := newFixture(t, Options{})
	web := &server{address: "127.0.0.1:0", handler: http.NotFoundHandler(), certificate: s.follower.certificate, now: s.clock.read, logger: s.options.Logger}
	if err := web.check(); err == nil {
		t.Error("want it not ready before it listens")
	}
	run(t, web.run)
	patience.Within(t, seen, "it listens", func() bool { return web.bound.Load() != nil })
	if err := web.check(); !errors.Is(err, errNoCertificate) {
		t.Errorf("want it not ready without a certificate, got %v", err)
	}
	s.keep()
	if err := web.check(); err != nil {
		t.Errorf("want it ready, got %v", err)
	}
	s.clock.forward(91 * 24 * time.Hour)
	if err := web.check(); err == nil {
		t.Error("want it not ready with a certificate that has ended")
	}
}

func TestTheServerSpeaksNewTLSAndHTTP1AndFinishesWhatItHasBegun(t *testing.T) {
	s := newFixture(t, Options{})
	s.keep()
	begun, finish := make(chan struct{}), make(chan struct{})
	slow := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(begun)
		<-finish
		_, _ = fmt.Fprint(w, "done")
	})
	web := &server{address: "127.0.0.1:0", handler: slow, certificate: s.follower.certificate, now: s.clock.read, logger: s.options.Logger}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- web.run(ctx) }()
	patience.Within(t, seen, "it listens", func() bool { return web.bound.Load() != nil })
	address := (*web.bound.Load()).String()

	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(s.bundle())
	trusting := func(max uint16) *tls.Config {
		return &tls.Config{RootCAs: pool, ServerName: host, MinVersion: tls.VersionTLS10, MaxVersion: max, NextProtos: []string{"h2", "http/1.1"}} //nolint:gosec // what must be refused
	}
	for version, want := range map[uint16]bool{tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		c, err := tls.Dial("tcp", address, trusting(version))
		if (err == nil) != want {
			t.Errorf("want a handshake with %s to succeed: %t, got %v", tls.VersionName(version), want, err)
		}
		if err == nil {
			if got := c.ConnectionState().NegotiatedProtocol; got != "http/1.1" {
				t.Errorf("want http/1.1, got %q", got)
			}
			_ = c.Close()
		}
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: trusting(0), DisableKeepAlives: true}}
	answered := make(chan error, 1)
	go func() {
		r, err := client.Get("https://" + address)
		if err == nil {
			_ = r.Body.Close()
		}
		answered <- err
	}()
	<-begun
	cancel()
	refuses := func() bool {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	}
	patience.Within(t, seen, "it no longer listens", refuses)
	patience.Stays(t, lasting, "it does not listen while it finishes a request", refuses)
	close(finish)
	if err := <-answered; err != nil {
		t.Errorf("want the request that had begun answered, got %v", err)
	}
	if err := <-ended; err != nil {
		t.Errorf("want it to end without an error, got %v", err)
	}
}

func TestOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	for _, o := range []Options{{Validity: -1}, {PublishDelay: -1}, {Validity: time.Hour, CAValidity: 2 * time.Hour}} {
		if _, err := o.complete(); err == nil {
			t.Errorf("want %+v refused", o)
		}
	}
}
