package main

import "github.com/spf13/cobra"

const rootLong = `weir keeps a Kubernetes Service's traffic in the client's zone for as long as the zone copes. When it does not,
just the excess goes to the next-cheapest zone, and comes back when the load has gone.`

const rootExample = `  # Who serves whom, why, what it costs and what would help
  kubectl get nodes,services,endpointslices -A -o yaml | weir explain -f -

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
		explainCommand(),
		demoCommand(),
		versionCommand(),
		completionCommand(),
	)
	return root
}
