package manifest_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/golden"
	"github.com/weir-lb/weir/internal/kube/convert"
	"github.com/weir-lb/weir/internal/manifest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// render gives a Result as a person reads it.
func render(r manifest.Result) string {
	var b strings.Builder
	b.WriteString(r.Snapshot.String() + "\n\n")
	for _, p := range r.Problems {
		b.WriteString("problem " + p.String() + "\n")
	}
	for _, kind := range slices.Sorted(maps.Keys(r.Skipped)) {
		fmt.Fprintf(&b, "skipped %d %s\n", r.Skipped[kind], kind)
	}
	return b.String()
}

func TestClusterIsReadAsKubectlPrintsIt(t *testing.T) {
	got, err := manifest.Read(t.Context(), manifest.Source{Paths: []string{"testdata/cluster"}},
		manifest.Options{Convert: convert.Options{ManageAll: true}})
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "cluster.golden", render(got))
}

// The file is what kubectl get nodes,services,endpointslices,pods -A -o yaml --show-managed-fields prints of a small
// Kubernetes 1.36.3 cluster: three zones, both address families, each way to ask for a distribution, built-in hints.
func TestARealClusterIsReadWithItsManagedFields(t *testing.T) {
	got, err := manifest.Read(t.Context(), manifest.Source{Paths: []string{"testdata/kubectl-managed-fields.yaml"}},
		manifest.Options{Convert: convert.Options{ManageAll: true, Default: topology.ModeBalanced}})
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "kubectl-managed-fields.golden", render(got))
}

func TestBrokenFilesSayWhereTheyAreBroken(t *testing.T) {
	paths, err := filepath.Glob("testdata/broken/*")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no testdata: %v", err)
	}
	var b strings.Builder
	for _, path := range paths {
		_, err := manifest.Read(t.Context(), manifest.Source{Paths: []string{path}}, manifest.Options{})
		if err == nil {
			t.Errorf("%s was accepted", path)
			continue
		}
		if _, ok := errors.AsType[*reason.Finding](err); !ok {
			t.Errorf("%s: want a finding, got %v", path, err)
		}
		b.WriteString(strings.ReplaceAll(err.Error(), "testdata/broken/", "") + "\n")
	}
	golden.Check(t, "broken.golden", b.String())
}

func TestAllBrokenFilesAreNamedAtOnce(t *testing.T) {
	_, err := manifest.Read(t.Context(), manifest.Source{Paths: []string{"testdata/broken"}}, manifest.Options{})
	if err == nil {
		t.Fatal("broken files were accepted")
	}
	for _, name := range []string{"syntax.yaml", "type.yaml", "quantity.yaml"} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not named in:\n%v", name, err)
		}
	}
}

func service(name, port string) string {
	return "apiVersion: v1\nkind: Service\nmetadata: {name: " + name + "}\nspec: {ports: [{port: " + port + "}]}\n"
}

// write makes a folder of files by their names.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFolderIsReadAsKubectlReadsIt(t *testing.T) {
	dir := write(t, map[string]string{
		"a.yaml": service("a", "80"), "b.yml": service("b", "80"), "notes.txt": "not a manifest",
		".hidden.yaml": "{{", "sub/c.yaml": service("c", "80"), "..data/d.yaml": service("d", "80"),
	})
	if err := os.Symlink(filepath.Join("..data", "d.yaml"), filepath.Join(dir, "d.yaml")); err != nil {
		t.Fatal(err)
	}
	for recursive, want := range map[bool]string{false: "a b d", true: "a b c d"} {
		got, err := manifest.Read(t.Context(), manifest.Source{Paths: []string{dir}, Recursive: recursive}, manifest.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, s := range got.Snapshot.Services {
			names = append(names, s.Name)
		}
		if diff := cmp.Diff(want, strings.Join(names, " ")); diff != "" {
			t.Errorf("recursive %t (-want +got):\n%s", recursive, diff)
		}
	}
}

func TestStandardInputIsReadBesideFiles(t *testing.T) {
	dir := write(t, map[string]string{"a.yaml": service("a", "80")})
	got, err := manifest.Read(t.Context(), manifest.Source{
		Paths: []string{manifest.Stdin, dir}, Stdin: strings.NewReader(service("a", "81")),
	}, manifest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if port := got.Snapshot.Services[0].Ports[0].Port; port != 81 {
		t.Errorf("want the first of two to count, with port 81, got %d", port)
	}
	want := []string{filepath.Join(dir, "a.yaml") +
		":1: Service default/a: the object is in stdin:1 already, and that one counts"}
	var problems []string
	for _, p := range got.Problems {
		problems = append(problems, p.String())
	}
	if diff := cmp.Diff(want, problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestProblemsNameTheLineOfTheField(t *testing.T) {
	const text = `apiVersion: v1
kind: Service
metadata:
  name: web
  annotations:
    weir.dev/prefer: speed
spec:
  ports:
  - port: 80
  - name: big
    port: 70000
    colour: red
`
	got, err := manifest.Read(t.Context(), manifest.Source{Paths: []string{"-"}, Stdin: strings.NewReader(text)}, manifest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const want = `service web mode=Balanced

problem stdin:12: Service default/web: spec.ports[1].colour: unknown field: passed over
problem stdin:11: Service default/web: spec.ports[1].port: 70000 is no port number from 1 to 65535: left out
problem stdin:6: Service default/web: metadata.annotations[weir.dev/prefer]: ` +
		"unknown value \"speed\", want cost, balanced, latency: the default is taken\n"
	if diff := cmp.Diff(want, render(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnchorsAndMergeKeysAreResolved(t *testing.T) {
	const text = `apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Service
  metadata: &meta {name: web, namespace: shop}
  spec: &spec {ports: [{port: 80}], clusterIP: 10.96.0.1}
- apiVersion: v1
  kind: Service
  metadata: {<<: *meta, name: cart}
  spec: {clusterIP: 10.96.0.2, <<: [*spec, {internalTrafficPolicy: Local}]}
`
	got, err := manifest.Read(t.Context(), manifest.Source{Paths: []string{"-"}, Stdin: strings.NewReader(text)}, manifest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const want = "service shop/cart ip=10.96.0.2 mode=Balanced internal=Local\nservice shop/web ip=10.96.0.1 mode=Balanced"
	if diff := cmp.Diff(want, got.Snapshot.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatCannotBeReadIsRefused(t *testing.T) {
	dir := write(t, map[string]string{"a.yaml": service("a", "80"), "b.yaml": service("b", "80")})
	for name, c := range map[string]struct {
		source  manifest.Source
		options manifest.Options
		want    string
	}{
		"a folder that is not there": {manifest.Source{Paths: []string{"testdata/none"}}, manifest.Options{}, "no such file"},
		"no standard input":          {manifest.Source{Paths: []string{"-"}}, manifest.Options{}, "no standard input"},
		"too much at once": {
			manifest.Source{Paths: []string{dir}},
			manifest.Options{MaxBytes: 100},
			"b.yaml: with it the manifests exceed 100 bytes: leave out kinds that weir does not read, or raise the limit",
		},
		"nesting without end": {
			manifest.Source{Paths: []string{"-"}, Stdin: strings.NewReader(`{"a":` + strings.Repeat("[", 200))},
			manifest.Options{},
			"",
		},
		"an alias to what it is in": {
			manifest.Source{
				Paths: []string{"-"}, Stdin: strings.NewReader("apiVersion: v1\nkind: Pod\nmetadata: &a {labels: *a}"),
			},
			manifest.Options{},
			"nested deeper than 100",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := manifest.Read(t.Context(), c.source, c.options)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("want an error with %q, got %v", c.want, err)
			}
		})
	}
}

func TestCosts(t *testing.T) {
	costs, err := manifest.ReadCosts("testdata/costs/good.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("other-region=8 a>b=3 b>a=0.5", costs.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for file, want := range map[string]string{
		"negative.yaml":    `negative.yaml:5: pairs[0].cost: want a finite number of at least 0, got "-3"`,
		"unknown-key.yaml": "unknown-key.yaml:2: otherZone: unknown key: want sameRegion, otherRegion, otherCluster or pairs",
		"twice.yaml":       "twice.yaml:3: pairs[1]: the pair from a to b is there already: remove one",
		"half.yaml":        "half.yaml:2: pairs[0]: incomplete: a pair has from, to and cost",
		"text.yaml":        `text.yaml:1: sameRegion: want a finite number of at least 0, got "1"`,
		"none.yaml":        "no such file",
	} {
		if _, err := manifest.ReadCosts("testdata/costs/" + file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: want an error with %q, got %v", file, want, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, pattern := range []string{"testdata/broken/*", "testdata/cluster/*", "testdata/costs/*"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			if len(data) < 4096 { // mutating a larger one finds nothing more, and takes long
				f.Add(data)
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := manifest.Read(t.Context(), manifest.Source{Paths: []string{"-"}, Stdin: strings.NewReader(string(data))},
			manifest.Options{Convert: convert.Options{ManageAll: true}})
		if err != nil && got.Snapshot.String() != "" {
			t.Errorf("an error and a snapshot: %v", err)
		}
	})
}
