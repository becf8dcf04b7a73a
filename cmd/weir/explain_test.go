package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-lb/weir/internal/golden"
)

func TestExplainAnswersFromFilesAndStandardInput(t *testing.T) {
	folder := writeManifests(t, fixture{endpoints: []member{
		{"127.0.0.1", 80, "zone-a"},
		{"127.0.0.2", 80, "zone-a"},
		{"127.0.0.3", 80, "zone-b"},
		{"127.0.0.4", 80, "zone-c"},
	}})
	for name, args := range map[string][]string{
		"explain-service":      {"explain", "shop/web", "-f", folder, "--traffic", "10MB/s"},
		"explain-node":         {"explain", "web", "-n", "shop", "-f", folder, "--node", "node-b", "-o", "wide"},
		"explain-mode":         {"explain", "shop/web", "-f", folder, "--mode", "Auto"},
		"explain-list":         {"explain", "-A", "-f", folder},
		"explain-yaml":         {"explain", "shop/web", "-f", folder, "-o", "yaml"},
		"explain-json":         {"explain", "-n", "shop", "-f", folder, "-o", "json"},
		"explain-preview":      {"explain", "shop/web", "-f", folder, "--preview", "PreferSameZone", "-o", "wide"},
		"explain-preview-list": {"explain", "-f", folder, "--preview", "Balanced"},
	} {
		t.Run(name, func(t *testing.T) {
			status, out, err := weir(t, "", args...)
			if status != exitOK || err != "" {
				t.Fatalf("status %d, error %q", status, err)
			}
			golden.Check(t, name+".golden", out)
		})
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no manifests in %s: %v", folder, err)
	}
	var text strings.Builder
	for _, f := range files {
		content, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(content)
		text.WriteString("\n---\n")
	}
	status, out, problem := weir(t, text.String(), "explain", "-A", "-f", "-")
	if status != exitOK {
		t.Fatalf("status %d, error %q", status, problem)
	}
	golden.Check(t, "explain-list.golden", out)
}

func TestExplainOfANamespaceWithoutServicesIsAnEmptyList(t *testing.T) {
	folder := writeManifests(t, fixture{})
	status, out, err := weir(t, "", "explain", "-n", "empty", "-f", folder, "-o", "json")
	if status != exitOK || !strings.Contains(out, `"services": []`) {
		t.Errorf("status %d, output %q", status, out)
	}
	if want := "no service to explain in namespace empty of " + folder; !strings.Contains(err, want) {
		t.Errorf("error %q does not say %q", err, want)
	}
}

// annotated writes the manifests of a service with an annotation about its demand.
func annotated(t *testing.T, demand string) (folder string) {
	t.Helper()
	folder = writeManifests(t, fixture{endpoints: []member{
		{"127.0.0.1", 80, "zone-a"}, {"127.0.0.2", 80, "zone-b"}, {"127.0.0.3", 80, "zone-c"},
	}})
	path := filepath.Join(folder, "web.yaml")
	text, err := os.ReadFile(path) //nolint:gosec // the test's own file.
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, strings.Replace(string(text), "  name: web\n", "  name: web\n  annotations: {weir.dev/demand: \""+demand+"\"}\n", 1))
	return folder
}

func TestExplainSaysThatTheAnnotationLeavesZonesWithoutDemand(t *testing.T) {
	status, out, err := weir(t, "", "explain", "shop/web", "-f", annotated(t, "zone-a=50"))
	const want = "no request is expected from zone-b, zone-c: the annotation weir.dev/demand gives them no share"
	if status != exitOK || !strings.Contains(out, want) {
		t.Errorf("status %d, %s%s; want %q", status, out, err, want)
	}
}

func TestExplainWarnsOfDemandThatMakesNoSense(t *testing.T) {
	const sum = "Service shop/web: metadata.annotations[weir.dev/demand]: the shares sum to "
	for demand, want := range map[string]string{
		"zone-a=50":                          sum + "50, and not to 1 or 100: they are scaled to a sum of 1",
		"zone-a=0.5,zone-x=0.5":              "there is no node and no endpoint in zone zone-x",
		"zone-a=0.33,zone-b=0.33,zone-c=.33": "",
		"zone-a=50,zone-b=50":                "",
	} {
		status, out, err := weir(t, "", "explain", "shop/web", "-f", annotated(t, demand))
		if status != exitOK || !strings.Contains(err, want) || want == "" && err != "" {
			t.Errorf("%s: status %d, %s%s; want %q", demand, status, out, err, want)
		}
	}
}

func TestExplainTakesTheOnlyServiceOfANameAndTheFormsOfKubectl(t *testing.T) {
	folder := writeManifests(t, fixture{endpoints: []member{{"127.0.0.1", 80, "zone-a"}}})
	_, want, _ := weir(t, "", "explain", "shop/web", "-f", folder)
	for _, args := range []string{"web", "svc/web", "service/web", "service web", "svc shop/web", "svc/shop/web"} {
		status, out, err := weir(t, "", append([]string{"explain", "-f", folder}, strings.Fields(args)...)...)
		if status != exitOK || out != want {
			t.Errorf("%s: status %d, %s%s", args, status, out, err)
		}
	}
	for args, want := range map[string]string{
		"web -n default": "no service default/web: did you mean shop/web?", "wob": "no service default/wob: did you mean shop/web?",
		"pod web": "accepts at most 1 arg", "svc web dns": "accepts at most 1 arg",
	} {
		if status, _, err := weir(t, "", append([]string{"explain", "-f", folder}, strings.Fields(args)...)...); status == exitOK ||
			!strings.Contains(err, want) {
			t.Errorf("%s: status %d, %s; want %q", args, status, err, want)
		}
	}
}
