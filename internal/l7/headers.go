package l7

import (
	"net/netip"
	"strings"
)

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
