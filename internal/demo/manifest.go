package demo

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"github.com/weir-lb/weir/internal/core/topology"
)

// writeManifests writes a cluster of one service as Kubernetes objects into dir, which is made if it is not there: what
// kubectl get nodes,services,endpointslices would print, shortened to what matters.
func writeManifests(dir string, cluster topology.Snapshot) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("write manifests: %w", err)
	}
	for name, text := range manifests(cluster) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return fmt.Errorf("write manifests: %w", err)
		}
	}
	return nil
}

// manifests renders a cluster, by file name.
func manifests(cluster topology.Snapshot) map[string]string {
	files := make(map[string]string)
	for _, name := range []string{"nodes.yaml", "service.yaml", "endpointslices.yaml"} {
		var b strings.Builder
		svc := cluster.Services[0]
		data := struct {
			*topology.Service
			Nodes  []topology.Node
			Slices [][]topology.Endpoint
		}{svc, cluster.Nodes, slicesOf(svc)}
		if err := manifestTemplates().ExecuteTemplate(&b, name, &data); err != nil {
			panic("demo: a template of a manifest does not fit its data: " + err.Error())
		}
		files[name] = b.String()
	}
	return files
}

// slicesOf divides a service's endpoints by port, as an EndpointSlice has one port for all of its endpoints; on one address
// each endpoint has a port of its own.
func slicesOf(svc *topology.Service) [][]topology.Endpoint {
	port := func(e topology.Endpoint) uint16 { return e.Ports[0].Port }
	all := slices.SortedStableFunc(slices.Values(svc.Endpoints), func(a, b topology.Endpoint) int { return cmp.Compare(port(a), port(b)) })
	var parts [][]topology.Endpoint
	for i, e := range all {
		if i == 0 || port(all[i-1]) != port(e) {
			parts = append(parts, nil)
		}
		parts[len(parts)-1] = append(parts[len(parts)-1], e)
	}
	return parts
}

func manifestTemplates() *template.Template {
	return template.Must(template.New("").Parse(`
{{- define "nodes.yaml"}}apiVersion: v1
kind: List
items:
{{- range .Nodes}}
- apiVersion: v1
  kind: Node
  metadata:
    name: {{.Name}}
    labels:
      topology.kubernetes.io/region: {{.Region}}
      topology.kubernetes.io/zone: {{.Zone}}
  status:
    allocatable: {cpu: {{printf "%d" .CPU}}m}
    conditions:
    - {type: Ready, status: "{{if .Ready}}True{{else}}False{{end}}"}
{{- end}}
{{end}}

{{- define "service.yaml"}}apiVersion: v1
kind: Service
metadata:
  namespace: {{.Namespace}}
  name: {{.Name}}
  labels:
    weir.dev/distribution: {{.Mode}}
spec:
  clusterIP: {{index .ClusterIPs 0}}
  clusterIPs: [{{index .ClusterIPs 0}}]
  selector: {app: {{.Name}}}
  ports:
  - {name: http, protocol: TCP, appProtocol: http, port: {{(index .Ports 0).Port}}, targetPort: http}
{{end}}

{{- define "endpointslices.yaml"}}apiVersion: v1
kind: List
items:
{{- range .Slices}}
{{- $port := (index (index . 0).Ports 0).Port}}
- apiVersion: discovery.k8s.io/v1
  kind: EndpointSlice
  metadata:
    namespace: {{$.Namespace}}
    name: {{$.Name}}-{{$port}}
    labels:
      kubernetes.io/service-name: {{$.Name}}
  addressType: IPv4
  ports:
  - {name: http, protocol: TCP, appProtocol: http, port: {{$port}}}
  endpoints:
  {{- range .}}
  - addresses: [{{.Addr}}]
    conditions: {ready: true, serving: true, terminating: false}
    nodeName: {{.Node}}
    zone: {{.Zone}}
  {{- end}}
{{- end}}
{{end}}`))
}
