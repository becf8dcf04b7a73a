// Package conf is what a load-balancing policy may say: one tree of fields with their JSON names, which the resource
// LoadBalancingPolicy embeds, which documents of a mesh are read into, and which the core merges and resolves.
//
// Nil means that an author said nothing about a field. The markers are what an API server checks; the core checks everything
// again. How fields merge is in their tags: an object merges field by field, a list or an object with merge:"whole" replaces what a
// weaker policy says, and an object with merge:"switch" says something by being there, even if it is empty. The package
// imports the standard library only and decides nothing.
package conf

import "reflect"

// Conf is a configuration as an author wrote it.
type Conf struct {
	// How an endpoint is chosen. Where no policy says it, the flag --algorithm of the agent does.
	// +optional
	LoadBalancer *LoadBalancer `json:"loadBalancer,omitempty"`

	// What a request's hash is made of, for RingHash and Maglev: the policies are asked in order, and each that finds something
	// adds to the hash. A request without a hash goes anywhere. An empty list takes away what weaker policies say.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	HashPolicies []HashPolicy `json:"hashPolicies,omitzero"`

	// What identifies an endpoint on a ring or table, so that it keeps its keys when its address changes.
	// +optional
	EndpointHashKey *EndpointHashKey `json:"endpointHashKey,omitempty" merge:"whole"`

	// Which endpoints are near, and where to go when those do not suffice.
	// +optional
	Locality Locality `json:"locality,omitzero"`

	// When an endpoint that fails sits out. A detector works only if its block is there; the rules that weir always has go on.
	// +optional
	OutlierDetection *OutlierDetection `json:"outlierDetection,omitempty"`

	// Lets new endpoints begin with less. Works with RoundRobin and LeastRequest, and where no policy names an algorithm.
	// +optional
	SlowStart *SlowStart `json:"slowStart,omitempty" merge:"whole"`

	// When fewer endpoints than this part, in percent from 0 to 100, are fit, the unfit get requests, too. 0: never.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[0-9]{1,3}(\.[0-9]{1,12})?$`
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="double(self) >= 0.0 && double(self) <= 100.0",message="want a percentage from 0 to 100"
	PanicThreshold *Number `json:"panicThreshold,omitempty"`
}

// DeepCopyInto copies everything that c points at into out.
func (c *Conf) DeepCopyInto(out *Conf) {
	deepCopy(reflect.ValueOf(out).Elem(), reflect.ValueOf(c).Elem())
}

// deepCopy copies a tree of structs, pointers, slices and plain values.
func deepCopy(to, from reflect.Value) {
	switch from.Kind() {
	case reflect.Pointer:
		if !from.IsNil() {
			to.Set(reflect.New(from.Type().Elem()))
			deepCopy(to.Elem(), from.Elem())
		}
	case reflect.Slice:
		if !from.IsNil() {
			to.Set(reflect.MakeSlice(from.Type(), from.Len(), from.Len()))
			for i := range from.Len() {
				deepCopy(to.Index(i), from.Index(i))
			}
		}
	case reflect.Struct:
		for i := range from.NumField() {
			deepCopy(to.Field(i), from.Field(i))
		}
	default:
		to.Set(from)
	}
}
