package conf

// OutlierDetection says when an endpoint that fails sits out, and for how long.
type OutlierDetection struct {
	// How often successRate and failurePercentage are looked at. The default is 10s.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="want more than 0s"
	Interval *Duration `json:"interval,omitempty"`
	// How long an endpoint sits out the first time; each further time in a row it is longer by as much. The default is 30s.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="want more than 0s"
	BaseEjectionTime *Duration `json:"baseEjectionTime,omitempty"`
	// The longest that an endpoint sits out. The default is 300s, or baseEjectionTime where that is longer.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="want more than 0s"
	MaxEjectionTime *Duration `json:"maxEjectionTime,omitempty"`
	// The greatest part of the endpoints that sits out at a time, in percent from 0 to 100.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[0-9]{1,3}(\.[0-9]{1,12})?$`
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="double(self) >= 0.0 && double(self) <= 100.0",message="want a percentage from 0 to 100"
	MaxEjectionPercent *Number `json:"maxEjectionPercent,omitempty"`
	// Ejects an endpoint after failures in a row.
	// +optional
	Consecutive *Consecutive `json:"consecutive,omitempty"`
	// Ejects endpoints that answer well less often than the others.
	// +optional
	SuccessRate *SuccessRate `json:"successRate,omitempty" merge:"switch"`
	// Ejects endpoints that fail more often than a fixed part of the requests.
	// +optional
	FailurePercentage *FailurePercentage `json:"failurePercentage,omitempty" merge:"switch"`
}

// Consecutive ends an endpoint's turn after so many failures of a kind in a row; 0 or nothing: that kind does not.
type Consecutive struct {
	// Answers 5xx, and requests that were never answered.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ServerErrors *int32 `json:"serverErrors,omitempty"`
	// Answers 502, 503 and 504, and requests that were never answered.
	// +optional
	// +kubebuilder:validation:Minimum=0
	GatewayErrors *int32 `json:"gatewayErrors,omitempty"`
	// Connections refused or reset, and time-outs.
	// +optional
	// +kubebuilder:validation:Minimum=0
	LocalErrors *int32 `json:"localErrors,omitempty"`
}

// SuccessRate ejects endpoints that answer well less often than the others.
type SuccessRate struct {
	// How many standard deviations below the mean an endpoint may be. The default is "1.9".
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[0-9]{1,6}(\.[0-9]{1,12})?$`
	// +kubebuilder:validation:MaxLength=19
	// +kubebuilder:validation:XValidation:rule="double(self) >= 0.0",message="want at least 0"
	Stdev *Number `json:"stdev,omitempty"`
	// The least number of endpoints with requestVolume to compare. The default is 5.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MinimumHosts *int32 `json:"minimumHosts,omitempty"`
	// The least number of requests in an interval for an endpoint to count. The default is 100.
	// +optional
	// +kubebuilder:validation:Minimum=1
	RequestVolume *int32 `json:"requestVolume,omitempty"`
}

// FailurePercentage ejects endpoints that fail too large a part of the requests.
type FailurePercentage struct {
	// The part of an interval's requests, in percent from 0 to 100, at which an endpoint sits out. The default is 85.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[0-9]{1,3}(\.[0-9]{1,12})?$`
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="double(self) >= 0.0 && double(self) <= 100.0",message="want a percentage from 0 to 100"
	Threshold *Number `json:"threshold,omitempty"`
	// The least number of endpoints with requestVolume. The default is 5.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MinimumHosts *int32 `json:"minimumHosts,omitempty"`
	// The least number of requests in an interval for an endpoint to count. The default is 50.
	// +optional
	// +kubebuilder:validation:Minimum=1
	RequestVolume *int32 `json:"requestVolume,omitempty"`
}

// SlowStart gives a new endpoint less for a while: its weight × max(minWeightPercent/100, (age/window)^(1/aggression)).
type SlowStart struct {
	// How long an endpoint is new.
	// +required
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="want more than 0s"
	Window Duration `json:"window"`
	// The part of its weight that an endpoint begins with, in percent from 0 to 100. The default is 10.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[0-9]{1,3}(\.[0-9]{1,12})?$`
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="double(self) >= 0.0 && double(self) <= 100.0",message="want a percentage from 0 to 100"
	MinWeightPercent *Number `json:"minWeightPercent,omitempty"`
	// How the weight grows: "1.0", the default, evenly; more, faster at first.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[0-9]{1,6}(\.[0-9]{1,12})?$`
	// +kubebuilder:validation:MaxLength=19
	// +kubebuilder:validation:XValidation:rule="double(self) > 0.0",message="want more than 0"
	Aggression *Number `json:"aggression,omitempty"`
}
