package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"sigs.k8s.io/yaml"

	"github.com/weir-lb/weir/internal/agent"
	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/explain"
	"github.com/weir-lb/weir/internal/manifest"
)

const explainLong = `Tell for each zone which endpoints serve it, how loaded they are expected to be, which hints say so and why, what
it costs, and what would help. Without a service every service is told in a line.

The answer is the plan of weir's controller and agents, made from the manifests alone: load that is only seen while
requests flow is not in it (see the agent's page /pools for that).`

const explainExample = `  # One service of a live cluster
  kubectl get nodes,services,endpointslices -A -o yaml | weir explain shop/web -f -

  # What another mode would do, and what both cost at 25 MB/s
  weir explain shop/web -f manifests/ --mode Balanced --traffic 25MB/s

  # What the node worker-1 may use, endpoint by endpoint
  weir explain shop/web -f manifests/ --node worker-1 -o wide

  # All services
  weir explain -f manifests/`

// explainFlags are the command's flags as typed.
type explainFlags struct {
	source    sourceFlags
	namespace string
	all       bool
	mode      string
	node      string
	traffic   string
	price     float64
	output    string
}

// explainCommand makes weir explain.
func explainCommand() *cobra.Command {
	var f explainFlags
	c := &cobra.Command{
		Use:     "explain [[NAMESPACE/]SERVICE]",
		Short:   "Tell who serves whom, why, what it costs and what would help",
		Long:    explainLong,
		Example: explainExample,
		Args:    cobra.MaximumNArgs(1),
		RunE:    func(c *cobra.Command, args []string) error { return f.run(c, args) },
	}
	f.source.group().addTo(c)
	g := group("What to explain")
	g.StringVarP(&f.namespace, "namespace", "n", "", "namespace of the service, or of the services to list")
	g.BoolVarP(&f.all, "all-namespaces", "A", false, "list the services of all namespaces; so does naming none")
	g.StringVar(&f.mode, "mode", "", "show this distribution mode beside the service's own: "+modeNames())
	g.StringVar(&f.node, "node", "", "show what this node may use")
	g.StringVar(&f.traffic, "traffic", "",
		"what clients and endpoints exchange, each month (1000GB, 1.5TB) or each second (25MB/s, 200Mbit/s)")
	g.Float64Var(&f.price, "price-per-gb", explain.DefaultPrice,
		"dollars for a GB that travels one cost unit, which is one crossing between zones")
	g.StringVarP(&f.output, "output", "o", "table", "table, wide (with each endpoint), json or yaml")
	g.addTo(c)
	return c
}

// run explains what was asked for.
func (f *explainFlags) run(c *cobra.Command, args []string) error {
	options, err := f.options()
	if err != nil {
		return err
	}
	source, read, err := f.source.source(c.InOrStdin())
	if err != nil {
		return err
	}
	c.SilenceUsage = true
	result, err := manifest.Read(source, read)
	if err != nil {
		return err
	}
	for _, p := range result.Problems {
		c.PrintErrln("warning: " + p.String())
	}
	snapshot := &result.Snapshot
	if f.node != "" && snapshot.Node(f.node) == nil {
		return unknownNode(f.node, snapshot)
	}
	services, err := f.services(snapshot, args)
	if err != nil {
		return err
	}
	if len(services) == 0 {
		c.PrintErrln("warning: there is no service to explain in " + f.where())
	}
	options.Brief = len(args) == 0
	survey := plan.SurveyNodes(snapshot.Nodes)
	all := []explain.Explanation{} // an empty list in JSON, not null
	for _, svc := range services {
		all = append(all, explain.Explain(snapshot, &survey, svc, options)...)
	}
	return f.print(c.OutOrStdout(), all, options)
}

// maxPrice keeps every bill a number that can be printed; nobody pays it.
const maxPrice = 1e6

// options checks the flags.
func (f *explainFlags) options() (explain.Options, error) {
	o := explain.Options{Node: f.node, Price: f.price}
	if f.mode != "" {
		mode, err := topology.ParseMode(f.mode)
		if err != nil {
			return o, fmt.Errorf("--mode: %w", err)
		}
		o.Mode = mode
	}
	if f.traffic != "" {
		traffic, err := explain.ParseTraffic(f.traffic)
		if err != nil {
			return o, fmt.Errorf("--traffic: %w", err)
		}
		o.Traffic = traffic
	}
	if !(f.price >= 0 && f.price <= maxPrice) {
		return o, fmt.Errorf("--price-per-gb=%v: want 0 to %v", f.price, maxPrice)
	}
	switch f.output {
	case "table", "wide", "json", "yaml":
		return o, nil
	default:
		return o, fmt.Errorf("--output=%s: want table, wide, json or yaml", f.output)
	}
}

// where names what was searched.
func (f *explainFlags) where() string {
	text := strings.Join(f.source.files, ", ")
	if f.namespace != "" && !f.all {
		return "namespace " + f.namespace + " of " + text
	}
	return text
}

// services finds the services that were asked for.
func (f *explainFlags) services(s *topology.Snapshot, args []string) ([]*topology.Service, error) {
	if len(args) == 0 {
		var services []*topology.Service
		for _, svc := range s.Services {
			if f.all || f.namespace == "" || svc.Namespace == f.namespace {
				services = append(services, svc)
			}
		}
		return services, nil
	}
	text := args[0]
	if f.namespace != "" && !strings.Contains(text, "/") {
		text = f.namespace + "/" + text
	}
	name, err := agent.ParseService(text)
	if err != nil {
		return nil, err
	}
	if svc := s.Service(name); svc != nil {
		return []*topology.Service{svc}, nil
	}
	names := make([]string, 0, len(s.Services))
	for _, svc := range s.Services {
		names = append(names, svc.String())
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no service %s: the manifests hold no service at all", name)
	}
	return nil, fmt.Errorf("no service %s: did you mean %s?", name, strings.Join(topology.Near(name.String(), names), ", "))
}

func unknownNode(name string, s *topology.Snapshot) error {
	near := s.NodesNear(name)
	if len(near) == 0 {
		return fmt.Errorf("no node is called %q: the manifests hold no node at all", name)
	}
	return fmt.Errorf("no node is called %q: did you mean %s?", name, strings.Join(near, ", "))
}

// print writes explanations as asked.
func (f *explainFlags) print(w io.Writer, all []explain.Explanation, o explain.Options) error {
	style := explain.Style{Wide: f.output == "wide", Colour: wantsColour(w)}
	switch {
	case f.output == "json" || f.output == "yaml":
		return printData(w, f.output, struct {
			Services []explain.Explanation `json:"services"`
		}{all})
	case o.Brief:
		return explain.PrintList(w, all, style)
	default:
		return explain.Print(w, all, style)
	}
}

// printData writes a value for programs. YAML is made from the JSON, so that both have the same names.
func printData(w io.Writer, format string, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", format, err)
	}
	data = append(data, '\n')
	if format == "yaml" {
		if data, err = yaml.JSONToYAML(data); err != nil {
			return fmt.Errorf("write yaml: %w", err)
		}
	}
	_, err = w.Write(data)
	return err
}

// wantsColour tells whether a person reads w who did not ask for none (https://no-color.org).
func wantsColour(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && os.Getenv("NO_COLOR") == "" && term.IsTerminal(int(file.Fd())) //nolint:gosec // a file descriptor.
}
