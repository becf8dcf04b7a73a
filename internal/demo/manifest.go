package demo

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"text/template"
)

// manifests renders the world as Kubernetes objects, by file name: what kubectl get nodes,services,endpointslices would
// print of such a cluster, shortened to what matters.
func (l *layout) manifests() (map[string][]byte, error) {
	t, err := template.New("").Parse(manifestText)
	if err != nil {
		return nil, err
	}
	view := l.view()
	files := make(map[string][]byte)
	for _, name := range []string{"nodes.yaml", "service.yaml", "endpointslices.yaml"} {
		var text bytes.Buffer
		if err := t.ExecuteTemplate(&text, name, view); err != nil {
			return nil, err
		}
		files[name] = text.Bytes()
	}
	return files, nil
}

// writeManifests writes the manifests into dir, which is made if it is not there.
func (l *layout) writeManifests(dir string) error {
	files, err := l.manifests()
	if err != nil {
		return fmt.Errorf("render manifests: %w", err)
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("write manifests: %w", err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return fmt.Errorf("write manifests: %w", err)
		}
	}
	return nil
}

// manifestView is what the templates read.
type manifestView struct {
	Namespace, Service, Region, Mode string
	Address                          string
	Port                             uint16
	Nodes                            []manifestNode
	Slices                           []manifestSlice
}

type manifestNode struct{ Name, Zone string }

type manifestSlice struct {
	Name      string
	Port      uint16
	Endpoints []manifestEndpoint
}

type manifestEndpoint struct{ Name, Address, Node, Zone string }

func (l *layout) view() manifestView {
	zones := zoneNames()
	v := manifestView{
		Namespace: namespace, Service: serviceName, Region: region, Mode: string(l.mode),
		Address: l.service.Addr().String(), Port: l.service.Port(),
	}
	for _, p := range l.agents {
		v.Nodes = append(v.Nodes, manifestNode{p.name, string(zones[p.zone])})
	}
	for _, p := range l.endpoints {
		// An EndpointSlice has one port for all its endpoints; on one address each endpoint has a port of its own.
		at := slices.IndexFunc(v.Slices, func(s manifestSlice) bool { return s.Port == p.addr.Port() })
		if at < 0 {
			at = len(v.Slices)
			v.Slices = append(v.Slices, manifestSlice{Name: fmt.Sprintf("%s-%d", serviceName, p.addr.Port()), Port: p.addr.Port()})
		}
		v.Slices[at].Endpoints = append(v.Slices[at].Endpoints, manifestEndpoint{
			p.name, p.addr.Addr().String(), l.agents[p.zone].name, string(zones[p.zone]),
		})
	}
	slices.SortFunc(v.Slices, func(a, b manifestSlice) int { return cmp.Compare(a.Port, b.Port) })
	return v
}

const manifestText = `
{{- define "nodes.yaml"}}apiVersion: v1
kind: List
items:
{{- $region := .Region}}
{{- range .Nodes}}
- apiVersion: v1
  kind: Node
  metadata:
    name: {{.Name}}
    labels:
      topology.kubernetes.io/region: {{$region}}
      topology.kubernetes.io/zone: {{.Zone}}
  status:
    allocatable: {cpu: "4", memory: 16Gi, pods: "110"}
    conditions:
    - {type: Ready, status: "True"}
{{- end}}
{{end}}

{{- define "service.yaml"}}apiVersion: v1
kind: Service
metadata:
  namespace: {{.Namespace}}
  name: {{.Service}}
  labels:
    weir.dev/distribution: {{.Mode}}
spec:
  clusterIP: {{.Address}}
  clusterIPs: [{{.Address}}]
  selector: {app: {{.Service}}}
  ports:
  - {name: http, protocol: TCP, appProtocol: http, port: {{.Port}}, targetPort: http}
{{end}}

{{- define "endpointslices.yaml"}}apiVersion: v1
kind: List
items:
{{- $world := .}}
{{- range .Slices}}
- apiVersion: discovery.k8s.io/v1
  kind: EndpointSlice
  metadata:
    namespace: {{$world.Namespace}}
    name: {{.Name}}
    labels:
      kubernetes.io/service-name: {{$world.Service}}
  addressType: IPv4
  ports:
  - {name: http, protocol: TCP, appProtocol: http, port: {{.Port}}}
  endpoints:
  {{- range .Endpoints}}
  - addresses: [{{.Address}}]
    conditions: {ready: true, serving: true, terminating: false}
    nodeName: {{.Node}}
    zone: {{.Zone}}
    targetRef: {kind: Pod, namespace: {{$world.Namespace}}, name: {{.Name}}}
  {{- end}}
{{- end}}
{{end}}`
