package webhook

import (
	"encoding/json"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"
)

// review is the part of an AdmissionReview request that is read.
type review struct {
	metav1.TypeMeta `json:",inline"`
	Request         *request `json:"request"`
}

type request struct {
	UID         types.UID                   `json:"uid"`
	Resource    metav1.GroupVersionResource `json:"resource"`
	SubResource string                      `json:"subResource"`
	Namespace   string                      `json:"namespace"`
	Operation   admissionv1.Operation       `json:"operation"`
	Object      json.RawMessage             `json:"object"`
}

// parse reads a review. Its old object is left out and not looked into: nothing depends on it, and it is half of the
// bytes.
func parse(body []byte) (*request, error) {
	envelope, object := cut(body)
	var r review
	if err := kjson.UnmarshalCaseSensitivePreserveInts(envelope, &r); err != nil {
		return nil, fmt.Errorf("read the review: %w", err)
	}
	want := admissionv1.SchemeGroupVersion.WithKind("AdmissionReview")
	if got := r.GroupVersionKind(); got != want {
		return nil, fmt.Errorf("want %s, got apiVersion %q and kind %q", want, r.APIVersion, r.Kind)
	}
	if r.Request == nil || r.Request.UID == "" {
		return nil, errors.New("the review has no request, or one without a uid")
	}
	if object != nil {
		r.Request.Object = object
	}
	return r.Request, nil
}

// concerns tells whether the request writes an EndpointSlice, of the version that is asked for.
func (r *request) concerns() bool {
	return r.Resource.Group == discoveryv1.GroupName && r.Resource.Version == "v1" &&
		r.Resource.Resource == "endpointslices" && r.SubResource == "" &&
		(r.Operation == admissionv1.Create || r.Operation == admissionv1.Update)
}

// slice reads the incoming object. One that was not given a namespace yet is in that of the request.
func (r *request) slice() (*discoveryv1.EndpointSlice, error) {
	s, err := read(r.Object)
	if err != nil {
		return nil, fmt.Errorf("read the object: %w", err)
	}
	if want := discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"); s.GroupVersionKind() != want {
		return nil, fmt.Errorf("want an object of %s, got apiVersion %q and kind %q", want, s.APIVersion, s.Kind)
	}
	if s.Namespace == "" {
		s.Namespace = r.Namespace
	}
	return s, nil
}

// cut takes request.object and request.oldObject out of a review, leaving null in their places, and gives what is left
// and the object; no object when there is none, or where the review is not JSON.
//
// encoding/json goes twice over whatever it skips or keeps raw, and the objects are nearly all of a review.
func cut(body []byte) (envelope, object []byte) {
	c := cursor{whole: body, rest: body}
	c.members(func(key []byte) {
		if string(key) != "request" {
			c.value()
			return
		}
		c.members(func(key []byte) {
			switch string(key) {
			case "object":
				object = c.lift()
			case "oldObject":
				c.lift()
			default:
				c.value()
			}
		})
	})
	return c.left(), object
}
