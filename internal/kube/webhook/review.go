package webhook

import (
	"bytes"
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
	s := new(discoveryv1.EndpointSlice)
	if err := kjson.UnmarshalCaseSensitivePreserveInts(r.Object, s); err != nil {
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
	c := cursor{rest: body}
	c.members(func(key []byte) {
		if string(key) != "request" {
			c.value()
			return
		}
		c.members(func(key []byte) {
			isObject := string(key) == "object"
			if !isObject && string(key) != "oldObject" {
				c.value()
				return
			}
			envelope = append(envelope, body[c.from:c.at(body)]...)
			v := c.value()
			c.from = c.at(body)
			envelope = append(envelope, "null"...)
			if isObject {
				object = v
			}
		})
	})
	return append(envelope, body[c.from:]...), object
}

// cursor goes over JSON by its brackets and quotes. It proves nothing: what it steps over may be no JSON at all.
type cursor struct {
	rest []byte // what is ahead
	from int    // up to where the whole was copied
}

// at is the index in the whole of what is ahead.
func (c *cursor) at(whole []byte) int { return len(whole) - len(c.rest) }

// next gives the byte ahead after white space; 0 at the end.
func (c *cursor) next() byte {
	c.rest = bytes.TrimLeft(c.rest, " \t\r\n")
	if len(c.rest) == 0 {
		return 0
	}
	return c.rest[0]
}

// take steps over a byte if it is ahead.
func (c *cursor) take(b byte) bool {
	if c.next() != b {
		return false
	}
	c.rest = c.rest[1:]
	return true
}

// members calls each with the key, quotes off and escapes as they are, of each member of the object ahead; each has to
// step over the value. It stops where no object is, or none goes on.
func (c *cursor) members(each func(key []byte)) {
	if c.next() != '{' {
		c.value()
		return
	}
	c.rest = c.rest[1:]
	for c.next() == '"' {
		key := c.text()
		if !c.take(':') {
			return
		}
		each(bytes.Trim(key, `"`))
		if !c.take(',') {
			break
		}
	}
	c.take('}')
}

// value steps over the value ahead and gives it.
func (c *cursor) value() []byte {
	first, start := c.next(), c.rest
	switch first {
	case '"':
		return c.text()
	case '{', '[':
		c.nest()
	default:
		if end := bytes.IndexAny(c.rest, ",]} \t\r\n"); end >= 0 {
			c.rest = c.rest[end:]
		} else {
			c.rest = nil
		}
	}
	return start[:len(start)-len(c.rest)]
}

// nest steps over the object or array ahead.
func (c *cursor) nest() {
	depth := 0
	for len(c.rest) > 0 {
		switch c.rest[0] {
		case '"':
			c.text()
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		c.rest = c.rest[1:]
		if depth == 0 {
			return
		}
	}
}

// text steps over the string ahead and gives it with its quotes.
func (c *cursor) text() []byte {
	for i := 1; i < len(c.rest); i++ {
		switch c.rest[i] {
		case '\\':
			i++
		case '"':
			text := c.rest[:i+1]
			c.rest = c.rest[i+1:]
			return text
		}
	}
	text := c.rest
	c.rest = nil
	return text
}
