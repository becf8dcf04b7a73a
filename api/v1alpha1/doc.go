// Package v1alpha1 is the resource that tells weir how to balance load: LoadBalancingPolicy, of the API group weir.dev.
//
// The types carry what the API server checks (patterns, limits and CEL rules); what it cannot check, weir's controller does,
// and says so in the status. Nil means that the policy says nothing about a field, so that a weaker policy or the default
// counts. The package decides nothing.
//
// Rules say size(x) == 0 for the empty text, because gofmt makes a typographic quote of two single ones in a comment.
//
// +kubebuilder:object:generate=true
// +groupName=weir.dev
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Names of the resource.
const (
	Group    = "weir.dev"
	Version  = "v1alpha1"
	Kind     = "LoadBalancingPolicy"
	Resource = "loadbalancingpolicies"
)

// GroupVersion is the group and the version of the types.
func GroupVersion() schema.GroupVersion { return schema.GroupVersion{Group: Group, Version: Version} }

// AddToScheme lets s know the types.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion(), new(LoadBalancingPolicy), new(LoadBalancingPolicyList))
	metav1.AddToGroupVersion(s, GroupVersion())
	return nil
}
