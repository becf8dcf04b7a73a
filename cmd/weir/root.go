package main

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

const rootLong = `weir keeps a Kubernetes Service's traffic in the client's zone for as long as the zone copes. When it does not,
just the excess goes to the next-cheapest zone, and comes back when the load has gone.`

const rootExample = `  # Which endpoints serve each zone, why, what it costs and what would help
  weir explain shop/web

  # What mode Balanced would change in the whole cluster, before anything is written
  weir explain -A --preview Balanced

  # Serve the manifests of a folder as the node worker-1 would, and follow their changes
  weir agent -f manifests/ --node worker-1

  # See all of it at work on this machine
  weir demo`

// rootCommand makes weir with all its subcommands.
func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:               "weir",
		Short:             "Zone-aware load balancing for Kubernetes",
		Long:              rootLong,
		Example:           rootExample,
		SilenceErrors:     true, // run prints them
		SilenceUsage:      true, // run points at --help instead
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetUsageFunc(usage)
	root.AddCommand(
		agentCommand(),
		controllerCommand(),
		explainCommand(),
		policyCommand(),
		simulateCommand(),
		demoCommand(),
		versionCommand(),
		completionCommand(),
	)
	return root
}

// The names of weir's program as a plugin of kubectl, which finds plugins by their files' names
// (https://kubernetes.io/docs/tasks/extend-kubectl/kubectl-plugins/).
const (
	pluginName     = "kubectl-weir"
	completionName = "kubectl_complete-weir" // kubectl asks it what may follow on its command line
)

// becomePlugin lets weir present itself as kubectl's plugin when it was called by that name, and gives the arguments that
// it then has.
func becomePlugin(root *cobra.Command, program string, args []string) []string {
	switch strings.TrimSuffix(filepath.Base(program), ".exe") {
	case completionName:
		args = append([]string{cobra.ShellCompRequestCmd}, args...)
	case pluginName:
	default:
		return args
	}
	root.Use = pluginName
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl weir"}
	return args
}
