package l7

import (
	"net/http"
	"net/netip"
	"strings"
)

// isHopByHop tells whether a field concerns one connection only (RFC 9110 section 7.6.1, and the ones that RFC 2616
// knew). name is canonical.
func isHopByHop(name string) bool {
	switch name {
	case "Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer",
		"Transfer-Encoding", "Upgrade", "Http2-Settings":
		return true
	default:
		return false
	}
}

// copyEndToEnd copies into to what from says to more than its own connection.
func copyEndToEnd(to, from http.Header) {
	for name, values := range from {
		if !isHopByHop(name) {
			to[name] = values
		}
	}
	for _, field := range from["Connection"] {
		for token := range strings.SplitSeq(field, ",") {
			if name := strings.Trim(token, " \t"); name != "" {
				delete(to, http.CanonicalHeaderKey(name))
			}
		}
	}
}

// hasToken tells whether a comma-separated list contains a token, in any letter case.
func hasToken(fields []string, token string) bool {
	for _, field := range fields {
		for part := range strings.SplitSeq(field, ",") {
			if strings.EqualFold(strings.Trim(part, " \t"), token) {
				return true
			}
		}
	}
	return false
}

// upgradeOf gives the protocol that a message wants to change to; empty if none. h2c is not offered on: it is obsolete
// (RFC 9113 section 3.1), and each side of a proxy has its own HTTP version.
func upgradeOf(h http.Header) string {
	upgrade := h.Get("Upgrade")
	if upgrade == "" || !hasToken(h["Connection"], "upgrade") || hasToken(h["Upgrade"], "h2c") {
		return ""
	}
	return upgrade
}

// forward adds to h, an endpoint's, what the client would have told without a proxy between: its address, the scheme and
// the Host it asked for. A field that the client sent itself stays in front, unless clients are not trusted.
func (f *Forwarding) forward(h http.Header, client netip.AddrPort, asked string) {
	if f.Untrusted {
		for _, name := range []string{"X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "X-Forwarded-Port", "Forwarded"} {
			delete(h, name)
		}
	}
	ip := client.Addr().Unmap()
	add(h, "X-Forwarded-For", ip.String())
	if len(h["X-Forwarded-Proto"]) == 0 {
		h["X-Forwarded-Proto"] = []string{"http"}
	}
	if len(h["X-Forwarded-Host"]) == 0 && asked != "" {
		h["X-Forwarded-Host"] = []string{asked}
	}
	if f.Forwarded || len(h["Forwarded"]) > 0 {
		add(h, "Forwarded", forwardedElement(ip, asked))
	}
}

// forwardedElement is a forwarded-element of RFC 7239.
func forwardedElement(ip netip.Addr, asked string) string {
	node := ip.String()
	if ip.Is6() {
		node = `"[` + node + `]"`
	}
	element := "for=" + node + ";proto=http"
	if asked == "" {
		return element
	}
	return element + `;host="` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(asked) + `"`
}

// via adds the proxy to a Via field, if it has a name.
func (f *Forwarding) via(h http.Header, version string) {
	if f.Via != "" {
		add(h, "Via", version+" "+f.Via)
	}
}

// add puts a value behind those that a list field has. The old slice may belong to the other side and is not written to.
func add(h http.Header, name, value string) {
	if old := h[name]; len(old) > 0 {
		value = strings.Join(old, ", ") + ", " + value
	}
	h[name] = []string{value}
}
