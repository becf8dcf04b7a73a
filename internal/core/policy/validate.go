package policy

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/weir-lb/weir/internal/core/reason"
)

// Context is what a Conf is judged by besides itself.
type Context struct {
	Target  Target
	Dialect Dialect
}

// The bounds of a document: far above what people write, and low enough that what many documents come to stays cheap.
const (
	MaxHashPolicies   = 16
	MaxAffinity       = 8 // default weights are up to 9·10⁷ then; 32 bits hold no more than 9 of them
	MaxWeights        = 64
	MaxFailover       = 32
	MaxZones          = 64 // of one list
	MaxCosts          = 256
	MaxRequirements   = 32 // of one selector
	MaxValues         = 64 // of one requirement
	MaxChoiceCount    = 100
	MaxNameLength     = 256 // of a header, a cookie, a query parameter, a filter state key
	MaxPathLength     = 1024
	MaxZoneNameLength = 63  // a label's value
	MaxKeyLength      = 317 // of a label or annotation: a prefix of 253, a slash and a name of 63
	MaxCount          = math.MaxInt32
	MaxDuration       = 1_000_000 * time.Hour
)

// Validate finds what is wrong with c; nothing if it is sound. It is total: what a decoder let through never makes it panic.
func Validate(c *Conf, x Context) []reason.Finding {
	v := &validator{dialect: x.Dialect}
	if x.Target.isRoute() {
		v.onlyHashPolicies(c)
	} else {
		v.loadBalancer(c)
		v.endpointHashKey(c)
		v.locality(&c.Locality)
		v.outlier(block(c.OutlierDetection))
		v.slowStart(c)
		v.bounds(c)
	}
	v.hashPolicies(c)
	return v.findings
}

// validator gathers findings.
type validator struct {
	dialect  Dialect
	findings []reason.Finding
}

func (v *validator) refuse(path, format string, args ...any) {
	v.findings = append(v.findings, reason.Finding{
		Field: path, Severity: reason.Refused, Reason: reason.Invalid, Message: fmt.Sprintf(format, args...),
	})
}

func (v *validator) warn(path, format string, args ...any) {
	v.findings = append(v.findings, reason.Finding{Field: path, Reason: reason.Unused, Message: fmt.Sprintf(format, args...)})
}

// entries refuses a list that is too long and gives how many entries are checked.
func (v *validator) entries(path string, n, limit int) int {
	if n > limit {
		v.refuse(path, "has %d entries: want at most %d", n, limit)
	}
	return min(n, limit)
}

// name refuses an empty or a very long name.
func (v *validator) name(path, name string, limit int) bool {
	switch {
	case name == "":
		v.refuse(path, "must not be empty")
	case len(name) > limit:
		v.refuse(path, "has %d bytes: want at most %d", len(name), limit)
	default:
		return true
	}
	return false
}

// key refuses what cannot be a label's key. The mesh's own tags may hold what labels may not.
func (v *validator) key(path, key string) {
	if v.name(path, key, MaxKeyLength) && !v.dialect.IsMesh() && !isLabelKey(key) {
		v.refuse(path, "%.80q is no label key", key)
	}
}

// isLabelKey tells whether key is what Kubernetes takes for a label: an optional DNS prefix and a slash, and a name.
func isLabelKey(key string) bool {
	name := key
	if prefix, rest, found := strings.Cut(key, "/"); found {
		if len(prefix) > 253 || !isDomain(prefix) {
			return false
		}
		name = rest
	}
	return name != "" && isLabelValue(name)
}

// isLabelValue tells whether value is empty, or at most 63 letters, digits, dashes, dots and underscores, of which the first
// and the last are letters or digits.
func isLabelValue(value string) bool {
	if value == "" {
		return true
	}
	if len(value) > 63 || !isAlphanumeric(value[0]) || !isAlphanumeric(value[len(value)-1]) {
		return false
	}
	for i := range len(value) {
		if c := value[i]; !isAlphanumeric(c) && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

func isDomain(name string) bool {
	for part := range strings.SplitSeq(name, ".") {
		if part == "" || part != strings.ToLower(part) || strings.Contains(part, "_") || !isLabelValue(part) {
			return false
		}
	}
	return true
}

func isAlphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// isToken tells whether s may be the name of a header or a cookie (RFC 9110, section 5.6.2).
func isToken(s string) bool {
	for i := range len(s) {
		if c := s[i]; !isAlphanumeric(c) && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return s != ""
}
