package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-lb/weir/internal/golden"
)

const policyFiles = "testdata/policies"

func TestPolicyCheck(t *testing.T) {
	good, bad := filepath.Join(policyFiles, "good.yaml"), filepath.Join(policyFiles, "bad.yaml")
	for name, c := range map[string]struct {
		args   []string
		status int
	}{
		"warnings": {[]string{good}, exitOK},
		"strict":   {[]string{"--strict", good}, exitFailed},
		"refused":  {[]string{bad}, exitFailed},
		"json":     {[]string{"-o", "json", "-f", bad, good}, exitFailed},
		"folder":   {[]string{"-R", policyFiles}, exitFailed},
		"routes":   {[]string{"../../internal/manifest/testdata/policies/routes.yaml"}, exitOK},
		"objects":  {[]string{"../../internal/manifest/testdata/policies/attached.yaml"}, exitFailed},
	} {
		t.Run(name, func(t *testing.T) {
			status, out, err := weir(t, "", append([]string{"policy", "check"}, c.args...)...)
			if status != c.status {
				t.Errorf("want status %d, got %d and %s", c.status, status, err)
			}
			golden.Check(t, "policy-check-"+name+".golden", out+err)
		})
	}
}

func TestPolicyCommandsSayHowTheyAreUsed(t *testing.T) {
	for name, args := range map[string][]string{
		"help-policy":         {"policy"},
		"help-policy-check":   {"policy", "check", "--help"},
		"help-policy-convert": {"policy", "convert", "--help"},
	} {
		t.Run(name, func(t *testing.T) {
			status, out, err := weir(t, "", args...)
			if status != exitOK || err != "" {
				t.Errorf("status %d, error %q", status, err)
			}
			golden.Check(t, name+".golden", out)
		})
	}
}

func TestAMistakeInPolicyCommandsEndsWithStatus2(t *testing.T) {
	for args, want := range map[string]string{
		"policy test":            `unknown command "test" for "weir policy"`,
		"policy check":           "no policies: give their files as arguments or with --filename (-f)",
		"policy check -o xml":    "--output=xml: want text or json",
		"policy check --hard":    "unknown flag: --hard",
		"policy convert -o text": "--output=text: want yaml or json",
	} {
		status, out, err := weir(t, "", strings.Fields(args)...)
		if status != exitUsage || !strings.Contains(err, want) || out != "" {
			t.Errorf("%s: status %d, output %q, error %q; want status 2 and an error with %q", args, status, out, err, want)
		}
	}
}

func TestPolicyCheckOfAMissingFileFails(t *testing.T) {
	status, out, err := weir(t, "", "policy", "check", "testdata/none.yaml")
	if status != exitFailed || out != "" || !strings.Contains(err, "testdata/none.yaml: no such file") {
		t.Errorf("status %d, %q, %q", status, out, err)
	}
}

func TestPolicyCheckReadsStandardInput(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(policyFiles, "good.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"-"}, {"-f", "-"}} {
		status, out, errs := weir(t, string(data), append([]string{"policy", "check"}, args...)...)
		if status != exitOK || !strings.HasPrefix(out, "stdin:40: spec.to[0].default.loadBalancer.maglev.tableSize: ") {
			t.Errorf("%s: status %d, %s%s", args, status, out, errs)
		}
	}
}

func TestPolicyCheckOfNothingFails(t *testing.T) {
	status, out, err := weir(t, service("web"), "policy", "check", "-")
	if status != exitFailed || out != "" || err != "weir: no policy in -\n" {
		t.Errorf("status %d, %q, %q", status, out, err)
	}
}

func TestPolicyCheckRefusesWhatWasMeantAsAPolicy(t *testing.T) {
	for head, want := range map[string]string{
		"apiVersion: weir.dev/v1\nkind: LoadBalancingPolicy": "stdin:1: apiVersion: there is no LoadBalancingPolicy in weir.dev/v1: " +
			"did you mean weir.dev/v1alpha1?",
		"apiVersion: example.com/v1\nkind: LoadBalancingPolicy": "did you mean weir.dev/v1alpha1?",
		"apiVersion: weir.dev/v1alpha1\nkind: LoadBalancerPolicy": "stdin:2: kind: unknown kind weir.dev/v1alpha1 LoadBalancerPolicy: " +
			"did you mean weir.dev/v1alpha1 LoadBalancingPolicy?",
		"apiVersion: v1\nkind: loadbalancingpolicy":              "did you mean weir.dev/v1alpha1 LoadBalancingPolicy?",
		"apiVersion: weir.dev/v1beta1\nkind: Budget":             "did you mean weir.dev/v1alpha1 LoadBalancingPolicy?",
		"apiVersion: weir.dev/v1\nkind: LoadBalancingPolicyList": "there is no LoadBalancingPolicyList in weir.dev/v1",
	} {
		status, out, err := weir(t, head+"\nmetadata: {name: web}\n", "policy", "check", "-")
		if status != exitFailed || !strings.Contains(out, want) || !strings.Contains(out, "1 mistake, 0 warnings") {
			t.Errorf("%q: status %d, %s%s; want a mistake with %q", head, status, out, err, want)
		}
	}
	for _, other := range []string{"apps/v1\nkind: Deployment", "gateway.envoyproxy.io/v1alpha1\nkind: BackendTrafficPolicy"} {
		if _, _, err := weir(t, "apiVersion: "+other+"\nmetadata: {name: web}\n", "policy", "check", "-"); err != "weir: no policy in -\n" {
			t.Errorf("%q: %s", other, err)
		}
	}
}

func TestPolicyCheckSaysWhichFormOfADocumentItFound(t *testing.T) {
	for document, want := range map[string]string{
		"apiVersion: kuma.io/v1alpha1\nkind: MeshLoadBalancingStrategy\nmetadata: {name: lb}": "stdin:1: apiVersion: the Kubernetes form of " +
			"a mesh's document (kuma.io/v1alpha1 MeshLoadBalancingStrategy), which only the mesh reads: write type: MeshLoadBalancingStrategy and name: lb",
		"loadBalancer: {type: RoundRobin}":                                                        "stdin:1: loadBalancer: a part of a document, as the specification shows it: write it below spec.to[].default",
		"localityAwareness: {disabled: true}":                                                     "write it below spec.to[].default",
		"targetRef: {kind: Mesh}\ndefault: {}":                                                    "write it below spec.to[] ",
		"type: MeshLoadBalancing\nname: lb\nspec: {targetRef: {kind: Mesh | MeshSubset}, to: []}": "is grammar, not a value: write one value",
	} {
		status, out, err := weir(t, document+"\n", "policy", "check", "-")
		if status != exitFailed || !strings.Contains(out, want) {
			t.Errorf("%q: status %d, %s%s; want a mistake with %q", document, status, out, err, want)
		}
	}
}

func TestPolicyCheckWarnsOfFilterStateThatNeedsAFilter(t *testing.T) {
	const policy = "apiVersion: weir.dev/v1alpha1\nkind: LoadBalancingPolicy\nmetadata: {name: web}\nspec:\n" +
		"  targetRefs: [{kind: Service, group: '', name: web}]\n  loadBalancer: {type: Maglev}\n" +
		"  hashPolicies: [{type: FilterState, filterState: {key: %s}}]\n"
	for key, want := range map[string]string{
		"tenant":           "weir knows no filter state tenant: agents take it from the clients that --trusted-filter names",
		"weir.client.port": "1 policy, 0 mistakes, 0 warnings",
	} {
		status, out, err := weir(t, fmt.Sprintf(policy, key), "policy", "check", "-")
		if status != exitOK || !strings.Contains(out, want) {
			t.Errorf("%s: status %d, %s%s; want %q", key, status, out, err, want)
		}
	}
}

func TestPolicyCheckReportsEveryFieldOfTheWrongType(t *testing.T) {
	const policy = "apiVersion: weir.dev/v1alpha1\nkind: LoadBalancingPolicy\nmetadata: {name: web}\nspec:\n" +
		"  targetRefs: [{kind: Service, name: 5}]\n  loadBalancer: 7\n  slowStart: {window: 30}\n"
	const nested = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: List\n  items:\n  - "
	for text, first := range map[string]string{policy: "stdin:5: ", nested + strings.ReplaceAll(strings.TrimSpace(policy), "\n", "\n    "): "stdin:11: "} {
		status, out, err := weir(t, text, "policy", "check", "-")
		for _, want := range []string{
			first + "spec.targetRefs[0].name: want ", "spec.loadBalancer: want ", "spec.slowStart.window: want a duration",
			"1 policy, 3 mistakes, 0 warnings",
		} {
			if status != exitFailed || !strings.Contains(out, want) {
				t.Errorf("status %d, %s%s; want %q", status, out, err, want)
			}
		}
	}
}

func TestPolicyCheckSaysHowToWriteANumberAndADuration(t *testing.T) {
	const head = `apiVersion: weir.dev/v1alpha1
kind: LoadBalancingPolicy
metadata: {name: web, namespace: shop}
spec:
  targetRefs: [{kind: Service, name: web}]
`
	const mesh = "type: MeshLoadBalancingStrategy\nname: web\nmesh: default\nspec:\n  to:\n  - targetRef: {kind: Mesh}\n" +
		"    default: {loadBalancer: {type: RingHash, ringHash: {hashPolicies: [{type: Cookie, cookie: {name: a, ttl: 60}}]}}}\n"
	for text, want := range map[string]string{
		head + "  locality: {maxSkew: 1.5}":                 "maxSkew: want a whole number, or text in quotes: \"1.5\", got a number 1.5",
		head + "  locality: {maxSkew: -1.5}":                "maxSkew: want a whole number, or text in quotes: \"0.8\", got a number -1.5",
		head + "  outlierDetection: {baseEjectionTime: 60}": "baseEjectionTime: want a duration with a unit: 60s, got a number 60",
		mesh: "ttl: want a duration like 1h or 30s, got the number 60",
	} {
		status, out, err := weir(t, text, "policy", "check", "-")
		if status != exitFailed || !strings.Contains(out, want) {
			t.Errorf("%s\nstatus %d, %s%s; want a mistake with %q", text, status, out, err, want)
		}
	}
}

func service(name string) string {
	return "apiVersion: v1\nkind: Service\nmetadata: {name: " + name + "}\nspec: {ports: [{port: 80}]}\n"
}
