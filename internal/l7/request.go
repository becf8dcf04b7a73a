package l7

import (
	"net/http"
	"strings"

	"golang.org/x/net/http2/hpack"
)

// request is what rules ask of a request, whichever engine read it. It makes no garbage, and is valid as long as the request is.
type request struct {
	method    string
	target    string // path and query as they were sent, without what an absolute target has before them
	authority string // the host that is asked for, with its port if one is named
	version   string // as in HTTP/2.0
	fields    fields
}

// path is the target without the query.
func (r *request) path() string {
	path, _, _ := strings.Cut(r.target, "?")
	return path
}

// query is what follows the path, without the question mark.
func (r *request) query() string {
	_, query, _ := strings.Cut(r.target, "?")
	return query
}

// fields are a head's or a trailer section's, in order of arrival.
type fields struct {
	list []hpack.HeaderField // names in lower case
}

// fieldName is a field's name in both spellings.
type fieldName struct{ canonical, lower string }

func nameOf(name string) fieldName {
	canonical := http.CanonicalHeaderKey(name)
	return fieldName{canonical: canonical, lower: strings.ToLower(canonical)}
}

// first gives a field's first value; empty if there is none.
func (f *fields) first(name fieldName) string {
	for i := range f.list {
		if f.list[i].Name == name.lower {
			return f.list[i].Value
		}
	}
	return ""
}

// values gives all of a field's values in their order of arrival. few is where they may be put; what is given back must not be written to.
func (f *fields) values(name fieldName, few []string) []string {
	for i := range f.list {
		if f.list[i].Name == name.lower {
			few = append(few, f.list[i].Value)
		}
	}
	return few
}
