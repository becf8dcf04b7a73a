package weir_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/weir-lb/weir"

// mayReach says which folders a folder may import, itself included. A folder that no row covers is a failure, so that
// no package is added without a place in the layers. The longest row that covers a folder counts.
func mayReach() map[string][]string {
	return map[string][]string{
		".":                       {},
		"api":                     {"api"},
		"api/conf":                {},
		"cmd/weir":                {"api", "internal", "test/scenarios"},
		"docs/examples/pods":      {"internal/core", "internal/manifest"},
		"internal/agent":          {"internal/agent", "internal/core", "internal/explain", "internal/kernel", "internal/l7", "internal/latest"},
		"internal/core/reason":    {"internal/core/reason"},
		"internal/core/topology":  {"internal/core/topology"},
		"internal/core/health":    {"internal/core/health"},
		"internal/core/plan":      {"internal/core/plan", "internal/core/reason", "internal/core/topology"},
		"internal/core/overflow":  {"internal/core/overflow", "internal/core/reason", "internal/core/topology"},
		"internal/core/hash":      {"internal/core/hash"},
		"internal/core/balance":   {"internal/core/balance", "internal/core/health", "internal/core/overflow", "internal/core/policy", "internal/core/route", "internal/core/topology"},
		"internal/core/pick":      {"internal/core"},
		"internal/core/route":     {"internal/core"},
		"internal/core/policy":    {"api/conf", "internal/core/policy", "internal/core/reason", "internal/core/topology"},
		"internal/demo":           {"internal/agent", "internal/core", "internal/demo", "internal/grid", "internal/l7", "internal/latest", "internal/sim"},
		"internal/explain":        {"internal/core", "internal/explain", "internal/grid"},
		"internal/golden":         {"internal/golden"},
		"internal/grid":           {"internal/grid"},
		"internal/kernel":         {"internal/core", "internal/kernel"},
		"internal/kernel/bpf":     {"internal/kernel/bpf"},
		"internal/kube/access":    {"internal/kube/access"},
		"internal/kube/apitest":   {"internal/kube/apitest"},
		"internal/kube/clusters":  {"api", "internal/core", "internal/kube/clusters", "internal/kube/convert", "internal/kube/feed", "internal/ops"},
		"internal/kube/convert":   {"api", "internal/core", "internal/kube/convert"},
		"internal/kube/events":    {"internal/kube/events"},
		"internal/kube/feed":      {"api", "internal/core", "internal/kube/convert", "internal/kube/feed", "internal/latest"},
		"internal/kube/policies":  {"api", "internal/core", "internal/kube/convert", "internal/kube/policies"},
		"internal/kube/policyset": {"api", "internal/core", "internal/kube", "internal/latest", "internal/ops"},
		"internal/kube/plans":     {"api", "internal/core", "internal/kube/convert", "internal/kube/feed", "internal/kube/plans"},
		"internal/kube/hints":     {"api", "internal/core", "internal/kube/convert", "internal/kube/hints", "internal/kube/plans"},
		"internal/kube/status":    {"api", "internal/core", "internal/kube"},
		"internal/kube/webhook":   {"api", "internal/core", "internal/kube"},
		"internal/kube/attach":    {"api", "internal/core", "internal/kube", "internal/latest", "internal/ops"},
		"internal/kube/control":   {"api", "internal/core", "internal/kube", "internal/latest", "internal/ops"},
		"internal/h1":             {"internal/core", "internal/h1", "internal/syntax"},
		"internal/h2":             {"internal/h2", "internal/syntax"},
		"internal/l7":             {"internal/core", "internal/h1", "internal/h2", "internal/l7", "internal/syntax"},
		"internal/latest":         {"internal/latest"},
		"internal/manifest":       {"api", "internal/core", "internal/kube/convert", "internal/kube/policies", "internal/latest", "internal/manifest", "internal/mesh"},
		"internal/mesh":           {"api", "internal/core", "internal/mesh"},
		"internal/patience":       {"internal/patience"},
		"internal/sim":            {"internal/core", "internal/sim"},
		"internal/sim/score":      {"internal/core", "internal/grid", "internal/sim"},
		"internal/simulate":       {"internal/core", "internal/grid", "internal/sim", "internal/simulate"},
		"internal/syntax":         {"internal/syntax"},
		"internal/web/charts":     {"internal/web/charts"},
		"test/scenarios":          {"test/scenarios"},
		"test/study":              {"internal/core", "internal/sim", "internal/simulate", "test/scenarios"},
		"internal/ops":            {"internal/ops"},
		"test/kube":               {"api", "test/kube"},
		"test/local":              {},
	}
}

// room keeps an outside package in the folders that speak its language.
type room struct {
	folders []string
	why     string
}

// rooms says where an outside package (and all below it) may be imported.
func rooms() map[string]room {
	kubernetes := room{[]string{"api", "internal/kube", "internal/manifest", "cmd", "test/kube"}, "Kubernetes types stop at the rooms that convert them"}
	return map[string]room{
		"k8s.io":      kubernetes,
		"sigs.k8s.io": kubernetes,
		"github.com/prometheus/client_golang": {
			[]string{"internal/agent", "internal/kube", "internal/ops", "cmd"}, "metrics are an adapter's business",
		},
		"github.com/cilium/ebpf": {[]string{"internal/kernel/bpf"}, "what loads programs into the kernel is one package"},
		"github.com/spf13/cobra": {[]string{"cmd"}, "flags are parsed in cmd"},
		"golang.org/x/net":       {[]string{"internal/h1", "internal/h2", "internal/l7"}, "HTTP/2 and header rules live in the proxy"},
		"os":                     {[]string{"cmd", "docs/examples", "internal/agent", "internal/demo", "internal/golden", "internal/kernel/bpf", "internal/l7", "internal/kube/webhook", "internal/manifest", "internal/ops", "test/kube", "test/local", "test/study"}, "the core and the edges are handed what they need"},
		"net/http":               {[]string{"docs/examples", "internal/agent", "internal/demo", "internal/kube", "internal/l7", "internal/ops", "test/kube"}, "the core speaks no protocol"},
		"log/slog":               {[]string{"cmd", "internal/agent", "internal/kube", "internal/l7", "internal/manifest", "internal/ops", "internal/demo"}, "the core returns reasons"},
		"log":                    {nil, "log/slog, passed in"},
		"math/rand":              {nil, "math/rand/v2, and pass the generator"},
		"github.com/pkg/errors":  {nil, "fmt.Errorf with %w"},
	}
}

// source is one Go file's import clauses.
type source struct {
	folder, path string
	file         *ast.File
}

// sources parses the import clauses of every non-test Go file in this process, so that the test cache sees the files.
func sources(t *testing.T, mode parser.Mode) []source {
	t.Helper()
	var found []source
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "bin") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, mode)
		if err != nil {
			return err
		}
		found = append(found, source{filepath.ToSlash(filepath.Dir(path)), filepath.ToSlash(path), file})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Fatal("no Go file found: the walk is broken")
	}
	return found
}

func TestArrowsPointOneWay(t *testing.T) {
	table := mayReach()
	for _, s := range sources(t, parser.ImportsOnly) {
		row, ok := covering(table, s.folder)
		if !ok {
			t.Errorf("%s: folder %s has no row in mayReach: say what it may import", s.path, s.folder)
			continue
		}
		for _, imported := range imports(s.file) {
			inside, ok := strings.CutPrefix(imported, module+"/")
			if ok && !slices.ContainsFunc(table[row], func(p string) bool { return below(inside, p) }) {
				t.Errorf("%s: %s may not import %s", s.path, s.folder, inside)
			}
		}
	}
}

func TestOutsidePackagesStayInTheirRooms(t *testing.T) {
	table := rooms()
	for _, s := range sources(t, parser.ImportsOnly) {
		for _, imported := range imports(s.file) {
			name, ok := covering(table, imported)
			// A standard library package does not stand for the packages below it: net/http/pprof is not net/http.
			if !ok || (!strings.Contains(name, ".") && name != imported) {
				continue
			}
			r := table[name]
			if !slices.ContainsFunc(r.folders, func(p string) bool { return below(s.folder, p) }) {
				t.Errorf("%s: %s may not import %s: %s", s.path, s.folder, imported, r.why)
			}
		}
	}
}

func TestCoreUsesTheStandardLibraryOnly(t *testing.T) {
	for _, s := range sources(t, parser.ImportsOnly) {
		// What a policy may say is promised, so that it is in api; the core merges it.
		if !below(s.folder, "internal/core") && !below(s.folder, "internal/sim") && s.folder != "api/conf" {
			continue
		}
		for _, imported := range imports(s.file) {
			first, _, _ := strings.Cut(imported, "/")
			if strings.Contains(first, ".") && !strings.HasPrefix(imported, module+"/internal/") && imported != module+"/api/conf" {
				t.Errorf("%s: neither core, simulator nor api/conf may import %s", s.path, imported)
			}
		}
	}
}

func TestEveryPackageHasOneComment(t *testing.T) {
	comments := make(map[string]int)
	for _, s := range sources(t, parser.ParseComments|parser.PackageClauseOnly) {
		comments[s.folder] += 0
		if s.file.Doc != nil {
			comments[s.folder]++
		}
	}
	for folder, n := range comments {
		if n != 1 {
			t.Errorf("%s has %d package comments, want 1", folder, n)
		}
	}
}

// heavy says which outside packages (and all below them) the program must not import, directly or through others, because
// of what they bring along.
func heavy() map[string]string {
	const clients = "the clients of all kinds of Kubernetes: 100 packages for the few kinds that are used"
	return map[string]string{
		"k8s.io/apiserver":                             "CEL, gRPC and OpenTelemetry: 240 packages for two review calls, which internal/kube/access makes",
		"k8s.io/apiextensions-apiserver":               "all kinds of CRDs, which are installed from a manifest",
		"k8s.io/component-base":                        "metrics and OpenTelemetry, for flags that cmd/weir parses itself",
		"k8s.io/client-go/informers":                   clients + ", and listers and informers: 120 more; watch with tools/cache",
		"k8s.io/client-go/listers":                     clients + "; read with tools/cache",
		"k8s.io/client-go/kubernetes/typed/apps":       clients + "; import those of client-go/kubernetes/typed that are used",
		"k8s.io/client-go/tools/leaderelection":        "all informers: 230 packages for one Lease, which internal/kube/control holds itself",
		"k8s.io/client-go/tools/events":                clients + "; internal/kube/events writes events",
		"sigs.k8s.io/controller-runtime/pkg/manager":   "leader election, events and webhooks of its own",
		"sigs.k8s.io/controller-runtime/pkg/metrics":   "leader election, for its metrics",
		"github.com/open-policy-agent/cert-controller": "controller-runtime's manager, for crypto/x509",
		"google.golang.org/grpc":                       "weir serves gRPC as HTTP/2",
		"go.opentelemetry.io":                          "nothing is traced",
	}
}

// packageLimit bounds the packages of the program: each costs build time on every machine that builds it once. What loads
// programs into the kernel is 20 of them.
const packageLimit = 625

func TestTheProgramImportsNoHeavyPackages(t *testing.T) {
	packages := dependencies(t, "./cmd/weir")
	if len(packages) > packageLimit {
		t.Errorf("cmd/weir is made of %d packages, want at most %d", len(packages), packageLimit)
	}
	table, told := heavy(), make(map[string]bool)
	for _, p := range packages {
		if name, ok := covering(table, p); ok && !told[name] {
			told[name] = true
			t.Errorf("cmd/weir imports %s (go mod why says through what): it brings %s", p, table[name])
		}
	}
}

// TestReadingFilesNeedsNoClient holds what reads objects and policies apart from what watches an API server: programs that read
// files, and the tests of all that reads them, build without the clients.
func TestReadingFilesNeedsNoClient(t *testing.T) {
	for _, p := range dependencies(t, "./internal/manifest") {
		if below(p, "k8s.io/client-go") || below(p, "sigs.k8s.io/controller-runtime") {
			t.Errorf("internal/manifest imports %s (go mod why says through what)", p)
		}
	}
}

// dependencies lists the packages that one is made of, itself included.
//
// It asks go list in a child process, whose reads the test cache does not see. So this process reads what the answer depends
// on: the import clauses and go.mod.
func dependencies(t *testing.T, name string) []string {
	t.Helper()
	_ = sources(t, parser.ImportsOnly)
	if _, err := os.ReadFile("go.mod"); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(out))
}

// covering finds the longest key of table that is name or a folder above it.
func covering[V any](table map[string]V, name string) (string, bool) {
	best, ok := "", false
	for key := range table {
		if below(name, key) && len(key) >= len(best) {
			best, ok = key, true
		}
	}
	return best, ok
}

func below(name, parent string) bool {
	return name == parent || strings.HasPrefix(name, parent+"/")
}

func imports(f *ast.File) []string {
	var paths []string
	for _, i := range f.Imports {
		paths = append(paths, strings.Trim(i.Path.Value, `"`))
	}
	return paths
}
