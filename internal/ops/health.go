package ops

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Check is one named condition of health. Probe gives nil while it holds, else what is wrong; it must be quick and
// safe for concurrent use.
type Check struct {
	Name  string
	Probe func() error
}

// healthHandler answers as a Kubernetes component does: "ok" when all checks hold; a line per check with ?verbose or
// when one fails; ?exclude=NAME leaves one out; PATH/NAME asks for one alone. A failure is 503, where Kubernetes has 500:
// nothing is broken inside when a check does not hold yet. The answer says what is wrong, because the admin address is not public.
type healthHandler struct {
	path   string // "/readyz"
	checks []Check
}

func (h *healthHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache, no-store")
	checks := h.checks
	if name := strings.Trim(strings.TrimPrefix(r.URL.Path, h.path), "/"); name != "" {
		i := slices.IndexFunc(checks, func(c Check) bool { return c.Name == name })
		if i < 0 {
			http.Error(w, fmt.Sprintf("no check %q at %s", name, h.path), http.StatusNotFound)
			return
		}
		checks = checks[i : i+1]
	}
	query := r.URL.Query()
	report, err := run(checks, query["exclude"])
	name := strings.Trim(h.path, "/")
	switch {
	case err != nil:
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = fmt.Fprintf(w, "%s%s check failed\n", report, name)
	case query.Has("verbose"):
		_, _ = fmt.Fprintf(w, "%s%s check passed\n", report, name)
	default:
		_, _ = fmt.Fprint(w, "ok")
	}
}

// run probes checks and gives a line for each, and an error when one of them does not hold.
func run(checks []Check, exclude []string) (string, error) {
	var report strings.Builder
	var failures []error
	for _, c := range checks {
		if slices.Contains(exclude, c.Name) {
			fmt.Fprintf(&report, "[+]%s excluded: ok\n", c.Name)
			continue
		}
		if err := c.Probe(); err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", c.Name, err))
			fmt.Fprintf(&report, "[-]%s failed: %v\n", c.Name, err)
			continue
		}
		fmt.Fprintf(&report, "[+]%s ok\n", c.Name)
	}
	return report.String(), errors.Join(failures...)
}
