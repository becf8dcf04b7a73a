//go:build e2e

package kube_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/api/v1alpha1"
	"github.com/weir-lb/weir/test/kube"
)

const examples = "../../deploy/examples/policies"

// policyCluster is a cluster with weir's resource, and the namespaces of the examples.
type policyCluster struct {
	*testing.T
	c      *kube.Cluster
	client client.Client
}

func newPolicyCluster(t *testing.T, c *kube.Cluster) *policyCluster {
	t.Helper()
	for _, name := range []string{"bank", "batch", "pay", "shop", "web"} {
		c.Namespace(name)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme), eventsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	config := *c.Admin
	known, err := client.New(&config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return &policyCluster{t, c, known}
}

// install installs the resource as the plain manifests do.
func (p *policyCluster) install() {
	p.Helper()
	p.c.Kubectl("apply", "--server-side", "-f", filepath.Join(manifests, "crd.yaml"))
	p.c.Kubectl("wait", "--for=condition=Established", "crd/loadbalancingpolicies.weir.dev")
}

// kubectl runs kubectl with a document on its standard input, and gives what it prints, problems too.
func (p *policyCluster) kubectl(document string, args ...string) (string, error) {
	p.Helper()
	cmd := exec.CommandContext(p.Context(), filepath.Join(os.Getenv("KUBE_BIN"), "kubectl"), append([]string{"--kubeconfig", p.c.AdminKubeconfig()}, args...)...)
	cmd.Stdin = strings.NewReader(document)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// document is a policy in the namespace shop.
func document(name, spec string) string {
	return fmt.Sprintf("apiVersion: weir.dev/v1alpha1\nkind: LoadBalancingPolicy\nmetadata: {name: %s, namespace: shop}\nspec: {%s}\n", name, spec)
}

func (p *policyCluster) apply(name, spec string) {
	p.Helper()
	if out, err := p.kubectl(document(name, spec), "apply", "-f", "-"); err != nil {
		p.Fatalf("%v: %s", err, out)
	}
}

// wants waits until a policy's first entry of weir's says so.
func (p *policyCluster) wants(name, accepted, programmed string, words ...string) {
	p.Helper()
	p.c.Until(fmt.Sprintf("%s is %s and %s", name, accepted, programmed), func() error {
		namespace, one, found := strings.Cut(name, "/")
		if !found {
			namespace, one = "shop", name
		}
		policy := new(v1alpha1.LoadBalancingPolicy)
		if err := p.client.Get(p.Context(), client.ObjectKey{Namespace: namespace, Name: one}, policy); err != nil {
			return err
		}
		for _, entry := range policy.Status.Ancestors {
			if entry.ControllerName != api.ControllerName {
				continue
			}
			a, b := meta.FindStatusCondition(entry.Conditions, "Accepted"), meta.FindStatusCondition(entry.Conditions, "Programmed")
			switch {
			case a == nil || b == nil || a.Reason != accepted || b.Reason != programmed || a.ObservedGeneration != policy.Generation:
				return fmt.Errorf("%+v", entry)
			case a.Status != map[bool]metav1.ConditionStatus{true: "True", false: "False"}[accepted == "Accepted"]:
				return fmt.Errorf("the reason %s with the status %s", a.Reason, a.Status)
			}
			for _, w := range words {
				if !strings.Contains(a.Message+"\n"+b.Message, w) {
					return fmt.Errorf("%q is not in %q and %q", w, a.Message, b.Message)
				}
			}
			return nil
		}
		return fmt.Errorf("weir says nothing in %+v", policy.Status)
	})
}

// wantsMark waits until a Service names these policies; none: it has no such condition.
func (p *policyCluster) wantsMark(namespace, name string, policies ...string) {
	p.Helper()
	p.c.Until(fmt.Sprintf("%s/%s is affected by %v", namespace, name, policies), func() error {
		have := meta.FindStatusCondition(p.c.Service(namespace, name).Status.Conditions, api.ConditionPolicyAffected)
		switch {
		case len(policies) == 0 && have == nil:
			return nil
		case have == nil || len(policies) == 0:
			return fmt.Errorf("the condition is %v", have)
		}
		if want := "load-balancing policies: " + strings.Join(policies, ", "); have.Message != want || have.Status != metav1.ConditionTrue {
			return fmt.Errorf("it is %s, %q", have.Status, have.Message)
		}
		return nil
	})
}

func apiServerTakesGoodPolicies(s subtest) {
	t, p := s.T, newPolicyCluster(s.T, s.c)
	p.c.Namespace(namespace)
	p.install()
	defer p.c.Kubectl("delete", "crd", "loadbalancingpolicies.weir.dev")
	p.c.Kubectl("apply", "-f", examples)
	p.c.Kubectl("apply", "--server-side", "--force-conflicts", "-f", examples)
	table := p.c.Kubectl("get", "lbp", "-A", "-o", "wide")
	for _, words := range []string{"NAMESPACE", "TARGETS", "ALGORITHM", "ACCEPTED", "AGE", "PROGRAMMED", "cache-shards", "Maglev", "ledger"} {
		if !strings.Contains(table, words) {
			t.Errorf("%s is not in\n%s", words, table)
		}
	}
	if got := strings.Count(p.c.Kubectl("get", "weir", "-A", "-o", "name"), "loadbalancingpolicy.weir.dev/"); got != 6 {
		t.Errorf("the category weir has %d policies, want 6", got)
	}
	if label := p.c.Kubectl("get", "crd", "-l", "gateway.networking.k8s.io/policy=Inherited", "-o", "name"); !strings.Contains(label, "loadbalancingpolicies.weir.dev") {
		t.Errorf("policies of Gateway API are %q", label)
	}
	for field, words := range map[string]string{
		"":                                  "Policies are inherited",
		".spec.targetRefs.sectionName":      "name of a port",
		".spec.loadBalancer.maglev":         "a prime up to 5000011",
		".spec.locality.failover.to.type":   "ends the list",
		".spec.hashPolicies.cookie.ttl":     "whole seconds",
		".spec.outlierDetection":            "sits out",
		".status.ancestors.conditions":      "Conflicted",
		".spec.locality.overflow.mode":      "weir.dev/strategy",
		".spec.clients.podSelector":         "labels of clients' pods",
		".spec.slowStart.minWeightPercent":  "The default is 10",
		".spec.locality.failoverThreshold":  "1 to 100",
		".spec.endpointHashKey.type":        "PodName",
		".spec.loadBalancer.ringHash":       "minRingSize",
		".spec.locality.affinity.weight":    "9, 90, 900",
		".spec.locality.costs.cost":         "units of your own",
		".spec.hashPolicies.queryParameter": "query",
	} {
		if text := p.c.Kubectl("explain", "lbp"+field); !strings.Contains(strings.Join(strings.Fields(text), " "), words) {
			t.Errorf("explain lbp%s does not say %q:\n%s", field, words, text)
		}
	}
	if out, err := p.kubectl(document("unknown", to+"algorithm: Random"), "apply", "--validate=strict", "-f", "-"); err == nil || !strings.Contains(out, "algorithm") {
		t.Errorf("an unknown field: %v, %s", err, out)
	}
}

const to = "targetRefs: [{kind: Service, name: web}], "

// refusedPolicies are specs in the namespace shop that the API server refuses, and what its message names.
func refusedPolicies() map[string]string {
	return map[string]string{
		"panicThreshold: 1": "spec.targetRefs",
		"targetRefs: []":    "spec.targetRefs",
		"targetRefs: [{kind: Service, name: a}, {kind: Service, name: a}]":                                         "each target may be there once",
		"targetRefs: [{kind: Pod, name: a}]":                                                                       "spec.targetRefs[0].kind",
		"targetRefs: [{group: apps, kind: Service, name: a}]":                                                      "spec.targetRefs[0].kind",
		`targetRefs: [{kind: Service, name: ""}]`:                                                                  "spec.targetRefs[0].name",
		"targetRefs: [{group: weir.dev, kind: Mesh, name: other}]":                                                 "spec.targetRefs[0].name",
		"targetRefs: [{kind: Namespace, name: shop, sectionName: http}]":                                           "spec.targetRefs[0].sectionName",
		"targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: a, namespace: b}]":                 "spec.targetRefs[0].namespace",
		"targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: a}], loadBalancer: {type: Random}": "spec.targetRefs",
		to + "clients: {zones: []}":                                                                                "spec.clients.zones",
		to + "loadBalancer: {type: Fastest}":                                                                       "spec.loadBalancer.type",
		to + "loadBalancer: {}":                                                                                    "spec.loadBalancer.type",
		to + "loadBalancer: {type: Random, maglev: {tableSize: 7}}":                                                "spec.loadBalancer.maglev",
		to + "loadBalancer: {type: Maglev, ringHash: {}}":                                                          "spec.loadBalancer.ringHash",
		to + "loadBalancer: {type: Maglev, maglev: {tableSize: 5000012}}":                                          "spec.loadBalancer.maglev.tableSize",
		to + "loadBalancer: {type: LeastRequest, leastRequest: {choiceCount: 1}}":                                  "spec.loadBalancer.leastRequest.choiceCount",
		to + `loadBalancer: {type: LeastRequest, leastRequest: {activeRequestBias: "-1"}}`:                         "spec.loadBalancer.leastRequest.activeRequestBias",
		to + "loadBalancer: {type: LeastRequest, leastRequest: {activeRequestBias: 0.5}}":                          "spec.loadBalancer.leastRequest.activeRequestBias",
		to + "loadBalancer: {type: RingHash, ringHash: {minRingSize: 9, maxRingSize: 8}}":                          "spec.loadBalancer.ringHash.minRingSize",
		to + "loadBalancer: {type: RingHash, ringHash: {maxRingSize: 8388609}}":                                    "spec.loadBalancer.ringHash.maxRingSize",
		to + "loadBalancer: {type: RingHash, ringHash: {hashFunction: XX_HASH}}":                                   "spec.loadBalancer.ringHash.hashFunction",
		to + "hashPolicies: [{type: Header}]":                                                                      "spec.hashPolicies[0].header",
		to + "hashPolicies: [{type: SourceIP, cookie: {name: a}}]":                                                 "spec.hashPolicies[0].cookie",
		to + `hashPolicies: [{type: Header, header: {name: ""}}]`:                                                  "spec.hashPolicies[0].header.name",
		to + "hashPolicies: [{type: Cookie, cookie: {name: a, path: b}}]":                                          "spec.hashPolicies[0].cookie.path",
		to + "hashPolicies: [{type: Cookie, cookie: {name: a, ttl: 1 hour}}]":                                      "spec.hashPolicies[0].cookie.ttl",
		to + "hashPolicies: [{type: Cookie, cookie: {name: a, ttl: 1000001h}}]":                                    "spec.hashPolicies[0].cookie.ttl",
		to + "hashPolicies: [{type: Cookie, cookie: {name: a, ttl: 999999999h}}]":                                  "spec.hashPolicies[0].cookie.ttl",
		to + "endpointHashKey: {type: Label}":                                                                      "spec.endpointHashKey.key",
		to + "endpointHashKey: {type: PodName, key: a}":                                                            "spec.endpointHashKey.key",
		to + "locality: {disabled: true, failover: [{to: {type: Any}}]}":                                           "spec.locality.disabled",
		to + "locality: {affinity: [{key: a, weight: 1}, {key: b}]}":                                               "spec.locality.affinity",
		to + "locality: {affinity: [{key: a, weight: 0}]}":                                                         "spec.locality.affinity[0].weight",
		to + "locality: {affinity: [{key: a, weight: 4294967295}, {key: b, weight: 1}]}":                           "spec.locality.affinity",
		to + "locality: {failover: [{to: {type: Only}}]}":                                                          "spec.locality.failover[0].to.zones",
		to + "locality: {failover: [{to: {type: None, zones: [a]}}]}":                                              "spec.locality.failover[0].to.zones",
		to + "locality: {failover: [{from: {zones: []}, to: {type: Any}}]}":                                        "spec.locality.failover[0].from.zones",
		to + "locality: {failoverThreshold: 0}":                                                                    "spec.locality.failoverThreshold",
		to + `locality: {failoverThreshold: "100.5"}`:                                                              "spec.locality.failoverThreshold",
		to + `locality: {overflow: {mode: LoadBand, loadBand: {low: "2", high: "0.8"}}}`:                           "spec.locality.overflow.loadBand.low",
		to + `locality: {overflow: {mode: LoadBand, loadBand: {low: 0, high: 1}}}`:                                 "spec.locality.overflow.loadBand.low",
		to + `locality: {overflow: {mode: Adaptive, loadBand: {low: 1, high: 2}}}`:                                 "spec.locality.overflow.loadBand",
		to + "locality: {overflow: {mode: On}}":                                                                    "spec.locality.overflow.mode",
		to + "slowStart: {}":                                                                                       "spec.slowStart.window",
		to + "slowStart: {window: 0s}":                                                                             "spec.slowStart.window",
		to + "slowStart: {window: 1s}, loadBalancer: {type: Random}":                                               "spec.slowStart",
		to + `slowStart: {window: 1s, aggression: "0"}`:                                                            "spec.slowStart.aggression",
		to + "outlierDetection: {maxEjectionPercent: 101}":                                                         "spec.outlierDetection.maxEjectionPercent",
		to + "outlierDetection: {interval: -1s}":                                                                   "spec.outlierDetection.interval",
		to + "outlierDetection: {consecutive: {serverErrors: -1}}":                                                 "spec.outlierDetection.consecutive.serverErrors",
		to + "panicThreshold: 101":                                                                                 "spec.panicThreshold",
	}
}

func apiServerRefusesBadPolicies(s subtest) {
	t, p := s.T, newPolicyCluster(s.T, s.c)
	p.install()
	defer p.c.Kubectl("delete", "crd", "loadbalancingpolicies.weir.dev")
	for spec, words := range refusedPolicies() {
		if out, err := p.kubectl(document("bad", spec), "create", "-f", "-"); err == nil || !strings.Contains(out, words) {
			t.Errorf("%s\ngives %v, which should name %s:\n%s", spec, err, words, out)
		}
	}
}

func TestTheControllerReportsThePolicyStatus(t *testing.T) {
	t.Parallel()
	p := newPolicyCluster(t, kube.Start(t, kube.Options{}))
	controllers := newControllers(t, p.c)
	controllers.start("one")
	controllers.leader()
	p.c.Kubectl("apply", "-f", examples)
	p.wants("cache-shards", "TargetNotFound", "Reconciling", "there is no Service shop/cache")
	p.wants("weir-system/defaults", "Accepted", "Programmed")
	p.wants("web/search-by-query", "TargetNotFound", "Reconciling", "there is no HTTPRoute web/search")

	p.c.Deploy(kube.AppOptions{Namespace: "shop", Name: "cache"})
	p.wants("cache-shards", "Accepted", "PartiallyProgrammed", "spec.hashPolicies[2]")
	p.wantsMark("shop", "cache", "shop/cache-shards")
	p.c.Deploy(kube.AppOptions{Namespace: "web", Name: "search"})
	p.wants("batch/batch-to-search", "Accepted", "Programmed")
	p.wantsMark("web", "search", "batch/batch-to-search")

	p.c.Deploy(kube.AppOptions{Namespace: "shop", Name: "web"})
	p.apply("first", to+"loadBalancer: {type: Random}")
	p.wants("first", "Accepted", "Programmed")
	p.apply("first-not", to+"loadBalancer: {type: RoundRobin}")
	p.wants("first-not", "Conflicted", "Overridden", "spec.loadBalancer.type: shop/first says otherwise")
	p.apply("first-not", to+"panicThreshold: 10")
	p.wants("first-not", "Accepted", "Programmed")
	p.wantsMark("shop", "web", "shop/first", "shop/first-not")

	p.apply("first", to+"loadBalancer: {type: Maglev, maglev: {tableSize: 100}}")
	p.wants("first", "Invalid", "Reconciling", "spec.loadBalancer.maglev.tableSize: ", "the last valid form")
	p.wantsMark("shop", "web", "shop/first-not")
	p.apply("mesh", "targetRefs: [{group: weir.dev, kind: Mesh, name: default}]")
	p.wants("mesh", "Invalid", "Reconciling", "spec.targetRefs[0]")
	p.apply("elsewhere", "targetRefs: [{kind: Namespace, name: bank}]")
	p.wants("elsewhere", "Invalid", "Reconciling", "spec.targetRefs[0].name")
	p.wantsEvent("first", "Invalid")
	p.wantsEvent("first", "Accepted")

	if table := p.c.Kubectl("get", "lbp", "-n", "shop", "-o", "wide"); !strings.Contains(table, "False") || !strings.Contains(table, "Reconciling") {
		t.Errorf("the table does not show what became of policies:\n%s", table)
	}
	p.c.Kubectl("delete", "lbp", "-n", "shop", "first", "first-not", "cache-shards")
	p.wantsMark("shop", "web")
	p.wantsMark("shop", "cache")
}

// wantsEvent waits until an event about a policy has a reason.
func (p *policyCluster) wantsEvent(policy, reason string) {
	p.Helper()
	p.c.Until(policy+" has an event "+reason, func() error {
		var list eventsv1.EventList
		if err := p.client.List(p.Context(), &list, client.InNamespace("shop")); err != nil {
			return err
		}
		for _, e := range list.Items {
			if e.Regarding.Kind == v1alpha1.Kind && e.Regarding.Name == policy && e.Reason == reason {
				return nil
			}
		}
		return fmt.Errorf("none of %d events", len(list.Items))
	})
}

func TestForeignStatusEntriesStayAndACleanupRemovesOurs(t *testing.T) {
	t.Parallel()
	p := newPolicyCluster(t, kube.Start(t, kube.Options{}))
	controllers := newControllers(t, p.c)
	one := controllers.start("one")
	controllers.leader()
	p.c.Deploy(kube.AppOptions{Namespace: "shop", Name: "web"})
	p.apply("both", to+"panicThreshold: 10")
	p.wants("both", "Accepted", "Programmed")
	policy := &v1alpha1.LoadBalancingPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "both"}}
	const other = `[{"op": "add", "path": "/status/ancestors/0", "value": {"controllerName": "example.com/other", "ancestorRef": {"name": "web"}}}]`
	if err := p.client.Status().Patch(t.Context(), policy, client.RawPatch(types.JSONPatchType, []byte(other))); err != nil {
		t.Fatal(err)
	}
	p.apply("both", to+"panicThreshold: 11")
	p.wants("both", "Accepted", "Programmed")
	p.wantsMark("shop", "web", "shop/both")
	entries := func() (names []string) {
		if err := p.client.Get(t.Context(), client.ObjectKeyFromObject(policy), policy); err != nil {
			t.Fatal(err)
		}
		for _, e := range policy.Status.Ancestors {
			names = append(names, e.ControllerName)
		}
		return names
	}
	if got := fmt.Sprint(entries()); got != "[example.com/other weir.dev/controller]" {
		t.Errorf("the status is by %s", got)
	}
	controllers.stop(one)
	out, err := p.c.RunWeir("controller", "--cleanup", "--kubeconfig="+p.c.AdminKubeconfig())
	if err != nil || !strings.Contains(out, "1 LoadBalancingPolicies") {
		t.Errorf("%v: %s", err, out)
	}
	if got := fmt.Sprint(entries()); got != "[example.com/other]" {
		t.Errorf("after the cleanup the status is by %s", got)
	}
	p.wantsMark("shop", "web")
}

func TestTheResourceMayBeInstalledLater(t *testing.T) {
	t.Parallel()
	p := newPolicyCluster(t, kube.Start(t, kube.Options{}))
	controllers := newControllers(t, p.c)
	p.c.Kubectl("delete", "crd", "loadbalancingpolicies.weir.dev")
	p.c.Until("the resource is gone", func() error {
		err := p.client.List(t.Context(), new(v1alpha1.LoadBalancingPolicyList))
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			return nil
		}
		return errors.Join(errors.New("it is not refused"), err)
	})
	controllers.start("one")
	controllers.leader()
	p.c.Deploy(kube.AppOptions{Namespace: "shop", Name: "web"})
	p.install()
	p.apply("late", to+"panicThreshold: 10")
	p.wants("late", "Accepted", "Programmed")
}
