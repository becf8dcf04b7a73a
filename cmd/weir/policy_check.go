package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/l7"
	"github.com/weir-lb/weir/internal/manifest"
	"github.com/weir-lb/weir/internal/mesh"
)

const policyCheckLong = `Tell what is wrong with policies in files, by file, line and field, without asking a cluster. Other objects in the
files are read, but only what is wrong with policies is told, and with the routes that they are about.

The status is 1 if a policy is refused or a file cannot be read, and 0 if there are warnings at most.`

const policyCheckExample = `  # One file, or all of a folder and those below it
  weir policy check policy.yaml
  weir policy check -R policies/

  # What kubectl would apply
  kubectl kustomize overlays/prod | weir policy check -

  # Refuse table sizes that are no prime numbers in the documents of a mesh, as Envoy does
  weir policy check --strict mesh.yaml

  # For programs
  weir policy check -o json policy.yaml`

// policyCheckFlags are the command's flags as typed.
type policyCheckFlags struct {
	source policySource
	strict bool
	output string
}

// policyCheckCommand makes weir policy check.
func policyCheckCommand() *cobra.Command {
	var f policyCheckFlags
	c := &cobra.Command{
		Use:     "check [FILE…]",
		Short:   "Tell what is wrong with policies, by file, line and field",
		Long:    policyCheckLong,
		Example: policyCheckExample,
		RunE:    func(c *cobra.Command, args []string) error { return f.run(c, args) },
	}
	g := group("How to check")
	g.BoolVar(&f.strict, "strict", false, "refuse table sizes that are no prime numbers, where the next prime would be taken")
	g.StringVarP(&f.output, "output", "o", "text", "text or json")
	g.addTo(c)
	f.source.group().addTo(c)
	return c
}

// run checks what the flags and arguments name.
func (f *policyCheckFlags) run(c *cobra.Command, args []string) error {
	if err := wantOutput(f.output, "text", "json"); err != nil {
		return err
	}
	source, err := f.source.source(c.InOrStdin(), args)
	if err != nil {
		return err
	}
	c.SilenceUsage = true
	var o manifest.Options
	if f.strict {
		o.Mesh.Strictness = mesh.Strict
	}
	result, err := manifest.Inspect(c.Context(), source, o)
	report, err := newPolicyReport(&result, err)
	if err != nil {
		return err
	}
	if report.Documents == 0 && len(report.Findings) == 0 {
		return fmt.Errorf("no policy in %s", strings.Join(source.Paths, ", "))
	}
	if f.output == "json" {
		err = printData(c.OutOrStdout(), f.output, report)
	} else {
		err = report.print(c.OutOrStdout())
	}
	if err != nil {
		return err
	}
	return report.verdict()
}

// policyReport is what a check found.
type policyReport struct {
	Documents int              `json:"documents"` // that were understood as policies, refused ones included
	Refused   int              `json:"refused"`   // findings that keep a document or file from counting
	Warnings  int              `json:"warnings"`
	Findings  []reason.Finding `json:"findings"` // by file, in the order given, and line
}

// newPolicyReport gathers what is wrong with policies, and the places where files are broken. Other errors are given back.
func newPolicyReport(r *manifest.Result, broken error) (*policyReport, error) {
	report := &policyReport{Findings: []reason.Finding{}}
	for _, err := range leaves(broken) {
		place, ok := errors.AsType[*reason.Finding](err)
		if !ok {
			return nil, err
		}
		report.add(*place)
	}
	documents := make(map[reason.Object]bool)
	if r.Policies != nil {
		for i := range r.Policies.Rules {
			documents[r.Policies.Rules[i].Origin.Object()] = true
		}
	}
	for _, o := range r.Refused {
		documents[o.Object()] = true
	}
	report.Documents = len(documents)
	for _, p := range r.Problems {
		if isPolicyKind(p.Object.Kind) || isMeantAsPolicy(p) {
			report.add(p)
		}
	}
	report.needFilters(r)
	report.sort()
	return report, nil
}

// needFilters warns of filter state that an agent takes from the clients of its --trusted-filter alone, which a file does not
// tell.
func (r *policyReport) needFilters(from *manifest.Result) {
	if from.Policies == nil {
		return
	}
	for i := range from.Policies.Rules {
		rule := &from.Policies.Rules[i]
		for _, h := range rule.Conf.HashPolicies {
			if l7.NeedsFilter(h) {
				f := rule.Origin.Finding("", reason.Unused, "weir knows no filter state "+h.Name()+
					": agents take it from the clients that --trusted-filter names, and from no other")
				f.Entry, f.Position = 0, rule.Origin.Source
				r.add(f)
			}
		}
	}
}

// leaves takes joined errors apart.
func leaves(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, part := range joined.Unwrap() {
		all = append(all, leaves(part)...)
	}
	return all
}

// isPolicyKind tells whether objects of a kind are policies, or were meant to be one, or are routes, which are read for
// policies alone.
func isPolicyKind(kind string) bool {
	switch kind {
	case string(policy.DialectCRD), string(policy.TargetHTTPRoute), string(policy.TargetGRPCRoute):
		return true
	default:
		return strings.HasPrefix(strings.ToLower(kind), "meshload")
	}
}

// isMeantAsPolicy tells whether a finding is about an object that is no policy for its apiVersion or kind alone.
func isMeantAsPolicy(f reason.Finding) bool {
	return f.Reason == reason.Unknown && f.IsRefused() && (f.Field == "apiVersion" || f.Field == "kind")
}

func (r *policyReport) add(f reason.Finding) {
	if f.IsRefused() {
		r.Refused++
	} else {
		r.Warnings++
	}
	r.Findings = append(r.Findings, f)
}

// sort brings the findings of a file together, by line, and keeps the order of the files.
func (r *policyReport) sort() {
	order := make(map[string]int)
	for _, f := range r.Findings {
		if _, ok := order[f.File]; !ok {
			order[f.File] = len(order)
		}
	}
	slices.SortStableFunc(r.Findings, func(a, b reason.Finding) int {
		return cmp.Or(cmp.Compare(order[a.File], order[b.File]), cmp.Compare(a.Line, b.Line))
	})
}

// print writes a line for each finding, and one for all.
func (r *policyReport) print(w io.Writer) error {
	for _, f := range r.Findings {
		if _, err := fmt.Fprintln(w, findingLine(f)); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "%s, %s, %s\n", count(r.Documents, "policy", "policies"),
		count(r.Refused, "mistake", "mistakes"), count(r.Warnings, "warning", "warnings"))
	return err
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// findingLine gives "file:line: field: message", which editors find the place by.
func findingLine(f reason.Finding) string {
	f.Field, f.Object, f.Instead = cmp.Or(f.Field, strings.TrimSpace(f.Object.String())), reason.Object{}, ""
	if f.IsRefused() {
		return f.String()
	}
	return f.String() + " (warning)"
}

// verdict is an error if something is refused.
func (r *policyReport) verdict() error {
	if r.Refused == 0 {
		return nil
	}
	return fmt.Errorf("%s: the policies cannot be used as they are", count(r.Refused, "mistake", "mistakes"))
}
