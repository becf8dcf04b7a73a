package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-lb/weir/internal/manifest"
)

const policyLong = `Work with load-balancing policies in files: LoadBalancingPolicy objects, and the documents of a mesh (type
MeshLoadBalancing and MeshLoadBalancingStrategy). No cluster is asked.`

// policyCommand makes weir policy with its subcommands.
func policyCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "policy",
		Short: "Check and convert load-balancing policies",
		Long:  policyLong,
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(policyCheckCommand(), policyConvertCommand())
	return c
}

// policySource says where policies are.
type policySource struct {
	files     []string
	recursive bool
}

func (f *policySource) group() flagGroup {
	g := group("Manifests")
	g.StringSliceVarP(&f.files, "filename", "f", nil,
		"files or folders of policies and other manifests (YAML or JSON), or - for standard input; may be repeated")
	g.BoolVarP(&f.recursive, "recursive", "R", false, "read the folders within folders, too")
	return g
}

// source is what the flags and the arguments name together.
func (f *policySource) source(in io.Reader, args []string) (manifest.Source, error) {
	paths := slices.Concat(f.files, args)
	if len(paths) == 0 {
		return manifest.Source{}, &usageError{errors.New("no policies: give their files as arguments or with --filename (-f)")}
	}
	return manifest.Source{Paths: paths, Recursive: f.recursive, Stdin: in}, nil
}

// wantOutput checks the value of --output.
func wantOutput(output string, known ...string) error {
	if slices.Contains(known, output) {
		return nil
	}
	return &usageError{fmt.Errorf("--output=%s: want %s", output, strings.Join(known, " or "))}
}
