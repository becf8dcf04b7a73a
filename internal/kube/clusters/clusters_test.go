package clusters_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/rest"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/apitest"
	"github.com/weir-lb/weir/internal/kube/clusters"
	"github.com/weir-lb/weir/internal/kube/feed"
	"github.com/weir-lb/weir/internal/patience"
)

// sink keeps what a follower tells.
type sink struct {
	mu       sync.Mutex
	imports  []string
	clusters []feed.Cluster
}

func (s *sink) SetImports(list []*corev1.Service) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.imports = nil
	for _, svc := range list {
		s.imports = append(s.imports, fmt.Sprintf("%s/%s %v %d", svc.Namespace, svc.Name, svc.Spec.ClusterIPs, svc.Spec.Ports[0].Port))
	}
}

func (s *sink) SetClusters(list []feed.Cluster) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clusters = list
}

// text tells the clusters: name, region, whether stale, and the endpoints of shop/web.
func (s *sink) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var lines []string
	for _, c := range s.clusters {
		line := c.Name + " " + c.Region
		if c.Stale {
			line += " stale"
		}
		lines = append(lines, line+": "+topology.FormatEndpoints(c.Services[topology.ServiceName{Namespace: "shop", Name: "web"}]))
	}
	return strings.Join(lines, "\n")
}

// ownCluster serves Secrets that never change, and a ServiceImport of the older version alone.
func ownCluster(t *testing.T, secrets ...corev1.Secret) *rest.Config {
	t.Helper()
	lists := map[string]any{
		"/api/v1/namespaces/weir-clusters/secrets": corev1.SecretList{Items: secrets},
		"/apis/multicluster.x-k8s.io/v1alpha1/serviceimports": json.RawMessage(`{"apiVersion":"multicluster.x-k8s.io/v1alpha1",
			"kind":"ServiceImportList","items":[{"apiVersion":"multicluster.x-k8s.io/v1alpha1","kind":"ServiceImport",
			"metadata":{"name":"cart","namespace":"shop"},
			"spec":{"type":"ClusterSetIP","ips":["10.96.0.9"],"ports":[{"port":80}]}}]}`),
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		list, ok := lists[r.URL.Path]
		switch {
		case !ok:
			http.NotFound(w, r)
		case r.URL.Query().Get("watch") != "":
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		default:
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(list)
		}
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
}

// kubeconfig leads to server by way of a TLS proxy, with a line more for its cluster and its user.
func kubeconfig(t *testing.T, server, cluster, user string) string {
	t.Helper()
	to, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, FlushInterval: -1, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	front := httptest.NewTLSServer(proxy)
	t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
	})
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw})
	return config(front.URL, "certificate-authority-data: "+base64.StdEncoding.EncodeToString(ca)+cluster, user)
}

func config(server, cluster, user string) string {
	return `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: west, user: reader}}],
clusters: [{name: west, cluster: {server: "` + server + `", ` + cluster + `}}], users: [{name: reader, user: {` + user + `}}]}`
}

func secret(cluster, kubeconfig string) corev1.Secret {
	s := corev1.Secret{Data: map[string][]byte{api.SecretKubeconfig: []byte(kubeconfig)}}
	s.Name, s.Namespace, s.Labels = "secret-"+cluster, "weir-clusters", map[string]string{api.LabelCluster: cluster}
	s.Annotations = map[string]string{api.LabelRegion: "eu"}
	return s
}

func slice(name string, labels map[string]string, addresses ...string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}
	s.Namespace, s.Name, s.Labels = "shop", name, labels
	s.Ports = []discoveryv1.EndpointPort{{Name: new(""), Port: new(int32(80)), Protocol: new(corev1.ProtocolTCP)}}
	for _, a := range addresses {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{a}, Zone: new("a")})
	}
	return s
}

func follow(t *testing.T, own *rest.Config) *sink {
	t.Helper()
	s := new(sink)
	f, err := clusters.New(own, s, clusters.Options{Secrets: "weir-clusters"})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- f.Run(t.Context()) }()
	t.Cleanup(func() {
		if err := <-done; err != nil {
			t.Errorf("the follower ended with %v", err)
		}
	})
	return s
}

func (s *sink) await(t *testing.T, want string) {
	t.Helper()
	patience.Within(t, 30*time.Second, "the clusters are "+want, func() bool { return s.text() == want })
}

func TestAFurtherClusterIsFollowedAndKeptWhileItIsLost(t *testing.T) {
	t.Parallel()
	west := apitest.New(t)
	global := map[string]string{api.LabelGlobal: "true", api.LabelServiceName: "web"}
	west.Set(slice("web-1", global, "10.1.0.1"),
		slice("web-2", map[string]string{api.LabelServiceName: "web"}, "10.1.0.2"), // not global
		slice("web-3", map[string]string{api.LabelGlobal: "true", api.LabelServiceName: "web", api.LabelSourceCluster: "east"}, "10.1.0.3"),
		slice("web-4", global, "127.0.0.1", "169.254.169.254"))
	s := follow(t, ownCluster(t, secret("west", kubeconfig(t, west.URL(), "", ""))))
	s.await(t, "west eu: 10.1.0.1=a:1?{cluster=west}")
	west.Go()
	s.await(t, "west eu stale: 10.1.0.1=a:1?{cluster=west}")
	west.Return()
	s.await(t, "west eu: 10.1.0.1=a:1?{cluster=west}")
	west.Set(slice("web-1", global, "10.1.0.1", "10.1.0.2"))
	s.await(t, "west eu: 10.1.0.1=a:2?{cluster=west}")
	west.Drop(slice("web-1", global))
	s.await(t, "west eu: ")
}

func TestAClusterCannotNameEverMoreZonesAndEndpoints(t *testing.T) {
	t.Parallel()
	west := apitest.New(t)
	for n := range 11 {
		many := slice(fmt.Sprint("web-", n), map[string]string{api.LabelGlobal: "true", api.LabelServiceName: "web"})
		for i := range 100 {
			many.Endpoints = append(many.Endpoints, discoveryv1.Endpoint{
				Addresses: []string{fmt.Sprintf("10.1.%d.%d", n, i)}, Zone: new(fmt.Sprintf("z-%d-%d", n, i)),
			})
		}
		west.Set(many)
	}
	s := follow(t, ownCluster(t, secret("west", kubeconfig(t, west.URL(), "", ""))))
	var zones map[topology.Zone]bool
	patience.Until(t, "the cluster is followed", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		zones = make(map[topology.Zone]bool)
		endpoints := 0
		for _, c := range s.clusters {
			for _, list := range c.Services {
				endpoints += len(list)
				for i := range list {
					zones[list[i].Zone] = true
				}
			}
		}
		return endpoints == 1000
	})
	delete(zones, "")
	if len(zones) > 64 {
		t.Errorf("%d zones are known", len(zones))
	}
}

func TestImportsOfTheOlderVersionAreFoundToo(t *testing.T) {
	t.Parallel()
	s := follow(t, ownCluster(t))
	patience.Within(t, 30*time.Second, "the import is there", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return strings.Join(s.imports, ",") == "shop/cart.clusterset [10.96.0.9] 80"
	})
}

func TestAHostileClusterIsBounded(t *testing.T) {
	t.Parallel()
	endless := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("limit") == "" {
			return
		}
		_, _ = w.Write([]byte(`{"kind":"EndpointSliceList","apiVersion":"discovery.k8s.io/v1","metadata":{"resourceVersion":"`))
		for r.Context().Err() == nil {
			if _, err := w.Write([]byte(strings.Repeat("1", 1<<16))); err != nil {
				return
			}
		}
	}
	var asked sync.Map
	victim := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked.Store(r.URL.Path, true) }))
	defer victim.Close()
	for name, answer := range map[string]http.HandlerFunc{
		"endless": endless,
		"elsewhere": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, victim.URL+"/admin", http.StatusFound)
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(answer)
			t.Cleanup(server.Close)
			config, err := clusters.ParseKubeconfig([]byte(kubeconfig(t, server.URL, "", "token: secret")))
			if err != nil {
				t.Fatal(err)
			}
			client, err := rest.HTTPClientFor(config)
			if err != nil {
				t.Fatal(err)
			}
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+"/apis?limit=1", nil)
			if err != nil {
				t.Fatal(err)
			}
			response, err := client.Do(request)
			if err == nil {
				err = json.NewDecoder(response.Body).Decode(new(any))
				_ = response.Body.Close()
			}
			if err == nil || !strings.Contains(err.Error(), "exceeds") && !strings.Contains(err.Error(), "redirects") {
				t.Errorf("the answer gives %v", err)
			}
		})
	}
	asked.Range(func(path, _ any) bool {
		t.Errorf("%v was asked for by a redirection", path)
		return true
	})
}

func TestAKubeconfigThatRunsAProgramOrReadsAFileIsRefused(t *testing.T) {
	const server = "https://192.0.2.1"
	for name, c := range map[string]struct{ server, cluster, user, want string }{
		"exec":                {server, "", "exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/sh}", "exec runs a program"},
		"auth provider":       {server, "", "auth-provider: {name: gcp}", "auth-provider"},
		"token file":          {server, "", "tokenFile: /var/run/secrets/token", "names a file"},
		"certificate file":    {server, "", "client-certificate: /etc/a.pem", "names a file"},
		"key file":            {server, "", "client-key: /etc/a.key", "names a file"},
		"authority file":      {server, "certificate-authority: /etc/ca.pem", "", "names a file"},
		"without a proof":     {server, "insecure-skip-tls-verify: true", "", "lets anybody answer"},
		"proxy":               {server, "proxy-url: http://10.0.0.1", "", "proxy-url"},
		"not encrypted":       {"http://192.0.2.1", "", "", "want https://"},
		"no address at all":   {"", "", "", "want https://"},
		"nothing to complain": {server, "", "token: abc", ""},
	} {
		_, err := clusters.ParseKubeconfig([]byte(config(c.server, c.cluster, c.user)))
		if c.want == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %q", name, err, c.want)
		}
	}
	if _, err := clusters.ParseKubeconfig(nil); err == nil {
		t.Error("no kubeconfig is taken for one")
	}
}
