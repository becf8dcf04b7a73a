// Command weir keeps a Kubernetes Service's traffic in the client's zone for as long as the zone copes, and lets the
// excess go to the next-cheapest zone. Each subcommand has a file of its own that reads flags, constructs the parts,
// runs them and stops them; what they do is decided elsewhere.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/weir-lb/weir/internal/ops"
)

// The exit statuses.
const (
	exitOK     = 0
	exitFailed = 1 // something went wrong while it ran
	exitUsage  = 2 // it was asked for something that makes no sense
)

func main() {
	ctx, stop := ops.OnSignals(context.Background(), os.Exit)
	status := run(ctx, os.Args[1:], streams{in: os.Stdin, out: os.Stdout, err: os.Stderr, program: os.Args[0]})
	stop()
	os.Exit(status)
}

// streams are a command's standard streams, and the program that it was called as.
type streams struct {
	in       io.Reader
	out, err io.Writer
	program  string // path of the file; empty: weir
}

// run executes weir with args and gives its exit status.
func run(ctx context.Context, args []string, s streams) int {
	root := rootCommand()
	args = becomePlugin(root, s.program, args)
	root.SetArgs(append([]string{}, args...)) // nil would mean os.Args
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	command, err := root.ExecuteContextC(ctx)
	switch {
	case err == nil:
		return exitOK
	case isUnwritten(err):
		_, _ = fmt.Fprintf(s.err, "weir: %v\n", err)
		return exitFailed
	case command.SilenceUsage && command != root: // it got past its flags
		_, _ = fmt.Fprintf(s.err, "weir: %v\n", err)
		if _, ok := errors.AsType[*usageError](err); ok {
			return exitUsage
		}
		return exitFailed
	default:
		_, _ = fmt.Fprintf(s.err, "weir: %v\nSee '%s --help'.\n", err, command.CommandPath())
		return exitUsage
	}
}

// isUnwritten tells whether an error is that of an output that takes no more, such as a file on a full disk.
func isUnwritten(err error) bool {
	of, ok := errors.AsType[*fs.PathError](err)
	return ok && of.Op == "write"
}

// usageError is a mistake in the command as typed, found after the flags were read.
type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }
