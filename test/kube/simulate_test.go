//go:build e2e

package kube_test

import (
	"os"
	"path/filepath"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/weir-lb/weir/test/kube"
)

// whatIf is what the test reads of weir simulate --service -o json.
type whatIf struct {
	Service, Mode string
	Utilisation   float64
	Answers       []struct {
		Question, Strategy string
		Before, After      struct{ InZone, Success, DollarsPerMonth float64 }
	}
}

func simulateAnswersAClusterAndItsManifestsAlike(s subtest) {
	t, c := s.T, s.c
	web := c.Deploy(kube.AppOptions{
		Namespace: "simulate", Name: "web", Distribution: corev1.ServiceTrafficDistributionPreferSameZone,
		Pods: map[string]int{"zone-a": 3, "zone-b": 1, "zone-c": 2},
	})
	web.SetReady(web.Pods("zone-a")[2], corev1.ConditionFalse)
	web.AwaitSlices()

	dump := filepath.Join(t.TempDir(), "dump.yaml")
	text := c.Kubectl("get", "nodes,services,endpointslices.discovery.k8s.io", "-A", "-o", "yaml")
	if err := os.WriteFile(dump, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ask := func(source ...string) whatIf {
		args := append([]string{
			"simulate", "--quiet", "--service", "simulate/web", "--rate", "zone-a:30,zone-b:30,zone-c:30", "--workers", "4",
			"--mode", "Disabled", "--lose", "zone-b", "--seeds", "1", "-o", "json",
		}, source...)
		out, err := c.RunWeir(args...)
		if err != nil {
			t.Fatal(err)
		}
		var answer whatIf
		decode(t, out, &answer)
		return answer
	}
	live := ask("--kubeconfig", c.AdminKubeconfig())
	if diff := cmp.Diff(ask("-f", dump), live); diff != "" {
		t.Errorf("the live cluster and its manifests differ (-manifests +live):\n%s", diff)
	}

	if live.Service != "simulate/web" || live.Mode != "PreferSameZone" || len(live.Answers) != 4 {
		t.Fatalf("answers %+v", live)
	}
	// 90 requests/s of 20 ms on five ready endpoints with four workers.
	if want := 90 * 0.02 / 20; live.Utilisation < want*0.999 || live.Utilisation > want*1.001 {
		t.Errorf("the endpoints are %.4f busy, want %.4f", live.Utilisation, want)
	}
	blind, lost := live.Answers[0], live.Answers[2]
	if blind.Before.InZone != 1 || blind.Before.DollarsPerMonth != 0 {
		t.Errorf("as it is all traffic stays in its zone for nothing, yet the answer is %+v", blind.Before)
	}
	// Two fifths, one fifth and two fifths of a third each stay; the rest is 20 KiB a request, $0.02 a GB, 730 h a month.
	if inZone := blind.After.InZone; inZone < 0.30 || inZone > 0.37 {
		t.Errorf("without hints %.3f stay in their zone, want about a third", inZone)
	}
	const month = 90 * 2.0 / 3 * 20480 * 3600 * 730 / 1e9 * 0.02
	if got := blind.After.DollarsPerMonth; got < 0.9*month || got > 1.1*month {
		t.Errorf("without hints a month costs $%.2f, want about $%.2f", got, month)
	}
	if lost.Question != "lose-zone-b" || lost.Strategy != "kube-proxy" || lost.After.Success > 0.9 {
		t.Errorf("kube-proxy does not see for 40 s that zone-b is lost, yet the answer is %+v", lost)
	}
}
