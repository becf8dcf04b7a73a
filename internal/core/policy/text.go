package policy

import (
	"github.com/weir-lb/weir/internal/core/reason"
)

// String names the document for people: its kind, namespace/name, and where it was read.
func (o Origin) String() string {
	return reason.Finding{Position: o.Source, Object: o.Object()}.Author()
}

// isSameDocument tells whether both are entries of one document.
func (o Origin) isSameDocument(other Origin) bool { return o.document() == other.document() }

// Object names the document.
func (o Origin) Object() reason.Object {
	return reason.Object{Kind: string(o.Dialect), Namespace: o.Namespace, Name: o.Name}
}

// Finding is a warning about what was written here; field is in the CRD's spelling, below spec.
func (o Origin) Finding(field string, code reason.Code, message string) reason.Finding {
	return reason.Finding{
		Position: o.Source, Object: o.Object(), Entry: o.Entry, Field: field, Reason: code, Message: message,
	}
}
