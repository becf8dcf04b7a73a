package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

const completionLong = `Print a script that completes weir's commands and flags. Load it into the shell that runs now with

  source <(weir completion bash)
  source <(weir completion zsh)
  weir completion fish | source
  weir completion powershell | Out-String | Invoke-Expression`

// completionCommand makes weir completion.
func completionCommand() *cobra.Command {
	return &cobra.Command{
		Use:                   "completion bash|zsh|fish|powershell",
		Short:                 "Print a completion script for a shell",
		Long:                  completionLong,
		Args:                  cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs:             []string{"bash", "zsh", "fish", "powershell"},
		DisableFlagsInUseLine: true,
		RunE: func(c *cobra.Command, args []string) error {
			root, out := c.Root(), c.OutOrStdout()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(out, true)
			case "zsh":
				return root.GenZshCompletion(out)
			case "fish":
				return root.GenFishCompletion(out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(out)
			default:
				return fmt.Errorf("unknown shell %q", args[0])
			}
		},
	}
}
