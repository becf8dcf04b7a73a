// Package manifest reads Kubernetes manifests into topology snapshots, once or for as long as they change.
//
// It takes what kubectl writes and reads: folders, files and standard input, YAML and JSON, several documents in a
// file, lists of any kind. Node, Service, EndpointSlice, ServiceImport, Pod, Namespace, LoadBalancingPolicy, HTTPRoute and GRPCRoute are
// read, and the load-balancing documents of a mesh (see package mesh); other kinds are counted and passed over. A text
// that does not parse or a field of the wrong type is an error with file, line and field; what is merely wrong with an
// object is a finding, and the rest goes on. Whatever is wrong with the words of a policy is a Problem, too.
package manifest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/convert"
	"github.com/weir-lb/weir/internal/mesh"
)

// Stdin is the path that stands for Source.Stdin.
const Stdin = "-"

// Source says where the manifests are.
type Source struct {
	// Paths are files, folders or Stdin, in the order in which they count. Of a folder its files *.yaml, *.yml and
	// *.json are read, in the order of their names; those whose names begin with a dot are not.
	Paths []string
	// Recursive takes the folders within folders, too; links to folders are not followed.
	Recursive bool
	Stdin     io.Reader
}

// CanWatch tells whether all of s can be read more than once: standard input cannot, nor can pipes and devices, such as a
// shell's <(…).
func (s Source) CanWatch() bool {
	return !slices.ContainsFunc(s.Paths, func(path string) bool { return path == Stdin || !isLasting(path) })
}

// Options say how manifests are read. The zero value works.
type Options struct {
	Convert convert.Options
	Costs   topology.Costs // of the snapshot; zero: the defaults
	Mesh    mesh.Options   // how the documents of a mesh are read
	// MaxBytes bounds all files together, in bytes; 0: 64 MiB. A cluster of 1,000 nodes and 10,000 endpoints, printed
	// by kubectl with everything in it, has 10 to 20 MB; some twenty times that is in use while it is read.
	MaxBytes int64
}

const defaultMaxBytes = 64 << 20

func (o Options) maxBytes() int64 {
	if o.MaxBytes == 0 {
		return defaultMaxBytes
	}
	return o.MaxBytes
}

// Result is what manifests say.
type Result struct {
	Snapshot topology.Snapshot
	// Objects are what the Snapshot was made from, each name once, in the order of the files.
	Objects convert.Objects
	// Problems are what is wrong with objects, in the order of the files, each with the file and line of the field.
	Problems []reason.Finding
	// Policies are what the documents say about load balancing, and the labels of the objects that they may be about.
	Policies *policy.Set
	// Refused are the policies that are not followed, each for a Problem that is Refused. A caller that knows an earlier good state
	// of one keeps that.
	Refused []policy.Origin
	// Skipped counts the objects of kinds that weir has no use for, by apiVersion and kind as in "apps/v1 Deployment".
	Skipped map[string]int
}

// Read reads all manifests of s.
//
// Errors: every file that cannot be read, does not parse or has a field of the wrong type, joined; each broken place is
// a *reason.Finding. There is no Result then. Of an object that occurs twice the first counts, and a Problem names both
// places. When ctx is done before all is read, its error alone.
func Read(ctx context.Context, s Source, o Options) (Result, error) {
	r, err := Inspect(ctx, s, o)
	if err != nil {
		return Result{}, err
	}
	return r, nil
}

// Inspect reads as Read does, but gives beside the errors what could be read, for a caller that reports all mistakes.
func Inspect(ctx context.Context, s Source, o Options) (Result, error) {
	files, err := load(s, o.maxBytes())
	if err != nil {
		return Result{}, err
	}
	return build(ctx, files, o)
}

// build makes the Result of files that were loaded: of those that are not broken, if there is an error.
func build(ctx context.Context, files []file, o Options) (Result, error) {
	r := newReader(o.Mesh)
	var broken []error
	for _, f := range files {
		documents, err := parse(ctx, f)
		if ctx.Err() != nil {
			return Result{}, fmt.Errorf("read manifests: %w", ctx.Err())
		}
		if err != nil {
			broken = append(broken, err)
			continue
		}
		for _, d := range documents {
			if ctx.Err() != nil {
				return Result{}, fmt.Errorf("read manifests: %w", ctx.Err())
			}
			if err := r.document(d); err != nil {
				broken = append(broken, err)
			}
		}
	}
	nodes, services, problems := convert.Cluster(r.objects, o.Convert)
	for _, p := range problems {
		r.report(p)
	}
	snapshot, set := topology.NewSnapshot(nodes, services, o.Costs), r.policySet()
	r.unknownNames(&snapshot, set)
	return Result{
		Snapshot: snapshot,
		Objects:  r.objects,
		Problems: r.problems,
		Policies: set,
		Refused:  r.refused,
		Skipped:  r.skipped,
	}, errors.Join(broken...)
}
