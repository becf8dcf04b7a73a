package policy

// String names the document for people: its kind, namespace/name, and where it was read.
func (o Origin) String() string {
	name := string(o.Dialect) + " " + o.Name
	if o.Namespace != "" {
		name = string(o.Dialect) + " " + o.Namespace + "/" + o.Name
	}
	if o.Source != "" {
		name += " (" + o.Source + ")"
	}
	return name
}

// isSameDocument tells whether both are entries of one document.
func (o Origin) isSameDocument(other Origin) bool { return o.document() == other.document() }
