package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// LoadBalancingPolicyStatus is what became of a policy, in the shape that Gateway API gives to the status of every policy
// (PolicyStatus of GEP-713).
type LoadBalancingPolicyStatus struct {
	// What became of the policy at each of its targets, by controller.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Ancestors []PolicyAncestorStatus `json:"ancestors,omitempty"`
}

// PolicyAncestorStatus is what a controller makes of a policy at one target.
type PolicyAncestorStatus struct {
	// The target.
	// +required
	AncestorRef AncestorRef `json:"ancestorRef"`
	// The controller that says so; weir.dev/controller is weir.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ControllerName string `json:"controllerName"`
	// Accepted tells whether the policy is taken (Accepted) or why not (Conflicted, Invalid, TargetNotFound). Programmed
	// tells whether all that it says is in force (Programmed), only a part (PartiallyProgrammed, Overridden), or nothing yet
	// (Reconciling).
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// AncestorRef names a target.
type AncestorRef struct {
	// The API group of the target.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Group *string `json:"group,omitempty"`
	// The kind of the target.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Kind *string `json:"kind,omitempty"`
	// The namespace of the target.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace *string `json:"namespace,omitempty"`
	// The name of the target.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// The section of the target.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	SectionName *string `json:"sectionName,omitempty"`
	// The port of the target. Weir names ports by sectionName.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port *int32 `json:"port,omitempty"`
}

// Types of the conditions of a policy at a target.
const (
	ConditionAccepted   = "Accepted"
	ConditionProgrammed = "Programmed"
)

// Reasons of ConditionAccepted. All but the first go with the status False.
const (
	ReasonAccepted       = "Accepted"
	ReasonConflicted     = "Conflicted"     // another policy with the same target and clients says all of it otherwise
	ReasonInvalid        = "Invalid"        // the message names the fields
	ReasonTargetNotFound = "TargetNotFound" // the target, or its section, does not exist
)

// Reasons of ConditionProgrammed. PartiallyProgrammed goes with the status True, Reconciling with False; Overridden with
// False if nothing of the policy is left.
const (
	ReasonProgrammed          = "Programmed"
	ReasonPartiallyProgrammed = "PartiallyProgrammed" // the message names the fields without effect
	ReasonReconciling         = "Reconciling"         // nothing yet, or the last valid form of the policy where one was seen
	ReasonOverridden          = "Overridden"          // the message names the fields that a stronger policy says otherwise
)
