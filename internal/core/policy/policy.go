// Package policy answers which load-balancing configuration holds for a client and a destination, and where each field of
// it comes from.
//
// Documents of two dialects, the CRD LoadBalancingPolicy and the mesh's own, become Rules: clients, a target, and a Conf
// that says only what its author said. Resolve folds the rules that apply, weakest first, and fills in the defaults; Place
// tells what part an endpoint has for a client under the result. There is one validator, one order and one merge for both
// dialects. The package is pure: it knows no clock, no file and no API, and never changes what it was given.
package policy

import (
	"time"

	"github.com/weir-lb/weir/internal/core/reason"

	"github.com/weir-lb/weir/internal/core/topology"
)

// Set is all that decides about load balancing at one instant. It is immutable, what it points at too.
type Set struct {
	Rules []Rule // valid ones, in any order
	// Refused are the documents that are refused as they stand now; what Rules has of them is their last good form.
	Refused []Origin
	Routes  []Route // HTTPRoutes and GRPCRoutes, whose rules hash policies may be attached to
	// What clients and endpoints are known by. A pod, namespace or node that is missing has no labels, but for
	// kubernetes.io/metadata.name of a namespace and kubernetes.io/hostname of a node, which are their names.
	Pods       []Pod             // sorted by namespace and name
	Namespaces map[string]Labels // by name
	Nodes      map[string]Labels // by name

	index *index // of NewSet; nil: made anew for each question
}

// Labels are labels, or annotations, of an object.
type Labels map[string]string

// Pod is what is known of a pod.
type Pod struct {
	Namespace, Name string
	Node            string
	IPs             []string // as in its status; empty while it has none, and for pods on the host's network
	Labels          Labels
	Annotations     Labels
}

// Dialect is the language that a document is written in.
type Dialect string

// The dialects.
const (
	DialectCRD                       Dialect = "LoadBalancingPolicy"
	DialectMeshLoadBalancing         Dialect = "MeshLoadBalancing"
	DialectMeshLoadBalancingStrategy Dialect = "MeshLoadBalancingStrategy"
)

// IsMesh tells whether it is one of the mesh's own.
func (d Dialect) IsMesh() bool { return d != DialectCRD }

// Origin is where a rule was written.
type Origin struct {
	Dialect   Dialect
	Namespace string // empty for a mesh document
	Name      string
	Entry     int             // which of the document's destinations, from 0
	Created   time.Time       // zero: not known, as for documents in files
	Source    reason.Position // zero: from an API server
}

// Rule is what a document says about one destination.
type Rule struct {
	Origin  Origin
	Clients Clients
	Target  Target
	Conf    Conf
}

// Clients selects the clients that a rule is about. The zero value selects all; every field that is set must hold.
type Clients struct {
	Zones      []topology.Zone       // empty: any
	Namespace  string                // of a consumer's policy: its own; empty: any
	Namespaces Selector              // on the labels of the client pod's namespace
	Pods       Selector              // on the client pod's labels
	Service    *topology.ServiceName // clients are this service's own endpoints; nil: any
}

// Selector is a list of requirements that must all hold; empty selects everything. Nil and empty are the same.
type Selector []Requirement

// Requirement is one condition on labels (metav1.LabelSelectorRequirement).
type Requirement struct {
	Key      string
	Operator Operator
	Values   []string // one or more for In and NotIn, none otherwise
}

// Operator is how a Requirement compares.
type Operator string

// The operators.
const (
	In           Operator = "In"
	NotIn        Operator = "NotIn"
	Exists       Operator = "Exists"
	DoesNotExist Operator = "DoesNotExist"
)

// TargetKind is what kind of thing a rule is about.
type TargetKind string

// The kinds of targets, weakest first.
const (
	TargetMesh          TargetKind = "Mesh"      // every destination
	TargetNamespace     TargetKind = "Namespace" // every destination in a namespace
	TargetService       TargetKind = "Service"
	TargetServiceImport TargetKind = "ServiceImport" // the Service of that name, which the import is reached by
	TargetHTTPRoute     TargetKind = "HTTPRoute"     // hash policies only
	TargetGRPCRoute     TargetKind = "GRPCRoute"     // hash policies only
)

// Target is a destination. Namespace and Name are empty for a Mesh; the Namespace of a Namespace is its name, which Name may
// repeat.
type Target struct {
	Kind      TargetKind
	Namespace string // empty, in a mesh document: the services of that name in all namespaces
	Name      string
	Section   string // the name or number of a service's port, or the name of a route's rule; empty: all of it
}

// RootNamespace is where policies for the whole mesh live, and those of the mesh's operators.
const RootNamespace = "weir-system"
