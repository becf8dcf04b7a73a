package main

import (
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/patience"
	"github.com/weir-lb/weir/test/local"
)

// metric is what the guide promises of a metric.
type metric struct {
	Type   string
	Labels string // sorted, joined with ", "
}

func TestTheGuideListsExactlyTheMetricsThatAreExported(t *testing.T) {
	w := fixture{ip: "127.78.6.1", port: local.FreePort(t, "127.78.6.1")}
	w.endpoints = []member{
		serve(t, "127.78.6.2", "zone-a", says("a")),
		serve(t, "127.78.6.3", "zone-b", says("b")),
	}
	folder := writeManifests(t, w)
	s := startAgent(t, w, folder)
	// One request gives every series of the request path a value; the UDP port of the fixture is a problem.
	if status, body := get(t, s.url); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	refused(t, strings.TrimPrefix(s.url, "http://"))
	var exported map[string]metric
	patience.Until(t, "both are counted", func() bool { // a request is counted when it is over, just after its answer
		_, text := get(t, s.admin+"/metrics")
		exported = parseMetrics(text)
		return exported["weir_requests_total"].Type != "" && exported["weir_refusals_total"].Type != ""
	})
	w.ip = "127.78.6.4" // another agent follows a cluster, and has besides what that tells
	_, text := get(t, launchAgent(t, w, newCluster(t, folder).flags(t)...).admin+"/metrics")
	maps.Copy(exported, parseMetrics(text))
	if diff := cmp.Diff(parseGuide(t), exported); diff != "" {
		t.Errorf("docs/guide/metrics.md against /metrics (-guide +agent)\n%s", diff)
	}
}

// refused sends a request that the proxy answers itself: it names no host.
func refused(t *testing.T, addr string) {
	t.Helper()
	conn, err := net.Dial("tcp", addr) //nolint:noctx // connects at once.
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 400 ") {
		t.Fatalf("a request without a host was answered %q, %v", answer, err)
	}
}

// parseGuide reads the tables of the guide that an agent answers for: all but the controller's.
func parseGuide(t *testing.T) map[string]metric {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "guide", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(text), "\n## Controller\n")
	_, after, _ := strings.Cut(rest, "\n## ")
	promised := make(map[string]metric)
	row := regexp.MustCompile("(?m)^\\| `(weir_[a-z_]+)` \\| ([a-z]+) \\| *([a-z_, ]*?) *\\|")
	for _, m := range row.FindAllStringSubmatch(before+after, -1) {
		promised[m[1]] = metric{Type: m[2], Labels: m[3]}
	}
	return promised
}

// parseMetrics reads names, types and labels of weir's own metrics from Prometheus' text format.
func parseMetrics(text string) map[string]metric {
	types := make(map[string]string)
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (weir_\w+) (\w+)$`).FindAllStringSubmatch(text, -1) {
		types[m[1]] = m[2]
	}
	labels := make(map[string]map[string]bool)
	sample := regexp.MustCompile(`(?m)^(weir_\w+?)(?:_bucket|_sum|_count)?(?:\{(.*)\})? \S+$`)
	label := regexp.MustCompile(`(\w+)="`)
	for _, m := range sample.FindAllStringSubmatch(text, -1) {
		name := m[1]
		if labels[name] == nil {
			labels[name] = make(map[string]bool)
		}
		for _, l := range label.FindAllStringSubmatch(m[2], -1) {
			if l[1] != "le" { // the bucket of a histogram
				labels[name][l[1]] = true
			}
		}
	}
	exported := make(map[string]metric)
	for name, kind := range types {
		exported[name] = metric{Type: kind, Labels: strings.Join(slices.Sorted(maps.Keys(labels[name])), ", ")}
	}
	return exported
}
