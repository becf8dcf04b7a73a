package clusters

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/internal/kube/convert"
	"github.com/weir-lb/weir/internal/kube/feed"
)

// The bounds of what is followed.
const (
	maxClusters  = 16   // further clusters: each is a connection and a watch of every agent
	maxSecrets   = 64   // that are looked at for them
	maxImports   = 5000 // ServiceImports
	maxSlices    = 2000 // EndpointSlices of one cluster
	maxEndpoints = 1000 // of one Service in one cluster
	maxZones     = 64   // that one cluster names while it is followed; others count as not known
)

// Sink takes what other clusters serve: a feed.Feed.
type Sink interface {
	// SetImports replaces all ServiceImports, as convert.ServiceImport.AsService gives them.
	SetImports(imports []*corev1.Service)
	// SetClusters replaces all further clusters, sorted by name.
	SetClusters(clusters []feed.Cluster)
}

// Options say what a Follower follows. The zero value follows ServiceImports.
type Options struct {
	// Secrets is the namespace of the Secrets that name further clusters; empty: none are followed.
	Secrets string
	// Logger is told of clusters and kinds that come, go or are refused; nil: none.
	Logger *slog.Logger
	// Registerer takes the metrics; nil: they are not exported.
	Registerer prometheus.Registerer
}

// Follower follows what other clusters serve. Run may be called once.
type Follower struct {
	options Options
	sink    Sink
	client  client.WithWatch // of this cluster

	stale, endpoints *prometheus.GaugeVec

	mu       sync.Mutex
	clusters map[string]*remote // by name
	told     map[string]string  // what was logged last of each subject; missing: all is well
}

// New makes a follower of the cluster that config leads to. It asks for nothing before Run.
//
// Errors: a config that no client can be made of; metrics that are registered already.
func New(config *rest.Config, sink Sink, o Options) (*Follower, error) {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	own, err := newClient(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of the API server %s: %w", config.Host, err)
	}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"cluster"})
	}
	f := &Follower{
		options: o, sink: sink, client: own, clusters: make(map[string]*remote), told: make(map[string]string),
		stale:     gauge("weir_cluster_stale", "1 while the API server of a further cluster does not answer and its last state is used."),
		endpoints: gauge("weir_cluster_endpoints", "Endpoints of global Services in a further cluster."),
	}
	if o.Registerer != nil {
		if err := errors.Join(o.Registerer.Register(f.stale), o.Registerer.Register(f.endpoints)); err != nil {
			return nil, fmt.Errorf("register the metrics of clusters: %w", err)
		}
	}
	return f, nil
}

// The versions of ServiceImport, the newer first.
func importVersions() []schema.GroupVersionKind {
	group := schema.GroupVersion{Group: "multicluster.x-k8s.io"}
	return []schema.GroupVersionKind{
		{Group: group.Group, Version: "v1beta1", Kind: convert.KindServiceImport},
		{Group: group.Group, Version: "v1alpha1", Kind: convert.KindServiceImport},
	}
}

// newClient makes a client of the kinds that are followed. It asks nothing.
func newClient(config *rest.Config) (client.WithWatch, error) {
	mapper, scheme := meta.NewDefaultRESTMapper(nil), runtime.NewScheme()
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	mapper.Add(discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"), meta.RESTScopeNamespace)
	for _, version := range importVersions() {
		mapper.Add(version, meta.RESTScopeNamespace)
	}
	if err := errors.Join(corev1.AddToScheme(scheme), discoveryv1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	return client.NewWithWatch(config, client.Options{Mapper: mapper, Scheme: scheme})
}

// Run follows until ctx is done, and then returns nil.
func (f *Follower) Run(ctx context.Context) error {
	var group sync.WaitGroup
	versions := importVersions()
	imports := &resource{
		client: f.client, most: maxImports, told: f.imports,
		list:  func() client.ObjectList { return listOf(versions[0]) },
		older: func() client.ObjectList { return listOf(versions[1]) },
	}
	group.Go(func() { imports.run(ctx) })
	if f.options.Secrets != "" {
		secrets := &resource{
			client: f.client, most: maxSecrets,
			list:  func() client.ObjectList { return &corev1.SecretList{} },
			where: []client.ListOption{client.InNamespace(f.options.Secrets), client.HasLabels{api.LabelCluster}},
			told:  func(objects map[string]client.Object, err error) { f.secrets(ctx, &group, objects, err) },
		}
		group.Go(func() { secrets.run(ctx) })
	}
	group.Wait()
	return nil
}

func listOf(version schema.GroupVersionKind) client.ObjectList {
	list := new(unstructured.UnstructuredList)
	version.Kind += "List"
	list.SetGroupVersionKind(version)
	return list
}

// say logs what is the matter with a subject, once for as long as it stays the same; nil: all is well.
func (f *Follower) say(subject string, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	f.mu.Lock()
	before := f.told[subject]
	if f.told[subject] = text; text == "" {
		delete(f.told, subject)
	}
	f.mu.Unlock()
	switch text {
	case before:
	case "":
		f.options.Logger.Info("all is well again", "subject", subject)
	default:
		f.options.Logger.Warn("a problem with other clusters, what was known last is used", "subject", subject, "error", text)
	}
}

// imports takes the ServiceImports of this cluster. That there is no such kind is no problem.
func (f *Follower) imports(objects map[string]client.Object, err error) {
	if err != nil && !errors.Is(err, errTooMany) && !isAbsent(err) {
		f.say("ServiceImports", err)
		return
	}
	if isAbsent(err) {
		err = nil
	}
	var services []*corev1.Service
	for _, key := range slices.Sorted(maps.Keys(objects)) {
		o, ok := objects[key].(*unstructured.Unstructured)
		if !ok {
			continue
		}
		read := new(convert.ServiceImport)
		if wrong := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, read); wrong != nil {
			err = fmt.Errorf("%s: %w", key, wrong)
			continue
		}
		services = append(services, read.AsService())
	}
	f.say("ServiceImports", err)
	f.sink.SetImports(services)
}

// secrets takes the Secrets that name clusters: it begins to follow those that are new, and ends what is gone or changed.
func (f *Follower) secrets(ctx context.Context, group *sync.WaitGroup, objects map[string]client.Object, err error) {
	if err != nil && !errors.Is(err, errTooMany) {
		f.say("Secrets", err)
		return
	}
	wanted := make(map[string]*remote)
	for _, key := range slices.Sorted(maps.Keys(objects)) {
		secret, ok := objects[key].(*corev1.Secret)
		if !ok {
			continue
		}
		r, wrong := newRemote(secret)
		switch {
		case wrong != nil:
		case wanted[r.Name] != nil:
			wrong = fmt.Errorf("the cluster %s has a Secret already", r.Name)
		case len(wanted) == maxClusters:
			wrong = fmt.Errorf("%d clusters are followed at most", maxClusters)
		default:
			wanted[r.Name] = r
		}
		f.say("Secret "+key, wrong)
	}
	f.say("Secrets", err)
	f.mu.Lock()
	var begun []*remote
	for name, old := range f.clusters {
		if now := wanted[name]; now == nil || !now.isSame(old) {
			old.end()
			delete(f.clusters, name)
			f.stale.DeleteLabelValues(name)
			f.endpoints.DeleteLabelValues(name)
		}
	}
	for name, now := range wanted {
		if f.clusters[name] == nil {
			f.clusters[name] = now
			begun = append(begun, now)
		}
	}
	f.mu.Unlock()
	for _, r := range begun {
		f.options.Logger.Info("following a further cluster", "cluster", r.Name, "server", r.server)
		var remoteCtx context.Context
		remoteCtx, r.end = context.WithCancel(ctx)
		group.Go(func() { r.source(f).run(remoteCtx) })
	}
	f.publish()
}

// publish gives the clusters to the sink as they are now.
func (f *Follower) publish() {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []feed.Cluster
	for _, name := range slices.Sorted(maps.Keys(f.clusters)) {
		r := f.clusters[name]
		if !r.isTold {
			continue
		}
		stale, endpoints := 0.0, 0
		if r.Stale {
			stale = 1
		}
		for _, list := range r.Services {
			endpoints += len(list)
		}
		f.stale.WithLabelValues(name).Set(stale)
		f.endpoints.WithLabelValues(name).Set(float64(endpoints))
		all = append(all, r.Cluster)
	}
	f.sink.SetClusters(all)
}
