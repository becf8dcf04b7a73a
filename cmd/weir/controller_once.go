package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/explain"
	"github.com/weir-lb/weir/internal/kube/control"
)

// preview prints what a controller would write to the cluster as it is.
func (f *controllerFlags) preview(c *cobra.Command, config *rest.Config, o control.Options) error {
	ctx, cancel := context.WithTimeout(c.Context(), previewPatience)
	defer cancel()
	if err := reach(ctx, config); err != nil {
		return err
	}
	p, err := control.ReadPreview(ctx, config, o)
	if err != nil && ctx.Err() != nil {
		return unread(ctx, config)
	}
	if err != nil {
		return err
	}
	for _, problem := range p.Problems() {
		c.PrintErrln("warning: " + problem.String())
	}
	survey := plan.SurveyNodes(p.State.Snapshot.Nodes)
	views := planViews(p.Decisions, &survey)
	w := c.OutOrStdout()
	if f.output != "table" {
		services := []controlled{}
		for _, d := range p.Decisions {
			services = append(services, controlledService(d))
		}
		edits := p.Edits
		if edits == nil {
			edits = []control.Edit{}
		}
		return printData(w, f.output, struct {
			Services []controlled   `json:"services"`
			Plans    []explain.Plan `json:"plans"`
			Edits    []control.Edit `json:"edits"`
		}{services, views, edits})
	}
	managed := 0
	for _, d := range p.Decisions {
		if d.Record.Managed {
			managed++
		}
	}
	_, err = fmt.Fprintf(w, "manages %d of %d services, would write %d EndpointSlices\n", managed, len(p.Decisions), len(p.Edits))
	if err != nil || len(views)+len(p.Edits) == 0 {
		return err
	}
	return printPreview(w, views, p.Edits)
}

// printPreview prints plans, a line for each, and edits.
func printPreview(w io.Writer, views []explain.Plan, edits []control.Edit) error {
	if len(views) > 0 {
		all := make([]explain.Explanation, 0, len(views))
		for _, v := range views {
			all = append(all, explain.Explanation{Plan: v})
		}
		_, _ = fmt.Fprintln(w) // what follows reports
		if err := explain.PrintList(w, all, explain.Style{Colour: wantsColour(w)}); err != nil {
			return err
		}
	}
	if len(edits) == 0 {
		return nil
	}
	const gap = 3 // between columns, as kubectl has it
	t := tabwriter.NewWriter(w, 0, 0, gap, ' ', 0)
	_, _ = fmt.Fprintln(t, "\nSERVICE\tENDPOINTSLICE\tWRITES")
	for _, e := range edits {
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\n", e.Service, e.Slice, writes(e))
	}
	return t.Flush()
}

// writes tells in a few words what an edit does.
func writes(e control.Edit) string {
	var set, removed int
	var mark string
	for _, op := range e.Ops {
		switch {
		case !strings.HasSuffix(op.Path, "/hints"):
			mark = "the mark"
		case op.Op == "remove":
			removed++
		default:
			set++
		}
	}
	var parts []string
	if set > 0 {
		parts = append(parts, fmt.Sprintf("hints of %d endpoints", set))
	}
	if removed > 0 {
		parts = append(parts, fmt.Sprintf("no hints of %d endpoints", removed))
	}
	if mark != "" {
		parts = append(parts, mark)
	}
	return strings.Join(parts, ", ")
}

// clean takes back what weir wrote, and prints each thing.
func (f *controllerFlags) clean(c *cobra.Command, config *rest.Config, options control.Options) error {
	verb := "removed"
	if f.dryRun {
		verb = "would remove"
	}
	w := c.OutOrStdout()
	done, err := control.Cleanup(c.Context(), config, control.CleanupOptions{
		Namespace: options.LeaderElection.Namespace,
		Lease:     f.election.Name,
		Webhook:   f.webhook.Configuration,
		DryRun:    f.dryRun,
		Progress: func(r control.Removal) {
			if r.Err != nil {
				c.PrintErrf("warning: %s keeps its %s: %v\n", r.Object, r.What, r.Err)
				return
			}
			_, _ = fmt.Fprintf(w, "%s: %s %s\n", r.Object, verb, r.What) // the summary reports
		},
	})
	_, printed := fmt.Fprintf(w, "%s what weir wrote to %d EndpointSlices, %d Services and %d LoadBalancingPolicies\n",
		verb, done.Slices, done.Services, done.Policies)
	return errors.Join(err, printed)
}
