package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// limit is how long a test waits for something that has to happen. It is far above what a busy machine needs, so that
// only a hang meets it.
const limit = time.Minute

// member is an endpoint in the manifests.
type member struct {
	ip   string
	port uint16
	zone string
}

// fixture is a cluster of three nodes and the service shop/web, written as manifests.
type fixture struct {
	ip        string // of the service; empty: 127.78.0.1
	port      uint16 // 0: 80
	mode      string // empty: Balanced
	proxy     string // that the service is given to; empty: none
	endpoints []member
	hints     []string // for each endpoint the zone that is to use it; nil: none
}

// writeManifests writes the manifests of w into a new folder.
func writeManifests(t *testing.T, w fixture) string {
	t.Helper()
	folder := t.TempDir()
	var nodes strings.Builder
	for _, z := range []string{"a", "b", "c"} {
		fmt.Fprintf(&nodes, `---
apiVersion: v1
kind: Node
metadata:
  name: node-%[1]s
  labels: {topology.kubernetes.io/zone: zone-%[1]s, topology.kubernetes.io/region: eu}
status:
  allocatable: {cpu: "4"}
  conditions: [{type: Ready, status: "True"}]
`, z)
	}
	write(t, filepath.Join(folder, "nodes.yaml"), nodes.String())
	w.write(t, folder)
	return folder
}

// write writes the service and its endpoints, whole, so that a watcher never sees half of them.
func (w fixture) write(t *testing.T, folder string) {
	t.Helper()
	if w.ip == "" {
		w.ip = "127.78.0.1"
	}
	if w.port == 0 {
		w.port = 80
	}
	if w.mode == "" {
		w.mode = "Balanced"
	}
	labels := "weir.dev/distribution: " + w.mode
	if w.proxy != "" {
		labels += ", service.kubernetes.io/service-proxy-name: " + w.proxy
	}
	var text strings.Builder
	fmt.Fprintf(&text, `apiVersion: v1
kind: Service
metadata:
  name: web
  namespace: shop
  labels: {%s}
spec:
  clusterIP: %s
  clusterIPs: [%s]
  ports:
  - {name: http, port: %d, protocol: TCP, appProtocol: http}
  - {name: dns, port: 53, protocol: UDP}
`, labels, w.ip, w.ip, w.port)
	for i, e := range w.endpoints {
		hints := ""
		if w.hints != nil {
			hints = ", hints: {forZones: [{name: " + w.hints[i] + "}]}"
		}
		fmt.Fprintf(&text, `---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: web-%d
  namespace: shop
  labels: {kubernetes.io/service-name: web}
addressType: IPv4
ports: [{name: http, port: %d, protocol: TCP, appProtocol: http}]
endpoints:
- {addresses: [%s], zone: %s, conditions: {ready: true}%s}
`, i, e.port, e.ip, e.zone, hints)
	}
	write(t, filepath.Join(folder, ".next"), text.String())
	if err := os.Rename(filepath.Join(folder, ".next"), filepath.Join(folder, "web.yaml")); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// serve answers every request on a free port of ip for the length of the test.
func serve(t *testing.T, ip, zone string, answer http.HandlerFunc) member {
	t.Helper()
	l, err := net.Listen("tcp", ip+":0") //nolint:noctx // binds at once.
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: answer, ReadHeaderTimeout: limit}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
	return member{ip: ip, port: netip.MustParseAddrPort(l.Addr().String()).Port(), zone: zone}
}

// says answers with a text.
func says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

// get asks a URL over a connection of its own; the body is the error's text when there is no answer.
func get(t *testing.T, url string) (int, string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: limit}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return resp.StatusCode, err.Error()
	}
	return resp.StatusCode, string(body)
}
