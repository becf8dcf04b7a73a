package webhook

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/plans"
)

// Decisions knows what was decided for services. Lookup is safe for concurrent use and quick.
type Decisions interface {
	Lookup(name topology.ServiceName) (*plans.Decision, bool)
}

// Path is where the webhook is served.
const Path = "/mutate-endpointslice"

// What the objects around the webhook are called unless Options say otherwise.
const (
	DefaultAddress       = ":9443"
	DefaultNamespace     = "weir-system"
	DefaultService       = "weir-webhook"
	DefaultSecret        = "weir-webhook-certificate"
	DefaultConfiguration = "weir-hints"
)

// How long certificates last. Each is made anew when a third of its time is left.
const (
	// defaultValidity is short, so that a rotation is nothing rare, and long enough for a month's outage of the replica that makes
	// the next one.
	defaultValidity = 90 * 24 * time.Hour
	// defaultCAValidity lets a certificate authority sign for years: a change of it is the one that API servers must
	// learn of.
	defaultCAValidity = 10 * 365 * 24 * time.Hour
	// defaultPublishDelay is how long API servers are given to see a new certificate authority before a certificate of it is
	// served. They see it within a second; a minute costs nothing.
	defaultPublishDelay = time.Minute
)

// Options say where the webhook listens and whose certificates it serves with. The zero value is what the deployment uses.
type Options struct {
	// Address is where to listen, host:port; DefaultAddress when empty.
	Address string
	// CertDir is a folder with tls.crt and tls.key, which another program makes and rotates (cert-manager, for one). Empty:
	// weir makes its own, keeps them in the Secret and puts the certificate authority into the configuration.
	CertDir string
	// Namespace holds Secret and Service; DefaultNamespace when empty.
	Namespace string
	// Service is what the API server calls the webhook by: its certificate is for SERVICE.NAMESPACE.svc.
	// DefaultService when empty.
	Service string
	// Secret keeps certificates and keys; DefaultSecret when empty.
	Secret string
	// Configuration names the MutatingWebhookConfiguration whose webhooks are given the certificate authority;
	// DefaultConfiguration when empty. It may not exist, or later.
	Configuration string
	// Names are further DNS names of the certificate: the host of a clientConfig.url. An IP address cannot be one.
	Names []string
	// Validity is how long a certificate lasts, 90 days when zero; CAValidity how long its authority does, ten years when
	// zero and never less than three times Validity.
	Validity, CAValidity time.Duration
	// PublishDelay is how long a new authority is known before a certificate of it is served; a minute when zero.
	PublishDelay time.Duration
	// Now is the clock that certificates are judged by; time.Now when nil.
	Now func() time.Time
	// Logger takes messages about certificates; nothing is logged per request. Discarded when nil.
	Logger *slog.Logger
	// Registerer is given the metrics; they are kept from view when nil.
	Registerer prometheus.Registerer
}

// complete fills in what was left empty, or says what makes no sense.
func (o Options) complete() (Options, error) {
	o.Address = cmp.Or(o.Address, DefaultAddress)
	o.Namespace = cmp.Or(o.Namespace, DefaultNamespace)
	o.Service = cmp.Or(o.Service, DefaultService)
	o.Secret = cmp.Or(o.Secret, DefaultSecret)
	o.Configuration = cmp.Or(o.Configuration, DefaultConfiguration)
	o.Validity = cmp.Or(o.Validity, defaultValidity)
	o.CAValidity = cmp.Or(o.CAValidity, defaultCAValidity)
	o.PublishDelay = cmp.Or(o.PublishDelay, defaultPublishDelay)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Registerer == nil {
		o.Registerer = prometheus.NewRegistry()
	}
	if o.Validity < 0 || o.PublishDelay < 0 {
		return o, errors.New("the validity and the publish delay of a certificate must not be negative")
	}
	if o.CAValidity < 3*o.Validity {
		return o, fmt.Errorf("a certificate authority that lasts %s is too short for certificates of %s: want three times that",
			o.CAValidity, o.Validity)
	}
	return o, nil
}

// hosts are the DNS names that the certificate is for, the Service's first.
func (o *Options) hosts() []string {
	return append([]string{o.Service + "." + o.Namespace + ".svc"}, o.Names...)
}
