package clusters

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/convert"
	"github.com/weir-lb/weir/internal/kube/feed"
)

// remote is a further cluster.
type remote struct {
	feed.Cluster // under the Follower's lock once it is followed

	client client.WithWatch
	server string
	secret *corev1.Secret
	end    context.CancelFunc
	isTold bool                   // it was heard of, be it that its API server does not answer
	zones  map[topology.Zone]bool // that it ever named; one goroutine
}

// newRemote reads the Secret that names a cluster.
func newRemote(s *corev1.Secret) (*remote, error) {
	config, err := ParseKubeconfig(s.Data[api.SecretKubeconfig])
	if err != nil {
		return nil, err
	}
	r := &remote{server: config.Host, secret: s, zones: make(map[topology.Zone]bool)}
	if r.client, err = newClient(config); err != nil {
		return nil, fmt.Errorf("use the kubeconfig: %w", err)
	}
	r.Name, r.Region = s.Labels[api.LabelCluster], s.Annotations[api.LabelRegion]
	if r.Name == "" {
		return nil, fmt.Errorf("the label %s is empty: want the name of the cluster", api.LabelCluster)
	}
	if r.Gateway, err = list(s, api.SecretGateway, parseGateway); err != nil {
		return nil, err
	}
	if r.Networks, err = list(s, api.SecretNetworks, netip.ParsePrefix); err != nil {
		return nil, err
	}
	return r, nil
}

// list reads values that are separated by commas.
func list[T any](s *corev1.Secret, key string, parse func(string) (T, error)) ([]T, error) {
	var values []T
	for text := range strings.SplitSeq(string(s.Data[key]), ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		value, err := parse(text)
		if err != nil {
			return nil, fmt.Errorf("key %s: %w", key, err)
		}
		values = append(values, value)
	}
	return values, nil
}

func parseGateway(text string) (netip.Addr, error) {
	addr, err := netip.ParseAddr(text)
	if err == nil && (addr.IsUnspecified() || addr.IsMulticast() || addr.IsLoopback() || addr.IsLinkLocalUnicast()) {
		err = fmt.Errorf("%s is no address of another machine", addr)
	}
	return addr.Unmap(), err
}

// isSame tells whether two Secrets ask for the same.
func (r *remote) isSame(o *remote) bool {
	same := func(key string) bool { return bytes.Equal(r.secret.Data[key], o.secret.Data[key]) }
	return r.Region == o.Region && same(api.SecretKubeconfig) && same(api.SecretGateway) && same(api.SecretNetworks)
}

// source makes what follows the cluster's global Services.
func (r *remote) source(f *Follower) *resource {
	subject := "cluster " + r.Name
	return &resource{
		client: r.client, most: maxSlices,
		list:  func() client.ObjectList { return &discoveryv1.EndpointSliceList{} },
		where: []client.ListOption{client.MatchingLabels{api.LabelGlobal: "true"}},
		told: func(objects map[string]client.Object, err error) {
			services, isCut := r.services(objects)
			if isCut && err == nil {
				err = errTooMany
			}
			f.say(subject, err)
			f.mu.Lock()
			r.Stale = err != nil && !errors.Is(err, errTooMany)
			r.Services, r.isTold = services, true
			f.mu.Unlock()
			f.publish()
		},
	}
}

// services converts what a cluster told. A Service with more endpoints than are followed has the first ones, by address.
func (r *remote) services(objects map[string]client.Object) (found map[topology.ServiceName][]topology.Endpoint, isCut bool) {
	grouped := make(map[topology.ServiceName][]*discoveryv1.EndpointSlice)
	for _, o := range objects {
		s, ok := o.(*discoveryv1.EndpointSlice)
		// What is imported there is of yet another cluster. The labels were asked for, and are checked all the same.
		if !ok || s.Labels[api.LabelGlobal] != "true" || s.Labels[api.LabelSourceCluster] != "" || s.Labels[api.LabelImportedName] != "" {
			continue
		}
		name := topology.ServiceName{Namespace: s.Namespace, Name: s.Labels[api.LabelServiceName]}
		if name.Name == "" {
			continue
		}
		own := *s
		own.Labels = map[string]string{api.LabelServiceName: name.Name, api.LabelSourceCluster: r.Name}
		grouped[name] = append(grouped[name], &own)
	}
	found = make(map[topology.ServiceName][]topology.Endpoint, len(grouped))
	for name, list := range grouped {
		endpoints, _ := convert.Slices(list, nil)
		isCut = r.boundZones(endpoints) || isCut
		svc := &topology.Service{ServiceName: name, Endpoints: endpoints}
		topology.NewSnapshot(nil, []*topology.Service{svc}, topology.Costs{}) // sorts
		isCut = isCut || len(endpoints) > maxEndpoints
		found[name] = slices.Clip(svc.Endpoints[:min(len(svc.Endpoints), maxEndpoints)])
	}
	return found, isCut
}

// boundZones takes the zones from endpoints whose zone is one too many: zones are labels of metrics, of which a cluster that names
// others again and again would make ever more.
func (r *remote) boundZones(endpoints []topology.Endpoint) (isCut bool) {
	for i := range endpoints {
		e := &endpoints[i]
		switch {
		case e.Zone == "" || r.zones[e.Zone]:
		case len(r.zones) < maxZones:
			r.zones[e.Zone] = true
		default:
			e.Zone, isCut = "", true
		}
	}
	return isCut
}
