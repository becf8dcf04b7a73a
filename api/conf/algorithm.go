package conf

// Algorithm is how an endpoint is chosen.
type Algorithm string

// The algorithms.
const (
	RoundRobin   Algorithm = "RoundRobin"
	LeastRequest Algorithm = "LeastRequest"
	Random       Algorithm = "Random"
	RingHash     Algorithm = "RingHash"
	Maglev       Algorithm = "Maglev"
)

// IsHashing tells whether the algorithm follows a request's hash.
func (a Algorithm) IsHashing() bool { return a == RingHash || a == Maglev }

// LoadBalancer says how an endpoint is chosen. Only the block that type names may be there. A stronger policy with another
// type replaces all of it.
//
// +kubebuilder:validation:XValidation:rule="!has(self.leastRequest) || self.type == 'LeastRequest'",message="leastRequest goes with type LeastRequest only",fieldPath=".leastRequest"
// +kubebuilder:validation:XValidation:rule="!has(self.ringHash) || self.type == 'RingHash'",message="ringHash goes with type RingHash only",fieldPath=".ringHash"
// +kubebuilder:validation:XValidation:rule="!has(self.maglev) || self.type == 'Maglev'",message="maglev goes with type Maglev only",fieldPath=".maglev"
type LoadBalancer struct {
	// The algorithm: RoundRobin (in turn, by weight), LeastRequest (the one of a few random endpoints with the fewest open
	// requests), Random, RingHash or Maglev (by the request's hash, which hashPolicies makes).
	// +required
	// +kubebuilder:validation:Enum=RoundRobin;LeastRequest;Random;RingHash;Maglev
	Type Algorithm `json:"type"`
	// Of LeastRequest.
	// +optional
	LeastRequest *LeastRequestConf `json:"leastRequest,omitempty"`
	// Of RingHash.
	// +optional
	RingHash *RingHashConf `json:"ringHash,omitempty"`
	// Of Maglev.
	// +optional
	Maglev *MaglevConf `json:"maglev,omitempty"`

	// Whole is set by a merge alone: weaker load balancers do not count, though they be of the same type, because a policy
	// between has another type. Without it the merge were not associative.
	Whole bool `json:"-"`
}

// LeastRequestConf configures the algorithm of that name.
type LeastRequestConf struct {
	// How many endpoints are drawn at random to choose from; at least 2, the default.
	// +optional
	// +kubebuilder:validation:Minimum=2
	ChoiceCount *int32 `json:"choiceCount,omitempty"`
	// How much open requests count against the weight of an endpoint where weights differ: 0 not at all, 1 is the default.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[0-9]{1,6}(\.[0-9]{1,12})?$`
	// +kubebuilder:validation:MaxLength=19
	// +kubebuilder:validation:XValidation:rule="double(self) >= 0.0",message="want at least 0"
	ActiveRequestBias *Number `json:"activeRequestBias,omitempty"`
}

// HashFunction is how endpoints are hashed onto a ring.
type HashFunction string

// The hash functions.
const (
	XXHash      HashFunction = "XXHash"
	MurmurHash2 HashFunction = "MurmurHash2"
)

// RingHashConf configures the algorithm of that name.
//
// +kubebuilder:validation:XValidation:rule="!has(self.minRingSize) || !has(self.maxRingSize) || self.minRingSize <= self.maxRingSize",message="minRingSize is above maxRingSize",fieldPath=".minRingSize"
type RingHashConf struct {
	// How endpoints are hashed onto the ring: XXHash (the default) or MurmurHash2.
	// +optional
	// +kubebuilder:validation:Enum=XXHash;MurmurHash2
	HashFunction *HashFunction `json:"hashFunction,omitempty"`
	// The least number of entries of the ring. More entries keep to the weights better. The default is 1024.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=8388608
	MinRingSize *int64 `json:"minRingSize,omitempty"`
	// The greatest number of entries of the ring, which bounds the memory. The default is 8388608.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=8388608
	MaxRingSize *int64 `json:"maxRingSize,omitempty"`
}

// MaglevConf configures the algorithm of that name.
type MaglevConf struct {
	// The number of entries of the table: a prime up to 5000011, far above the number of endpoints. The default is 65537. That
	// it is a prime is checked by the controller, which says so in the status.
	// +optional
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=5000011
	TableSize *int64 `json:"tableSize,omitempty"`
}

// HashPolicyType is what a hash is made of.
type HashPolicyType string

// The types of hash policies.
const (
	HashHeader         HashPolicyType = "Header"
	HashCookie         HashPolicyType = "Cookie"
	HashSourceIP       HashPolicyType = "SourceIP"
	HashQueryParameter HashPolicyType = "QueryParameter"
	HashFilterState    HashPolicyType = "FilterState"
)

// HashPolicy is one step of making a request's hash. Only the block that type names may be there, and it must.
//
// +kubebuilder:validation:XValidation:rule="has(self.header) == (self.type == 'Header')",message="header goes with type Header, and that with header",fieldPath=".header"
// +kubebuilder:validation:XValidation:rule="has(self.cookie) == (self.type == 'Cookie')",message="cookie goes with type Cookie, and that with cookie",fieldPath=".cookie"
// +kubebuilder:validation:XValidation:rule="has(self.queryParameter) == (self.type == 'QueryParameter')",message="queryParameter goes with type QueryParameter, and that with queryParameter",fieldPath=".queryParameter"
// +kubebuilder:validation:XValidation:rule="has(self.filterState) == (self.type == 'FilterState')",message="filterState goes with type FilterState, and that with filterState",fieldPath=".filterState"
type HashPolicy struct {
	// What is hashed: a Header, a Cookie, the SourceIP of the client, a QueryParameter, or a FilterState, which is something
	// else that the proxy knows of the connection or request.
	// +required
	// +kubebuilder:validation:Enum=Header;Cookie;SourceIP;QueryParameter;FilterState
	Type HashPolicyType `json:"type"`
	// If there is a hash after this step, it is final, and the steps that follow are left out.
	// +optional
	Terminal *bool `json:"terminal,omitempty"`
	// The header to hash.
	// +optional
	Header *HeaderKey `json:"header,omitempty"`
	// The cookie to hash.
	// +optional
	Cookie *CookieKey `json:"cookie,omitempty"`
	// The parameter of the URL's query to hash.
	// +optional
	QueryParameter *QueryParameterKey `json:"queryParameter,omitempty"`
	// The attribute to hash.
	// +optional
	FilterState *FilterStateKey `json:"filterState,omitempty"`
}

// HeaderKey names a header.
type HeaderKey struct {
	// The name of the header, in any letter case.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name"`
}

// CookieKey names a cookie.
type CookieKey struct {
	// The name of the cookie.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name"`
	// How long a cookie lives that is made for a client without one: whole seconds as in 1h, or 0s for a cookie that ends with the
	// browser. By default none is made.
	// +optional
	TTL *Duration `json:"ttl,omitempty"`
	// The path of a cookie that is made; begins with a slash. By default the attribute is left out.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^/`
	Path *string `json:"path,omitempty"`
}

// QueryParameterKey names a parameter of the URL's query.
type QueryParameterKey struct {
	// The name of the parameter.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name"`
}

// FilterStateKey names something else that the proxy knows.
type FilterStateKey struct {
	// The key of the attribute.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Key string `json:"key"`
}

// EndpointHashKeyType is what endpoints are hashed by.
type EndpointHashKeyType string

// The types of endpoint hash keys.
const (
	HashKeyAddress    EndpointHashKeyType = "Address" // ip:port
	HashKeyPodName    EndpointHashKeyType = "PodName"
	HashKeyLabel      EndpointHashKeyType = "Label"      // of the pod
	HashKeyAnnotation EndpointHashKeyType = "Annotation" // of the pod
)

// EndpointHashKey says what identifies an endpoint on a ring or table. An endpoint that lacks it goes by its address.
//
// +kubebuilder:validation:XValidation:rule="has(self.key) == (self.type in ['Label', 'Annotation'])",message="key goes with type Label or Annotation, and those with key",fieldPath=".key"
type EndpointHashKey struct {
	// Address (the default: IP and port), PodName, or a Label or an Annotation of the pod.
	// +required
	// +kubebuilder:validation:Enum=Address;PodName;Label;Annotation
	Type EndpointHashKeyType `json:"type"`
	// The key of the label or annotation.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	Key *string `json:"key,omitempty"`
}
