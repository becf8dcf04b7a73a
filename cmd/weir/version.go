package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weir-lb/weir/internal/ops"
)

// versionCommand makes weir version.
func versionCommand() *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "version",
		Short: "Print which weir this is",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			b := ops.ReadBuild()
			switch output {
			case "json":
				encoder := json.NewEncoder(c.OutOrStdout())
				encoder.SetIndent("", "  ")
				return encoder.Encode(b)
			case "":
				_, err := fmt.Fprintf(c.OutOrStdout(), "weir %s (%s, %s)%s\n", b.Version, b.Go, b.Platform, revision(b))
				return err
			default:
				return fmt.Errorf("unknown output %q: want json or nothing", output)
			}
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "", "json, or nothing for a line")
	return c
}

func revision(b ops.Build) string {
	if b.Revision == "" {
		return ""
	}
	return " " + b.Revision + " of " + b.Time
}
