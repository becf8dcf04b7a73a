package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-lb/weir/api/conf"
)

// LoadBalancingPolicy says how requests to services are spread over their endpoints: which algorithm, what a request's hash
// is made of, which endpoints are near and where to go when those do not suffice, and which are ejected.
//
// Policies are inherited: what one leaves out, a weaker one may say, and at last the default. A policy for a port of a
// service is stronger than one for the service, that one stronger than one for the namespace, and that one stronger than one
// for the mesh; one from the clients' namespace is stronger than one from the service's; and one that selects clients is
// stronger than all that select none. Of equals the older one wins, then the one whose name comes first.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=loadbalancingpolicies,singular=loadbalancingpolicy,shortName=lbp,categories={weir,gateway-api},scope=Namespaced
// +kubebuilder:metadata:labels="gateway.networking.k8s.io/policy=Inherited"
// +kubebuilder:printcolumn:name="Targets",type=string,JSONPath=`.spec.targetRefs[*].name`,description="What the policy is about"
// +kubebuilder:printcolumn:name="Algorithm",type=string,JSONPath=`.spec.loadBalancer.type`,description="How an endpoint is chosen, if the policy says so"
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.ancestors[?(@.controllerName=="weir.dev/controller")].conditions[?(@.type=="Accepted")].status`,description="Whether the first target takes the policy"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Programmed",type=string,priority=1,JSONPath=`.status.ancestors[?(@.controllerName=="weir.dev/controller")].conditions[?(@.type=="Programmed")].reason`,description="What becomes of it at the first target"
type LoadBalancingPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// What the policy says.
	// +required
	Spec LoadBalancingPolicySpec `json:"spec"`
	// What became of it, written by controllers.
	// +optional
	Status LoadBalancingPolicyStatus `json:"status,omitzero"`
}

// LoadBalancingPolicyList is a list of policies.
//
// +kubebuilder:object:root=true
type LoadBalancingPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []LoadBalancingPolicy `json:"items"`
}

// LoadBalancingPolicySpec is what a policy says. What it leaves out, weaker policies or the defaults say.
//
// +kubebuilder:validation:XValidation:rule="!self.targetRefs.exists(t, t.kind in ['HTTPRoute', 'GRPCRoute']) || !(has(self.loadBalancer) || has(self.endpointHashKey) || has(self.locality) || has(self.outlierDetection) || has(self.slowStart) || has(self.panicThreshold))",message="a policy for an HTTPRoute or a GRPCRoute may only say hashPolicies and clients",fieldPath=".targetRefs"
// +kubebuilder:validation:XValidation:rule="!has(self.slowStart) || !has(self.loadBalancer) || self.loadBalancer.type in ['RoundRobin', 'LeastRequest']",message="slowStart works with RoundRobin and LeastRequest only",fieldPath=".slowStart"
type LoadBalancingPolicySpec struct {
	// The destinations that the policy is about, 1 to 16, each once: a Service or a ServiceImport or a port of one, the policy's own
	// Namespace, the Mesh default (from the namespace weir-system only), an HTTPRoute or GRPCRoute or a rule of one.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, a == b))",message="each target may be there once"
	TargetRefs []TargetRef `json:"targetRefs"`

	// The clients whose requests the policy is about; by default all, or for a Service in another namespace the clients
	// in the policy's own. Everything that is said must hold.
	// +optional
	Clients *Clients `json:"clients,omitempty"`

	conf.Conf `json:",inline"`
}

// TargetRef names a destination.
//
// +kubebuilder:validation:XValidation:rule="size(self.group) == 0 && self.kind in ['Service', 'Namespace'] || self.group == 'multicluster.x-k8s.io' && self.kind == 'ServiceImport' || self.group == 'weir.dev' && self.kind == 'Mesh' || self.group == 'gateway.networking.k8s.io' && self.kind in ['HTTPRoute', 'GRPCRoute']",message="want Service or Namespace of the group \"\", ServiceImport of multicluster.x-k8s.io, Mesh of weir.dev, HTTPRoute or GRPCRoute of gateway.networking.k8s.io",fieldPath=".kind"
// +kubebuilder:validation:XValidation:rule="self.kind != 'Mesh' || self.name == 'default'",message="the Mesh is called default",fieldPath=".name"
// +kubebuilder:validation:XValidation:rule="!has(self.sectionName) || !(self.kind in ['Mesh', 'Namespace'])",message="a Mesh or a Namespace has no sections",fieldPath=".sectionName"
// +kubebuilder:validation:XValidation:rule="!has(self.__namespace__) || self.kind in ['Service', 'ServiceImport']",message="only a Service or a ServiceImport may be in another namespace",fieldPath=".namespace"
type TargetRef struct {
	// The API group of the target: empty for a Service and a Namespace.
	// +optional
	// +default=""
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group"`
	// The kind of the target: Service, ServiceImport, Namespace, Mesh, HTTPRoute or GRPCRoute.
	// +required
	// +kubebuilder:validation:Enum=Service;ServiceImport;Namespace;Mesh;HTTPRoute;GRPCRoute
	Kind string `json:"kind"`
	// The name of the target; default for the Mesh, the policy's own namespace for a Namespace.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// The namespace of a Service or ServiceImport; by default the policy's own. With another one the policy is a consumer's: it
	// is about the requests of the clients in its own namespace only, unless that is weir-system, whose policies are for all.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace *string `json:"namespace,omitempty"`
	// The name of a port of the service, or of a rule of the route; by default all of it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SectionName *string `json:"sectionName,omitempty"`
}

// Clients selects the clients whose requests a policy is about.
type Clients struct {
	// The zones that clients are in; by default any.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Zones []string `json:"zones,omitempty"`
	// The labels of clients' pods.
	// +optional
	PodSelector *metav1.LabelSelector `json:"podSelector,omitempty"`
	// The labels of the namespaces that clients' pods are in.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
	// The service that clients are endpoints of.
	// +optional
	Service *ServiceRef `json:"service,omitempty"`
}

// ServiceRef names a service.
type ServiceRef struct {
	// The namespace of the service.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`
	// The name of the service.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}
