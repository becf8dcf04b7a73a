package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/explain"
	"github.com/weir-lb/weir/internal/kube/convert"
	kubefeed "github.com/weir-lb/weir/internal/kube/feed"
	"github.com/weir-lb/weir/internal/manifest"
)

// inputs are what explain reads: manifests, or a live cluster.
type inputs struct {
	kubefeed.State
	live      bool   // it is a cluster's
	namespace string // that the user asked for; empty: all
	survey    plan.Survey
	problems  []reason.Finding
	holder    string      // what holds the objects, as in "the manifests hold"
	policies  *policy.Set // nil: there are none
	leftOut   []string    // what the answer lacks, because the user may not read it
}

// inputs reads what is to be explained: manifests where they are named, else the cluster.
func (f *explainFlags) inputs(c *cobra.Command, args []string) (*inputs, error) {
	if len(f.source.files) > 0 {
		source, read, err := f.source.source(c.InOrStdin())
		if err != nil {
			return nil, err
		}
		c.SilenceUsage = true
		result, err := manifest.Read(c.Context(), source, read)
		if err != nil {
			return nil, err
		}
		s := inputsOf(&result)
		s.namespace = f.cluster.overrides.Context.Namespace
		return s, nil
	}
	read, err := f.live(c)
	if err != nil {
		return nil, err
	}
	c.SilenceUsage = true
	config, namespace, err := f.cluster.config()
	if err != nil {
		return nil, err
	}
	reader, err := newClusterReader(config)
	if err != nil {
		return nil, err
	}
	reader.client, reader.namespace = f.client, namespace
	defer reader.showProgress(c.ErrOrStderr())()
	return f.liveInputs(c.Context(), read, reader, args)
}

// liveInputs reads the cluster.
func (f *explainFlags) liveInputs(ctx context.Context, read liveOptions, r *clusterReader, args []string) (*inputs, error) {
	var objects *convert.Objects
	known := new(policyObjects)
	err := together(
		func() (err error) { objects, err = f.objects(ctx, r, args); return err },
		func() (err error) {
			if f.showsPolicies(args) {
				known, err = r.readPolicies(ctx)
			}
			return err
		},
	)
	if err != nil {
		return nil, err
	}
	s := read.inputs(objects)
	s.namespace = r.namespace
	return s, s.addPolicies(known, objects.Nodes, args)
}

// objects reads from the cluster what args ask for.
func (f *explainFlags) objects(ctx context.Context, r *clusterReader, args []string) (*convert.Objects, error) {
	switch {
	case len(args) > 0:
		name, err := serviceName(args[0], r.namespace)
		if err != nil {
			return nil, err
		}
		return r.one(ctx, name)
	case f.all:
		return r.list(ctx, corev1.NamespaceAll)
	default:
		return r.list(ctx, r.namespace)
	}
}

// live checks the flags that say how services are read.
func (f *explainFlags) live(c *cobra.Command) (liveOptions, error) {
	o, err := f.source.options()
	if err != nil {
		return liveOptions{}, err
	}
	r := liveOptions{costs: o.Costs}
	if c.Flags().Changed(manageFlag) {
		r.manage, r.defaultMode = f.source.manage, o.Convert.Default
	}
	if c.Flags().Changed(defaultFlag) {
		r.defaultMode = o.Convert.Default
	}
	return r, nil
}

// explain explains services.
func (s *inputs) explain(records []*kubefeed.Record, o explain.Options) []explain.Explanation {
	all := []explain.Explanation{} // an empty list in JSON, not null
	for _, r := range records {
		for _, x := range explain.Explain(&s.Snapshot, &s.survey, r.Service, o) {
			if s.live {
				x.Cluster = s.standing(r, &x.Planned)
			}
			all = append(all, x)
		}
	}
	return all
}

// previews tells what another mode would change, and counts what the controller would write.
func (s *inputs) previews(records []*kubefeed.Record, to topology.Mode) []explain.Preview {
	all := []explain.Preview{} // an empty list in JSON, not null
	for _, r := range records {
		for _, p := range explain.Previews(&s.Snapshot, &s.survey, r.Service, to) {
			own := family(r.Slices, p.Planned.Family)
			p.Slices, p.Writes = len(own), edited(own, r, &p.Planned)
			all = append(all, p)
		}
	}
	return all
}

// maxWarnings is how many warnings about objects a person reads before looking for the answer.
const maxWarnings = 20

// warn tells what is wrong with the objects.
func (s *inputs) warn(c *cobra.Command) {
	for _, text := range s.leftOut {
		c.PrintErrln("warning: " + text)
	}
	for i, p := range s.problems {
		if i == maxWarnings {
			c.PrintErrf("warning: %d more like these\n", len(s.problems)-i)
			return
		}
		c.PrintErrln("warning: " + p.String())
	}
}

func (s *inputs) unknownNode(name string) error {
	near := s.Snapshot.NodesNear(name)
	if len(near) == 0 {
		return fmt.Errorf("no node is called %q: %s no node at all", name, s.holder)
	}
	return fmt.Errorf("no node is called %q: did you mean %s?", name, strings.Join(near, ", "))
}

// where names what was searched.
func (f *explainFlags) where(s *inputs) string {
	text := strings.Join(f.source.files, ", ")
	if s.live {
		text = "the cluster"
	}
	if s.namespace != "" && !f.all {
		return "namespace " + s.namespace + " of " + text
	}
	return text
}

// inputsOf makes inputs of manifests.
func inputsOf(r *manifest.Result) *inputs {
	s := &inputs{problems: r.Problems, holder: "the manifests hold", policies: r.Policies}
	s.Snapshot = r.Snapshot
	bySlice := slicesByService(r.Objects.Slices)
	for _, object := range r.Objects.Services {
		name := nameOf(object)
		s.Records = append(s.Records, &kubefeed.Record{
			Name: name, Object: object, Slices: bySlice[name], Service: r.Snapshot.Service(name),
		})
	}
	for _, i := range r.Objects.Imports {
		object := i.AsService()
		name := nameOf(object)
		s.Records = append(s.Records, &kubefeed.Record{Name: name, Object: object, Service: r.Snapshot.Service(name)})
	}
	s.sort()
	return s
}

// liveOptions say how the services of a live cluster are read.
type liveOptions struct {
	manage      string        // weir, all, or empty: whoever owns a service now
	defaultMode topology.Mode // unset: what the cluster does with a service that does not ask
	costs       topology.Costs
}

// inputs makes the inputs of a live cluster's objects.
//
// A service is weir's when it carries weir's label, or when its slices show that weir writes them. The mode that the mark
// on them names takes the place of one that the service does not name, or names badly; without a mark that is none, and a
// service that names its mode badly is left alone.
func (r liveOptions) inputs(objects *convert.Objects) *inputs {
	s := &inputs{live: true, holder: "the cluster holds"}
	var nodes []topology.Node
	for _, n := range objects.Nodes {
		node, problems := convert.Node(n)
		nodes = append(nodes, node)
		s.problems = append(s.problems, problems...)
	}
	zones := convert.ZonesOf(nodes)
	bySlice := slicesByService(objects.Slices)
	var services []*topology.Service
	for _, object := range objects.Services {
		record := r.record(object, bySlice[nameOf(object)])
		s.Records = append(s.Records, record)
		if record.Service == nil { // an alias is nothing to warn of: it was not written for weir
			continue
		}
		var problems []reason.Finding
		record.Service.Endpoints, problems = convert.Slices(record.Slices, zones)
		record.Problems = append(record.Problems, problems...)
		services = append(services, record.Service)
		s.problems = append(s.problems, record.Problems...)
	}
	s.Snapshot = topology.NewSnapshot(nodes, services, r.costs)
	s.sort()
	return s
}

// sort sorts the records, checks what they say of demand, and surveys the nodes.
func (s *inputs) sort() {
	slices.SortFunc(s.Records, func(a, b *kubefeed.Record) int { return a.Name.Compare(b.Name) })
	for _, r := range s.Records {
		if r.Service != nil {
			s.checkDemand(r.Service)
		}
	}
	s.survey = plan.SurveyNodes(s.Snapshot.Nodes)
}

// checkDemand warns of shares of demand that are for zones without a node or an endpoint, or that sum to neither 1 nor 100:
// they are taken all the same, scaled to a sum of 1, which is hardly what was meant.
func (s *inputs) checkDemand(svc *topology.Service) {
	warn := func(format string, args ...any) {
		s.problems = append(s.problems, reason.Finding{
			Object: reason.Object{Kind: "Service", Namespace: svc.Namespace, Name: svc.Name},
			Field:  "metadata.annotations[" + api.AnnotationDemand + "]", Reason: reason.Invalid, Message: fmt.Sprintf(format, args...),
		})
	}
	zones := s.Snapshot.Zones()
	var sum float64
	for _, d := range svc.Demand {
		sum += d.Share
		if !slices.Contains(zones, d.Zone) {
			warn("there is no node and no endpoint in zone %s", d.Zone)
		}
	}
	const rounding = 0.01 // 0.33 for each of three zones is no mistake
	if isNear := func(whole float64) bool { return math.Abs(sum/whole-1) < rounding+1e-9 }; sum > 0 && !isNear(1) && !isNear(100) {
		warn("the shares sum to %.4g, and not to 1 or 100: they are scaled to a sum of 1", sum)
	}
}

// record reads a Service, but for its endpoints.
func (r liveOptions) record(object *corev1.Service, list []*discoveryv1.EndpointSlice) *kubefeed.Record {
	o := convert.Options{ManageAll: r.manage != manageWeir, Default: r.defaultMode}
	mark, isMarked := marked(list)
	if o.Default == topology.ModeUnset {
		o.Default = mark
	}
	svc, problems := convert.Service(object, o)
	record := &kubefeed.Record{
		Name: nameOf(object), Object: object, Slices: list, Service: svc,
		Asked: convert.AskedBy(object, o), Problems: problems,
	}
	labelled := record.Asked == convert.AskedByLabel
	switch r.manage {
	case manageAll:
		record.Managed = true
	case manageWeir:
		record.Managed = labelled
	default:
		record.Managed = labelled || isMarked || slices.ContainsFunc(list, isLabelledSlice)
	}
	kubefeed.KeepLastGood(record)
	return record
}

// marked tells whether weir wrote the hints of these slices, and in which mode.
func marked(list []*discoveryv1.EndpointSlice) (topology.Mode, bool) {
	found := false
	for _, s := range list {
		value, ok := s.Annotations[api.AnnotationHints]
		if mode, err := topology.ParseMode(value); ok && err == nil {
			return mode, true
		}
		found = found || ok
	}
	return topology.ModeDisabled, found
}

// isLabelledSlice tells whether a slice carries weir's label, which whoever manages slices copies from their Service.
func isLabelledSlice(s *discoveryv1.EndpointSlice) bool {
	_, ok := s.Labels[api.LabelDistribution]
	return ok
}

func slicesByService(list []*discoveryv1.EndpointSlice) map[topology.ServiceName][]*discoveryv1.EndpointSlice {
	grouped := make(map[topology.ServiceName][]*discoveryv1.EndpointSlice)
	for _, s := range list {
		name := topology.ServiceName{Namespace: namespaceOf(s.Namespace), Name: s.Labels[api.LabelServiceName]}
		grouped[name] = append(grouped[name], s)
	}
	return grouped
}

func nameOf(s *corev1.Service) topology.ServiceName {
	return topology.ServiceName{Namespace: namespaceOf(s.Namespace), Name: s.Name}
}

// namespaceOf gives the namespace of an object; a manifest may leave it out.
func namespaceOf(s string) string {
	if s == "" {
		return corev1.NamespaceDefault
	}
	return s
}
