package l7

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// target gives the URL that makes net/http send an endpoint the target that the client sent: byte for byte where that
// is safe, with the bytes escaped that do not belong there where it is not (HTTP/2 lets them pass). An absolute target
// loses its scheme and authority; the latter is the request's Host by then.
func target(r *http.Request, endpoint string) *url.URL {
	u := &url.URL{Scheme: "http", Host: endpoint}
	asked := r.RequestURI
	if asked == "*" || strings.HasPrefix(asked, "/") && !strings.HasPrefix(asked, "//") && isTarget(asked) {
		u.Opaque = asked
		return u
	}
	u.Path, u.RawPath, u.ForceQuery = r.URL.Path, r.URL.RawPath, r.URL.ForceQuery
	if strings.HasPrefix(asked, "/") {
		path, _, _ := strings.Cut(asked, "?")
		u.RawPath = escape(path, isPathByte)
	}
	u.RawQuery = escape(r.URL.RawQuery, func(c byte) bool { return c > ' ' && c != 0x7f && c != '#' })
	return u
}

// isPathByte tells whether net/url leaves a byte of an escaped path as it is.
func isPathByte(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	default:
		return c != 0 && strings.IndexByte("/%-_.~!$&'()*+,;=:@[]", c) >= 0
	}
}

// escape replaces the bytes that are not allowed by percent-encoding.
func escape(s string, allowed func(byte) bool) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; allowed(c) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
