package conf

// Locality says which endpoints are near, and where to go when those do not suffice.
//
// +kubebuilder:validation:XValidation:rule="!has(self.disabled) || !self.disabled || !(has(self.affinity) || has(self.weights) || has(self.failover) || has(self.failoverThreshold) || has(self.maxSkew) || has(self.overflow))",message="disabled: true leaves nothing for affinity, weights, failover, failoverThreshold, maxSkew and overflow to do",fieldPath=".disabled"
type Locality struct {
	// True makes all endpoints equally near. By default those of the client's zone are preferred.
	// +optional
	Disabled *bool `json:"disabled,omitempty"`
	// The label that makes a zone, of pods or else of their nodes. The default is topology.kubernetes.io/zone.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	ZoneKey *string `json:"zoneKey,omitempty"`
	// Prefers endpoints inside the zone that share the client's value of a label. The first that an endpoint matches counts.
	// Either all have a weight or none has.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.all(a, has(a.weight)) || !self.exists(a, has(a.weight))",message="either every affinity has a weight or none has"
	// +kubebuilder:validation:XValidation:rule="self.filter(a, has(a.weight)).map(a, a.weight).sum() <= 4294967295",message="the weights sum to more than 4294967295"
	Affinity []Affinity `json:"affinity,omitzero"`
	// Gives endpoints fixed weights by a label of theirs, in the place of the client's zone. Endpoints that none matches are for
	// failover.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.map(a, a.weight).sum() <= 4294967295",message="the weights sum to more than 4294967295"
	Weights []Weight `json:"weights,omitzero"`
	// Where the traffic goes that the near endpoints do not take. An endpoint belongs to the first rule for the client's zone
	// that it matches; one that matches none is never used, not even in an outage. The default is one rule, Any.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Failover []Failover `json:"failover,omitzero"`
	// Percent of fit near endpoints, 1 to 100, below which others take a part of the traffic. By default only what the
	// endpoints do moves it.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[0-9]{1,3}(\.[0-9]{1,12})?$`
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="double(self) >= 1.0 && double(self) <= 100.0",message="want a percentage from 1 to 100"
	FailoverThreshold *Number `json:"failoverThreshold,omitempty"`
	// The most that the endpoints of a zone may be expected to get, in times of the mean of all zones, at least 1; "1.5" is at most
	// half as much again. What is more goes to other zones, also while the near ones are fit. By default only what the endpoints do
	// moves it.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[0-9]{1,6}(\.[0-9]{1,12})?$`
	// +kubebuilder:validation:MaxLength=19
	// +kubebuilder:validation:XValidation:rule="double(self) >= 1.0",message="want at least 1"
	MaxSkew *Number `json:"maxSkew,omitempty"`
	// How load moves to the endpoints of failover while the near ones are fit.
	// +optional
	Overflow Overflow `json:"overflow,omitzero"`
	// What it costs to go from a zone to another; the cheaper zone is asked first. What is left out is as in the agent's costs.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Costs []Cost `json:"costs,omitzero"`
}

// Affinity prefers endpoints that share the client's value of a label.
type Affinity struct {
	// The key of a label, of pods or else of their nodes, on both sides.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	Key string `json:"key"`
	// The weight of all endpoints together that match; those that match nothing have 1. By default 9, 90, 900 and so on, from the
	// last to the first.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4294967295
	Weight *int64 `json:"weight,omitempty"`
}

// Weight gives the endpoints with a value of a label a share of the traffic.
type Weight struct {
	// The key of a label, of pods or else of their nodes.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	Key string `json:"key"`
	// The value of the label.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Value string `json:"value"`
	// The weight of all of them together.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4294967295
	Weight int64 `json:"weight"`
}

// Failover is one rule for traffic that the near endpoints do not take.
type Failover struct {
	// The clients that the rule is for; by default all.
	// +optional
	From *FailoverFrom `json:"from,omitempty"`
	// Where the traffic goes.
	// +required
	To FailoverTo `json:"to"`
}

// FailoverFrom says which clients a rule is for.
type FailoverFrom struct {
	// The zones that clients are in.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Zones []string `json:"zones"`
}

// FailoverType is where a Failover goes.
type FailoverType string

// The types of failover.
const (
	FailoverAny       FailoverType = "Any"
	FailoverOnly      FailoverType = "Only"
	FailoverAnyExcept FailoverType = "AnyExcept"
	FailoverNone      FailoverType = "None" // terminal: no later rule counts
)

// FailoverTo says where traffic goes.
//
// +kubebuilder:validation:XValidation:rule="has(self.zones) == (self.type in ['Only', 'AnyExcept'])",message="zones goes with type Only or AnyExcept, and those with zones",fieldPath=".zones"
type FailoverTo struct {
	// Any zone; Only those in zones; AnyExcept those; or None, which ends the list for its clients.
	// +required
	// +kubebuilder:validation:Enum=Any;Only;AnyExcept;None
	Type FailoverType `json:"type"`
	// The zones of Only and AnyExcept.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Zones []string `json:"zones,omitempty"`
}

// OverflowMode is how load moves between zones while endpoints are healthy.
type OverflowMode string

// The modes of overflow.
const (
	OverflowAdaptive OverflowMode = "Adaptive" // weir's own law
	OverflowLoadBand OverflowMode = "LoadBand" // HAZL's band of requests in flight for each endpoint
	OverflowDisabled OverflowMode = "Disabled" // only failing health moves traffic
)

// Overflow says how load moves while the near endpoints are fit.
//
// +kubebuilder:validation:XValidation:rule="!has(self.loadBand) || !has(self.mode) || self.mode == 'LoadBand'",message="loadBand goes with mode LoadBand only",fieldPath=".loadBand"
type Overflow struct {
	// Adaptive (weir's own law, by latency, failures and queues), LoadBand (by requests in flight for each endpoint) or
	// Disabled (only failing health moves traffic). By default the service's annotation weir.dev/strategy counts, then the
	// agent's flag.
	// +optional
	// +kubebuilder:validation:Enum=Adaptive;LoadBand;Disabled
	Mode *OverflowMode `json:"mode,omitempty"`
	// The band of LoadBand.
	// +optional
	LoadBand *LoadBand `json:"loadBand,omitempty" merge:"whole"`
}

// LoadBand is a band of mean requests in flight for each active endpoint: above high endpoints are added, below low they are
// taken back.
//
// +kubebuilder:validation:XValidation:rule="double(self.low) > 0.0",message="want more than 0",fieldPath=".low"
// +kubebuilder:validation:XValidation:rule="double(self.low) < double(self.high)",message="low is not below high",fieldPath=".low"
type LoadBand struct {
	// The lower mark, as "0.8".
	// +required
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[0-9]{1,9}(\.[0-9]{1,12})?$`
	// +kubebuilder:validation:MaxLength=22
	Low Number `json:"low"`
	// The upper mark, as "2.0".
	// +required
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[0-9]{1,9}(\.[0-9]{1,12})?$`
	// +kubebuilder:validation:MaxLength=22
	High Number `json:"high"`
}

// Cost is what it costs to go from a zone to another.
type Cost struct {
	// The client's zone.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	From string `json:"from"`
	// The endpoint's zone.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	To string `json:"to"`
	// The cost, in units of your own.
	// +required
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[0-9]{1,9}(\.[0-9]{1,12})?$`
	// +kubebuilder:validation:MaxLength=22
	// +kubebuilder:validation:XValidation:rule="double(self) >= 0.0",message="want at least 0"
	Cost Number `json:"cost"`
}
