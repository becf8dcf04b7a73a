package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/term"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // the ways to log in that a kubeconfig may name
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/convert"
	kubefeed "github.com/weir-lb/weir/internal/kube/feed"
	"github.com/weir-lb/weir/internal/kube/policyset"
	"github.com/weir-lb/weir/internal/ops"
)

// kubectlFlags say which cluster is read and as which user, as kubectl's flags of the same names do.
type kubectlFlags struct {
	kubeconfig string
	overrides  clientcmd.ConfigOverrides
}

func (f *kubectlFlags) group() flagGroup {
	g := group("Cluster")
	g.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig file (default: $KUBECONFIG, else ~/.kube/config, else the pod's own account)")
	names := clientcmd.RecommendedConfigOverrideFlags("")
	names.ClusterOverrideFlags.APIServer.ShortName = "s"
	names.AuthOverrideFlags.Username.LongName, names.AuthOverrideFlags.Password.LongName = "", "" // no API server takes them any more
	clientcmd.BindOverrideFlags(&f.overrides, g.FlagSet, names)
	for name, text := range map[string]string{
		"namespace":                "namespace of the service, or of the services to list (default: the context's)",
		"context":                  "context of the kubeconfig to use",
		"cluster":                  "cluster of the kubeconfig to use",
		"user":                     "user of the kubeconfig to use",
		"server":                   "address and port of the API server",
		"as":                       "user to impersonate",
		"as-uid":                   "UID to impersonate",
		"as-group":                 "group to impersonate; may be repeated",
		"token":                    "bearer token for the API server",
		"client-certificate":       "file with a client certificate",
		"client-key":               "file with the key of the client certificate",
		"certificate-authority":    "file with the certificate of the API server's authority",
		"insecure-skip-tls-verify": "do not check the API server's certificate",
		"tls-server-name":          "name to check the API server's certificate for (default: the name it is called by)",
		"proxy-url":                "proxy on the way to the API server",
		"disable-compression":      "have the API server compress nothing",
		"request-timeout":          "how long one request to the API server may take, as in 10s; 0 is no limit",
	} {
		g.Lookup(name).Usage = text
	}
	return g
}

// config finds the kubeconfig, and the namespace that the user works in.
func (f *kubectlFlags) config() (config *rest.Config, namespace string, err error) {
	config, namespace, err = readKubeconfig(f.kubeconfig, &f.overrides)
	switch {
	case errors.Is(err, errNoKubeconfig):
		return nil, "", &usageError{errors.New("no cluster and no manifests: there is no kubeconfig and no --filename (-f)")}
	case err != nil:
		return nil, "", err
	}
	config.QPS = -1 // three lists at once, page by page: the API server's own fairness is limit enough
	config.UserAgent = userAgent(ops.ReadBuild())
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	config.ContentType = runtime.ContentTypeProtobuf
	return config, namespace, nil
}

// clusterReader reads the objects that explain needs from an API server, once: of what policies refer to just what counts
// for one answer, as reading every pod of a cluster to explain one service would be a burden.
type clusterReader struct {
	core      client.Reader // of nodes, services and slices
	policies  client.Reader // of policies and what they refer to
	kinds     discovery.DiscoveryInterface
	client    string       // the pod whose requests are asked about, as [NAMESPACE/]NAME; empty: none
	namespace string       // that the user works in
	read      atomic.Int64 // objects so far
}

// newClusterReader makes a reader. It asks the API server nothing.
func newClusterReader(config *rest.Config) (*clusterReader, error) {
	core, errCore := client.New(config, client.Options{Mapper: kubefeed.Kinds()})
	policies, errPolicies := policyset.NewReader(config)
	resources, errResources := discovery.NewDiscoveryClientForConfig(config)
	if err := errors.Join(errCore, errPolicies, errResources); err != nil {
		return nil, fmt.Errorf("make a client of the API server %s: %w", config.Host, err)
	}
	return &clusterReader{core: core, policies: policies, kinds: resources}, nil
}

// list reads the services of a namespace, or of all when it is empty, and all nodes.
func (r *clusterReader) list(ctx context.Context, namespace string) (*convert.Objects, error) {
	objects := new(convert.Objects)
	return objects, together(
		func() (err error) { objects.Nodes, err = r.nodes(ctx); return err },
		func() (err error) { objects.Services, err = r.services(ctx, namespace); return err },
		func() (err error) { objects.Slices, err = r.slices(ctx, namespace, nil); return err },
	)
}

// one reads one service, and all nodes.
func (r *clusterReader) one(ctx context.Context, name topology.ServiceName) (*convert.Objects, error) {
	objects := new(convert.Objects)
	return objects, together(
		func() (err error) { objects.Nodes, err = r.nodes(ctx); return err },
		func() error {
			svc := new(corev1.Service)
			err := r.core.Get(ctx, client.ObjectKey(name), svc)
			if apierrors.IsNotFound(err) {
				return r.unknown(ctx, name)
			}
			objects.Services = []*corev1.Service{svc}
			return request{"get", "services", name.Namespace}.wrap(err)
		},
		func() (err error) {
			objects.Slices, err = r.slices(ctx, name.Namespace, client.MatchingLabels{api.LabelServiceName: name.Name})
			return err
		},
	)
}

// together runs requests at once and waits for all, so that a user hears of every permission that is missing.
func together(requests ...func() error) error {
	var group errgroup.Group
	errs := make([]error, len(requests))
	for i, run := range requests {
		group.Go(func() error { errs[i] = run(); return nil })
	}
	_ = group.Wait()
	return errors.Join(errs...)
}

// unknown names the services that were most likely meant, as far as the user may list them.
func (r *clusterReader) unknown(ctx context.Context, name topology.ServiceName) error {
	list, err := r.services(ctx, name.Namespace)
	if err != nil || len(list) == 0 {
		return fmt.Errorf("no service %s in the cluster", name)
	}
	names := make([]string, 0, len(list))
	for _, s := range list {
		names = append(names, nameOf(s).String())
	}
	return unknownService(name, names)
}

func (r *clusterReader) nodes(ctx context.Context) ([]*corev1.Node, error) {
	return readAll(ctx, r, query{from: r.core, request: request{"list", "nodes", ""}}, func(l *corev1.NodeList) []corev1.Node {
		for i := range l.Items {
			l.Items[i].Status.Images, l.Items[i].ManagedFields = nil, nil // the bulk of a node
		}
		return l.Items
	})
}

func (r *clusterReader) services(ctx context.Context, namespace string) ([]*corev1.Service, error) {
	q := query{from: r.core, request: request{"list", "services", namespace}}
	return readAll(ctx, r, q, func(l *corev1.ServiceList) []corev1.Service { return l.Items })
}

func (r *clusterReader) slices(ctx context.Context, namespace string, selector client.MatchingLabels) ([]*discoveryv1.EndpointSlice, error) {
	q := query{from: r.core, request: request{"list", "endpointslices.discovery.k8s.io", namespace}, selector: selector}
	return readAll(ctx, r, q, func(l *discoveryv1.EndpointSliceList) []discoveryv1.EndpointSlice { return l.Items })
}

// query is what readAll reads.
type query struct {
	request

	from     client.Reader
	selector client.MatchingLabels
}

// pageSize is kubectl's: a page of that many nodes has a few MB.
const pageSize = 500

// readAll reads a list page by page. One that takes longer than the API server keeps its position is begun again, whole.
func readAll[L, T any, P interface {
	*L
	client.ObjectList
}](ctx context.Context, r *clusterReader, q query, items func(*L) []T,
) ([]*T, error) {
	var all []*T
	next := ""
	for {
		list := P(new(L))
		err := q.from.List(ctx, list, client.InNamespace(q.namespace), q.selector, client.Limit(pageSize), client.Continue(next))
		if apierrors.IsResourceExpired(err) && next != "" {
			all, next = nil, ""
			continue
		}
		if err != nil {
			return nil, q.wrap(err)
		}
		page := items((*L)(list))
		for i := range page {
			all = append(all, &page[i])
		}
		r.read.Add(int64(len(page)))
		if next = list.GetContinue(); next == "" || ctx.Err() != nil {
			return all, ctx.Err()
		}
	}
}

// request names what the API server is asked for.
type request struct{ verb, resource, namespace string }

// wrap adds the request to an error of the API server. One about a missing permission says how to check it and what to ask for.
func (q request) wrap(err error) error {
	if err == nil {
		return nil
	}
	where, check := "", ""
	switch {
	case q.namespace != "":
		where, check = " in namespace "+q.namespace, " -n "+q.namespace
	case q.resource != "nodes":
		where, check = " in all namespaces", " -A"
	}
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("you need the permission to %s %s%s (check: kubectl auth can-i %s %s%s): %w",
			q.verb, q.resource, where, q.verb, q.resource, check, err)
	}
	return fmt.Errorf("%s %s%s: %w", q.verb, q.resource, where, err)
}

// progressAfter is how long a person looks at nothing before being told that something happens.
const progressAfter = time.Second

// showProgress tells on a terminal how much was read, until stop is called.
func (r *clusterReader) showProgress(w io.Writer) (stop func()) {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) { //nolint:gosec // a file descriptor.
		return func() {}
	}
	return r.progress(w, time.NewTicker(progressAfter).C)
}

// progress writes a line at each tick, over the line before, and takes it away at the end.
func (r *clusterReader) progress(w io.Writer, ticks <-chan time.Time) (stop func()) {
	const clear = "\r\x1b[K"
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		shown := false
		for {
			select {
			case <-ticks:
				_, _ = fmt.Fprintf(w, clear+"reading the cluster: %d objects", r.read.Load())
				shown = true
			case <-end:
				if shown {
					_, _ = io.WriteString(w, clear)
				}
				return
			}
		}
	}()
	return func() {
		close(end)
		<-ended
	}
}
