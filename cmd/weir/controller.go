package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/access"
	"github.com/weir-lb/weir/internal/kube/control"
	kubefeed "github.com/weir-lb/weir/internal/kube/feed"
	"github.com/weir-lb/weir/internal/kube/webhook"
	"github.com/weir-lb/weir/internal/ops"
)

const controllerLong = `Plan the services of a cluster and write the hints of the plan to their EndpointSlices, which kube-proxy and weir's
agents follow. With --manage=weir these are the services that carry the label weir.dev/distribution. Of several replicas
one writes; all answer the webhook, which puts the hints on slices as others write them.

It writes hints, the annotation weir.dev/hints on the slices that have them, the conditions weir.dev/* of Services, the
status of LoadBalancingPolicies, and events.

--cleanup takes all of that back but the events, and ends: with status 0 if nothing is left. It first takes the webhooks
out of the configuration --webhook-configuration, because they would put the hints back (deploy weir again to have them
back), then waits up to a minute for the controllers to stop, and goes through the cluster until it finds nothing. It
deletes nothing.`

const controllerExample = `  # See what would be written, and write nothing
  weir controller --dry-run

  # Control the cluster of a kubeconfig from this machine, without the webhook
  weir controller --context staging --webhook=false --leader-elect=false

  # Write the hints of all services, those that ask for nothing in mode PreferSameZone
  weir controller --manage=all --default-distribution=PreferSameZone

  # See what weir has written, and take it back
  weir controller --cleanup --dry-run
  weir controller --cleanup`

// Where a controller listens by default. The admin pages are on loopback, because they need no credentials, and on the port
// next to the agent's.
const (
	defaultControllerAdmin = "127.0.0.1:9903"
	defaultHealth          = ":8081"
)

// controllerFlags are the command's flags as typed.
type controllerFlags struct {
	cluster    clusterFlags
	log        logFlags
	gates      gateFlag
	reading    readingFlags
	workers    int
	election   control.LeaderElection
	hasWebhook bool
	webhook    webhook.Options
	metrics    string
	health     string
	admin      string
	profiling  bool
	policies   bool
	cleanup    bool
	dryRun     bool
	output     string
}

// controllerCommand makes weir controller.
func controllerCommand() *cobra.Command {
	var f controllerFlags
	c := &cobra.Command{
		Use:     "controller",
		Short:   "Write the hints of a cluster's services",
		Long:    controllerLong,
		Example: controllerExample,
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	for _, g := range []flagGroup{f.cluster.group(), f.services(), f.replicas(), f.webhooks(), f.operation()} {
		g.addTo(c)
	}
	return c
}

func (f *controllerFlags) services() flagGroup {
	g := group("Services")
	g.StringVar(&f.reading.manage, manageFlag, manageWeir,
		"which services to write hints for: weir (those with the label weir.dev/distribution) or all (the native annotations and "+
			"spec.trafficDistribution count, too)")
	g.StringVar(&f.reading.defaultMode, defaultFlag, string(topology.ModeBalanced),
		"with --manage=all, distribution mode of services that ask for none: "+modeNames())
	f.reading.addCosts(g)
	g.Var(&f.gates, "feature-gates", gatesUsage)
	g.BoolVar(&f.policies, "policies", true,
		"keep the maxSkew of LoadBalancingPolicies in hints, and write what becomes of policies to their status, and which are "+
			"attached to a Service to that")
	return g
}

func (f *controllerFlags) replicas() flagGroup {
	g := group("Replicas")
	e := &f.election
	g.BoolVar(&e.On, "leader-elect", true, "let only one replica at a time write; without it there must be only one")
	g.DurationVar(&e.LeaseDuration, "leader-elect-lease-duration", control.DefaultLeaseDuration,
		"how long a leader that went silent still counts")
	g.DurationVar(&e.RenewDeadline, "leader-elect-renew-deadline", control.DefaultRenewDeadline,
		"how long a leader tries to renew its lease before it stops writing")
	g.DurationVar(&e.RetryPeriod, "leader-elect-retry-period", control.DefaultRetryPeriod, "time between tries to get or renew the lease")
	g.StringVar(&e.Namespace, "leader-elect-resource-namespace", "",
		"namespace of the Lease (default: $POD_NAMESPACE, else "+control.DefaultNamespace+")")
	g.StringVar(&e.Name, "leader-elect-resource-name", control.DefaultLease, "name of the Lease")
	g.IntVar(&f.workers, "concurrent-service-syncs", control.DefaultWorkers,
		"services reconciled in parallel; slices are written for one after the other")
	return g
}

func (f *controllerFlags) webhooks() flagGroup {
	g := group("Webhook")
	g.BoolVar(&f.hasWebhook, "webhook", true, "serve the webhook that puts hints on EndpointSlices as others write them")
	g.StringVar(&f.webhook.Address, "webhook-bind-address", webhook.DefaultAddress, "where the webhook is served, over TLS")
	g.StringVar(&f.webhook.CertDir, "webhook-cert-dir", "",
		"folder with tls.crt and tls.key, which another program renews (default: weir makes its own, in the Secret "+
			webhook.DefaultSecret+")")
	g.StringVar(&f.webhook.Configuration, "webhook-configuration", webhook.DefaultConfiguration,
		"MutatingWebhookConfiguration that is given weir's certificate authority, and that --cleanup disarms")
	return g
}

func (f *controllerFlags) operation() flagGroup {
	g := group("Operation")
	g.StringVar(&f.metrics, "metrics-bind-address", "",
		"where /metrics is, over TLS, for clients that the API server lets read it (:8443); empty: nowhere")
	g.StringVar(&f.health, "health-probe-bind-address", defaultHealth, "where /readyz and /livez are; empty: nowhere")
	g.StringVar(&f.admin, "admin-bind-address", defaultControllerAdmin,
		"where /services, /plans, /metrics, /readyz and /livez are, without authentication; empty: nowhere")
	g.BoolVar(&f.profiling, "profiling", false, "serve /debug/pprof there, too")
	f.log.addTo(g)
	g.BoolVar(&f.cleanup, "cleanup", false, "take everything back that weir wrote to the cluster, and end; stop the controllers first")
	g.BoolVar(&f.dryRun, "dry-run", false, "print what would be written, or with --cleanup taken back; write nothing, and end")
	g.StringVarP(&f.output, "output", "o", "table", "of --dry-run: table, json or yaml")
	return g
}

// run does what is asked for.
func (f *controllerFlags) run(c *cobra.Command) error {
	options, err := f.resolve()
	if err != nil {
		return err
	}
	logger, err := f.log.logger(c.ErrOrStderr())
	if err != nil {
		return err
	}
	c.SilenceUsage = true
	config, err := f.cluster.config()
	if err != nil {
		return err
	}
	logClients(logger)
	options.Logger = logger
	switch {
	case f.cleanup:
		return f.clean(c, config, options)
	case f.dryRun:
		options.Feed.Logger = logger
		return f.preview(c, config, options)
	}
	logger.Info("starting", "version", ops.ReadBuild().Version, slog.Group("config", settings(c.Flags())...))
	return f.control(c.Context(), config, options)
}

// control constructs the parts and runs them. The servers outlive the controller.
func (f *controllerFlags) control(ctx context.Context, config *rest.Config, o control.Options) error {
	registry := ops.NewRegistry(ops.ReadBuild())
	o.Registerer = registry
	controller, err := control.New(config, o)
	if err != nil {
		return err
	}
	secure, err := f.secureMetrics(config, o.Logger)
	if err != nil {
		return err
	}
	secure.Gatherer = registry
	var parts []ops.Part
	for _, s := range []struct {
		name, address string
		options       ops.AdminOptions
	}{
		{"admin", f.admin, ops.AdminOptions{
			Gatherer: registry, Ready: []ops.Check{{Name: "plans", Probe: controller.Planned}},
			Pprof: f.profiling, Pages: ops.JSONPages(controllerPages(controller)), Logger: o.Logger,
		}},
		{"metrics", f.metrics, secure},
		{"health", f.health, ops.AdminOptions{Ready: controller.Ready(), Logger: o.Logger}},
	} {
		if s.address == "" {
			continue
		}
		server, err := ops.ListenAdmin(ctx, s.address, s.options)
		if err != nil {
			return err
		}
		o.Logger.Info("listening", "server", s.name, "address", server.Addr().String())
		parts = append(parts, ops.Part{Name: s.name, Run: server.Run})
	}
	return ops.Run(ctx, append(parts, ops.Part{Name: "controller", Run: controller.Run})...)
}

// secureMetrics serve metrics as Kubernetes' own components do: over TLS, with a certificate that is trusted nowhere, to
// clients that the API server knows and lets read them.
func (f *controllerFlags) secureMetrics(config *rest.Config, logger *slog.Logger) (ops.AdminOptions, error) {
	o := ops.AdminOptions{Logger: logger}
	if f.metrics == "" {
		return o, nil
	}
	filter, err := access.NewFilter(config, logger)
	if err != nil {
		return o, fmt.Errorf("prepare to review the readers of metrics: %w", err)
	}
	cert, key, err := certutil.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return o, fmt.Errorf("make a certificate for metrics: %w", err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return o, fmt.Errorf("make a certificate for metrics: %w", err)
	}
	o.Filter, o.TLS = filter, &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	return o, nil
}

// resolve checks the flags and makes the controller's options of them.
func (f *controllerFlags) resolve() (control.Options, error) {
	o := control.Options{LeaderElection: f.election, Workers: f.workers, Policies: f.policies}
	var err error
	if o.Feed, err = f.feed(); err != nil {
		return o, err
	}
	namespace := os.Getenv("POD_NAMESPACE")
	o.LeaderElection.Identity, _ = os.Hostname() // for readers of the Lease; without it the name is still unique
	o.LeaderElection.Namespace = cmp.Or(o.LeaderElection.Namespace, namespace)
	if f.hasWebhook {
		w := f.webhook
		w.Namespace = namespace
		o.Webhook = &w
	}
	if err := f.election.Validate(); err != nil {
		return o, &usageError{fmt.Errorf("--leader-elect-*: %w", err)}
	}
	if f.workers < 1 {
		return o, &usageError{fmt.Errorf("--concurrent-service-syncs=%d: want at least 1", f.workers)}
	}
	switch f.output {
	case "table", "json", "yaml":
	default:
		return o, &usageError{fmt.Errorf("--output=%s: want table, json or yaml", f.output)}
	}
	if f.cleanup && f.output != "table" {
		return o, &usageError{errors.New("--cleanup prints lines: leave --output out")}
	}
	return o, nil
}

// feed says what to watch and how it is read.
func (f *controllerFlags) feed() (kubefeed.Options, error) {
	read, err := f.reading.options()
	o := kubefeed.Options{Convert: read.Convert, Costs: read.Costs}
	o.Convert.Strategies, o.Convert.Gates = overflow.Names(), f.gates.closed()
	return o, err
}
