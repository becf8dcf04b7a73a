package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"sigs.k8s.io/yaml"

	"github.com/weir-lb/weir/internal/agent"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/explain"
	kubefeed "github.com/weir-lb/weir/internal/kube/feed"
)

const explainLong = `Tell for each zone which endpoints serve it, how loaded they are expected to be, which hints say so and why, what
it costs, and what would help. Without a service every service of the namespace is told in a line.

The cluster of the kubeconfig is read, or, with --filename, manifests. Nothing is ever written. The answer is the plan
of weir's controller and agents: load that is only seen while requests flow is not in it (see the agent's page /pools
for that). For a cluster it also tells what owns the hints and whether the EndpointSlices say the plan.

Of a cluster nodes, services and endpointslices are read. For one service load-balancing policies are, too, and the
httproutes and grpcroutes that they name: without the permission they are left out with a warning. --client reads the pod,
and its namespace where a policy selects clients by that.`

const explainExample = `  # One service of the cluster that kubectl talks to
  weir explain shop/web

  # All services: mode, state, reason, overload and share in zone
  weir explain -A

  # What mode Balanced would change, endpoint by endpoint, before anything is written
  weir explain shop/web --preview Balanced -o wide

  # The same from manifests; - is standard input
  weir explain shop/web -f manifests/ --preview Balanced

  # What another mode would do, and what both cost at 25 MB/s
  weir explain shop/web --mode Balanced --traffic 25MB/s

  # What the node worker-1 may use, endpoint by endpoint
  weir explain shop/web --node worker-1 -o wide

  # Which load-balancing policy each setting comes from, for the requests of one pod
  weir explain shop/web --client shop/frontend-0`

// explainFlags are the command's flags as typed.
type explainFlags struct {
	source  sourceFlags
	cluster kubectlFlags
	all     bool
	mode    string
	preview string
	node    string
	client  string
	traffic string
	price   float64
	output  string
}

// explainCommand makes weir explain.
func explainCommand() *cobra.Command {
	var f explainFlags
	c := &cobra.Command{
		Use:     "explain [[NAMESPACE/]SERVICE]",
		Short:   "Show which endpoints serve each zone, why, what it costs and what would help",
		Long:    explainLong,
		Example: explainExample,
		Args:    func(c *cobra.Command, args []string) error { return cobra.MaximumNArgs(1)(c, withoutType(args)) },
		RunE:    func(c *cobra.Command, args []string) error { return f.run(c, withoutType(args)) },
	}
	for _, g := range []flagGroup{f.group(), f.cluster.group(), f.sourceGroup()} {
		g.addTo(c)
	}
	for _, with := range []string{"mode", "node", "client", "traffic"} {
		c.MarkFlagsMutuallyExclusive("preview", with)
	}
	c.MarkFlagsMutuallyExclusive("node", "client")
	return c
}

// sourceGroup are the flags that say where manifests are, and how services are understood.
func (f *explainFlags) sourceGroup() flagGroup {
	g := f.source.group()
	for _, name := range []string{manageFlag, defaultFlag} { // in a cluster their default is what the cluster does
		flag := g.Lookup(name)
		flag.Usage += " (default for manifests: " + flag.DefValue + "; for a cluster: what its services are seen to do)"
		flag.DefValue = ""
	}
	return g
}

func (f *explainFlags) group() flagGroup {
	g := group("What to explain")
	g.BoolVarP(&f.all, "all-namespaces", "A", false, "list the services of all namespaces")
	g.StringVar(&f.mode, "mode", "", "show this distribution mode beside the service's own: "+modeNames())
	g.StringVar(&f.preview, "preview", "", "show what changing to this distribution mode would change, before anything is written")
	g.StringVar(&f.node, "node", "", "show what this node may use, and what policies say to clients on it")
	g.StringVar(&f.client, "client", "", "show what policies say to this pod: NAMESPACE/POD")
	g.StringVar(&f.traffic, "traffic", "",
		"what clients and endpoints exchange, each month (1000GB, 1.5TB) or each second (25MB/s, 200Mbit/s)")
	g.Float64Var(&f.price, "price-per-gb", explain.DefaultPrice,
		"dollars for a GB that travels one cost unit, which is one crossing between zones")
	g.StringVarP(&f.output, "output", "o", "table", "table, wide (with each endpoint), json or yaml")
	return g
}

// run explains what was asked for.
func (f *explainFlags) run(c *cobra.Command, args []string) error {
	options, err := f.options()
	if err != nil {
		return err
	}
	in, err := f.inputs(c, args)
	if err != nil {
		return err
	}
	c.SilenceUsage = true
	in.warn(c)
	if f.node != "" && in.Snapshot.Node(f.node) == nil {
		return in.unknownNode(f.node)
	}
	if err := f.setClient(in, &options); err != nil {
		return err
	}
	records, err := f.records(in, args)
	if err != nil {
		return err
	}
	if len(records) == 0 {
		c.PrintErrln("warning: there is no service to explain in " + f.where(in))
	}
	options.Brief = len(args) == 0
	if f.preview != "" {
		return f.printPreviews(c.OutOrStdout(), in.previews(records, options.Mode), options)
	}
	return f.print(c.OutOrStdout(), in.explain(records, options), options)
}

// maxPrice keeps every bill a number that can be printed; no bill is that high.
const maxPrice = 1e6

// options checks the flags.
func (f *explainFlags) options() (explain.Options, error) {
	o := explain.Options{Node: f.node, Price: f.price}
	for flag, text := range map[string]string{"--mode": f.mode, "--preview": f.preview} { // one of them at most
		if text == "" {
			continue
		}
		mode, err := topology.ParseMode(text)
		if err != nil {
			return o, fmt.Errorf("%s: %w", flag, err)
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

// records finds the services that were asked for.
func (f *explainFlags) records(s *inputs, args []string) ([]*kubefeed.Record, error) {
	if len(args) == 0 {
		var records []*kubefeed.Record
		for _, r := range s.Records {
			if r.Service != nil && (f.all || s.namespace == "" || r.Name.Namespace == s.namespace) {
				records = append(records, r)
			}
		}
		return records, nil
	}
	name, err := serviceName(args[0], cmp.Or(s.namespace, s.namespaceOf(args[0])))
	if err != nil {
		return nil, err
	}
	switch r := s.Record(name); {
	case r == nil:
	case r.Service == nil:
		return nil, fmt.Errorf("service %s is of type ExternalName: an alias has no endpoints to explain", name)
	default:
		return []*kubefeed.Record{r}, nil
	}
	names := make([]string, 0, len(s.Snapshot.Services))
	for _, svc := range s.Snapshot.Services {
		names = append(names, svc.String())
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no service %s: %s no service at all", name, s.holder)
	}
	return nil, unknownService(name, names)
}

// withoutType leaves out the type of the object, which kubectl asks for: service web, svc/web.
func withoutType(args []string) []string {
	isType := func(text string) bool { return text == "svc" || text == "service" }
	switch {
	case len(args) > 1 && isType(args[0]):
		return args[1:]
	case len(args) == 1:
		if before, after, found := strings.Cut(args[0], "/"); found && isType(before) {
			return []string{after}
		}
	}
	return args
}

// namespaceOf gives the namespace of the only service of a name; empty if there is none, or several.
func (s *inputs) namespaceOf(name string) string {
	namespace := ""
	for _, r := range s.Records {
		if r.Name.Name != name {
			continue
		}
		if namespace != "" {
			return ""
		}
		namespace = r.Name.Namespace
	}
	return namespace
}

// serviceName reads [NAMESPACE/]SERVICE.
func serviceName(text, namespace string) (topology.ServiceName, error) {
	if namespace != "" && !strings.Contains(text, "/") {
		text = namespace + "/" + text
	}
	return agent.ParseService(text)
}

func unknownService(name topology.ServiceName, known []string) error {
	return fmt.Errorf("no service %s: did you mean %s?", name, strings.Join(topology.Near(name.String(), known), ", "))
}

// print writes explanations as asked.
func (f *explainFlags) print(w io.Writer, all []explain.Explanation, o explain.Options) error {
	switch {
	case f.output == "json" || f.output == "yaml":
		return printData(w, f.output, struct {
			Services []explain.Explanation `json:"services"`
		}{all})
	case o.Brief:
		return explain.PrintList(w, all, f.style(w))
	default:
		return explain.Print(w, all, f.style(w))
	}
}

// printPreviews writes previews as asked.
func (f *explainFlags) printPreviews(w io.Writer, all []explain.Preview, o explain.Options) error {
	switch {
	case f.output == "json" || f.output == "yaml":
		return printData(w, f.output, struct {
			Previews []explain.Preview `json:"previews"`
			Total    explain.Total     `json:"total"`
		}{all, explain.Sum(all)})
	case o.Brief:
		return explain.PrintPreviews(w, all, f.style(w))
	default:
		return explain.PrintPreview(w, all, f.style(w))
	}
}

func (f *explainFlags) style(w io.Writer) explain.Style {
	return explain.Style{Wide: f.output == "wide", Colour: wantsColour(w)}
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

// wantsColour tells whether a person reads w, on a terminal that has colours, and did not ask for none (https://no-color.org).
func wantsColour(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(file.Fd())) //nolint:gosec // a file descriptor.
}
