package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/weir-lb/weir/internal/agent"
	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/explain"
)

// preview prints what an agent would serve: its listeners, the policies and plans behind them, and what it cannot serve.
func (f *agentFlags) preview(w io.Writer, config agent.Config, s *topology.Snapshot, policies *policy.Set) error {
	status, err := agent.Preview(config, s, policies)
	if err != nil {
		return err
	}
	plans := []explain.Explanation{}
	if !config.OneNode {
		plans = explainAll(s, config.Mode)
	}
	if f.output != "table" {
		return printData(w, f.output, struct {
			agent.Status
			Plans []explain.Explanation `json:"plans"`
		}{status, plans})
	}
	if err := printStatus(w, &status); err != nil || config.OneNode {
		return err
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	return explain.PrintList(w, plans, explain.Style{Colour: wantsColour(w)})
}

func explainAll(s *topology.Snapshot, mode topology.Mode) []explain.Explanation {
	survey := plan.SurveyNodes(s.Nodes)
	plans := []explain.Explanation{}
	for _, svc := range s.Services {
		plans = append(plans, explain.Explain(s, &survey, svc, explain.Options{DefaultMode: mode, Brief: true})...)
	}
	return plans
}

// printPolicies prints which fields policies have set, and for which clients.
func printPolicies(row func(...string), s *agent.Status) {
	isFirst := true
	fields := func(service, clients string, port *agent.PortStatus, p *agent.PortPolicy) {
		for _, f := range p.Fields {
			if isFirst {
				row()
				row("POLICY OF", "PORT", "CLIENTS", "FIELD", "VALUE", "FROM")
				isFirst = false
			}
			row(service, fmt.Sprint(port.Port), clients, f.Path, f.Value, strings.TrimSpace(f.Policy+" "+f.Source))
		}
	}
	for i := range s.Services {
		for j := range s.Services[i].Ports {
			port := &s.Services[i].Ports[j]
			fields(s.Services[i].Service, "all", port, &port.Policy)
			for k := range port.Classes {
				class := &port.Classes[k]
				fields(s.Services[i].Service, strings.Trim(fmt.Sprint(class.Clients), "[]"), port, &class.Policy)
			}
		}
	}
}

func printStatus(w io.Writer, s *agent.Status) error {
	const gap = 3 // between columns, as kubectl has it
	t := tabwriter.NewWriter(w, 0, 0, gap, ' ', 0)
	row := func(cells ...string) { _, _ = fmt.Fprintln(t, strings.Join(cells, "\t")) } // Flush reports
	_, _ = fmt.Fprintf(w, "node %s in zone %s would serve %d services\n\n", s.Node, cmp.Or(s.Zone, "unknown"), len(s.Services))
	row("SERVICE", "PORT", "PROTOCOL", "ADDRESSES", "ALGORITHM", "STRATEGY", "HOME", "BECAUSE")
	for _, svc := range s.Services {
		for _, p := range svc.Ports {
			addresses := make([]string, 0, len(p.Addresses))
			for _, a := range p.Addresses {
				addresses = append(addresses, a.Address.String())
			}
			row(svc.Service, fmt.Sprint(p.Port), strings.TrimPrefix(p.DataPlane+" ", " ")+p.Protocol, strings.Join(addresses, ","), p.Policy.Algorithm, p.Policy.Overflow,
				fmt.Sprintf("%d of %d", p.Home, p.Endpoints), cmp.Or(p.HomeReason, p.Reason))
		}
	}
	printPolicies(row, s)
	if len(s.Problems) > 0 {
		row()
		row("NOT SERVED AS ASKED", "BECAUSE")
		for _, p := range s.Problems {
			row(p.Service, p.Reason.String())
		}
	}
	return t.Flush()
}
