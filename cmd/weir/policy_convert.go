package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/weir-lb/weir/api/v1alpha1"
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/kube/policies"
	"github.com/weir-lb/weir/internal/manifest"
)

const policyConvertLong = `Print the documents of a mesh (type MeshLoadBalancing and MeshLoadBalancingStrategy) as LoadBalancingPolicy objects,
which an API server takes. Other objects in the files are passed over.

An entry becomes a policy in the namespace of its destination; entries of a document that say the same become one policy.
What is about the whole mesh goes to the namespace weir-system. Where the two forms differ in meaning, a warning says so.

The status is 1 if a document is refused; the others are printed all the same.`

const policyConvertExample = `  # See what it would be
  weir policy convert -f mesh.yaml

  # Apply it
  weir policy convert -f mesh.yaml | kubectl apply -f -

  # With services of the namespace shop where a document names none
  weir policy convert -f mesh.yaml --namespace shop -o json`

// policyConvertFlags are the command's flags as typed.
type policyConvertFlags struct {
	source    policySource
	namespace string
	output    string
}

// policyConvertCommand makes weir policy convert.
func policyConvertCommand() *cobra.Command {
	var f policyConvertFlags
	c := &cobra.Command{
		Use:     "convert [FILE…]",
		Short:   "Print documents of a mesh as LoadBalancingPolicy objects",
		Long:    policyConvertLong,
		Example: policyConvertExample,
		RunE:    func(c *cobra.Command, args []string) error { return f.run(c, args) },
	}
	g := group("What to print")
	g.StringVarP(&f.namespace, "namespace", "n", corev1.NamespaceDefault,
		"namespace of services and routes that a document names without one")
	g.StringVarP(&f.output, "output", "o", "yaml", "yaml or json")
	g.addTo(c)
	f.source.group().addTo(c)
	return c
}

// run prints what the flags and arguments name.
func (f *policyConvertFlags) run(c *cobra.Command, args []string) error {
	if err := wantOutput(f.output, "yaml", "json"); err != nil {
		return err
	}
	source, err := f.source.source(c.InOrStdin(), args)
	if err != nil {
		return err
	}
	c.SilenceUsage = true
	var o manifest.Options
	o.Mesh.Namespace = f.namespace
	result, err := manifest.Read(c.Context(), source, o)
	if err != nil {
		return err
	}
	rules, problems := meshRules(&result)
	if len(rules) == 0 && len(problems) == 0 {
		return fmt.Errorf("no document of a mesh in %s", strings.Join(source.Paths, ", "))
	}
	objects, more := convertRules(rules)
	refused := 0
	for _, p := range append(problems, more...) {
		if p.IsRefused() {
			refused++
		}
		c.PrintErrln(p.Severity.String() + ": " + p.String())
	}
	if err := printObjects(c.OutOrStdout(), f.output, objects); err != nil {
		return err
	}
	if refused > 0 {
		return errors.New(count(refused, "mistake", "mistakes") + ": not all documents were converted")
	}
	return nil
}

// meshRules picks what the documents of a mesh say, and what is wrong with them.
func meshRules(r *manifest.Result) (rules []policy.Rule, problems []reason.Finding) {
	for _, rule := range r.Policies.Rules {
		if rule.Origin.Dialect.IsMesh() {
			rules = append(rules, rule)
		}
	}
	for _, p := range r.Problems {
		if isPolicyKind(p.Object.Kind) && p.Object.Kind != string(policy.DialectCRD) {
			problems = append(problems, p)
		}
	}
	return rules, problems
}

// convertRules makes objects of rules, but for those that an API server would not take.
func convertRules(rules []policy.Rule) (objects []*v1alpha1.LoadBalancingPolicy, problems []reason.Finding) {
	for i := range rules {
		problems = append(problems, differences(&rules[i])...)
	}
	documents, more := policies.Documents(rules)
	problems = append(problems, more...)
	for _, d := range documents {
		isRefused := false
		_, found := policies.Rules(d)
		for _, p := range found {
			if p.IsRefused() {
				p.Instead = "the policy is not printed"
				problems, isRefused = append(problems, p), true
			}
		}
		if !isRefused {
			objects = append(objects, d)
		}
	}
	return objects, problems
}

// differences tells what a rule means as a mesh's and not as an object's.
func differences(r *policy.Rule) []reason.Finding {
	if r.Conf.LoadBalancer != nil || r.Target.Kind == policy.TargetHTTPRoute {
		return nil
	}
	return []reason.Finding{r.Origin.Finding("", reason.Differs,
		"names no loadBalancer: in a document of a mesh that means RoundRobin where no policy names another, "+
			"and in an object what the agent's --algorithm says")}
}

// printObjects writes objects one after the other as YAML, or as one object or List of JSON.
func printObjects(w io.Writer, format string, objects []*v1alpha1.LoadBalancingPolicy) error {
	if len(objects) == 0 {
		return nil
	}
	if format == "json" {
		if len(objects) == 1 {
			return printData(w, format, objects[0])
		}
		return printData(w, format, struct {
			APIVersion string                          `json:"apiVersion"`
			Kind       string                          `json:"kind"`
			Items      []*v1alpha1.LoadBalancingPolicy `json:"items"`
		}{"v1", "List", objects})
	}
	var out bytes.Buffer
	for i, o := range objects {
		if i > 0 {
			out.WriteString("---\n")
		}
		data, err := yaml.Marshal(o)
		if err != nil {
			return fmt.Errorf("write %s: %w", o.Name, err)
		}
		out.Write(data)
	}
	_, err := w.Write(out.Bytes())
	return err
}
