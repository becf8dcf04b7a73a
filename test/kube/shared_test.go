//go:build e2e

package kube_test

import (
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/weir-lb/weir/test/kube"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // of the caches with which tests read a cluster
	m.Run()
}

// subtest is a test on a control plane that it shares with others, which run before and after it and not beside it.
type subtest struct {
	*testing.T
	c *kube.Cluster
}

// TestOnASharedControlPlane runs the tests that need neither weir's controller nor a control plane of their own.
//
// Each has a namespace of its own, or removes what it made: cluster-wide objects as well. There are two nodes in each of
// three zones.
func TestOnASharedControlPlane(t *testing.T) {
	t.Parallel()
	c := kube.Start(t, kube.Options{})
	c.Nodes(2, "zone-a", "zone-b", "zone-c")
	for _, one := range []struct {
		name string
		run  func(subtest)
	}{
		{"BuiltInControllerHintsPodsThatAreOnlyObjects", hintsPodsThatAreOnlyObjects},
		{"ChurnKeepsTheNumberOfPodsAndItsWritesAreAudited", churnKeepsTheNumberOfPods},
		{"ServiceAccountMayDoWhatItsRolesSay", serviceAccountMayDoWhatItsRolesSay},
		{"NodesAddressesCanBeUsedAtOnce", nodesAddressesCanBeUsedAtOnce},
		{"KubeProxyProgramsWhatWeirChoosesFromTheBuiltInHints", kubeProxyProgramsWhatWeirChooses},
		{"KubeProxyFollowsReadinessAndZonesAsWeirDoes", kubeProxyFollowsReadinessAsWeirDoes},
		{"KubeProxyUsesForeignHints", kubeProxyUsesForeignHints},
		{"WeirRunsOnANodeAndReachesTheAPIServerFromThere", weirRunsOnANode},
		{"ExplainTellsHowAClusterStands", explainTellsHowAClusterStands},
		{"ExplainSaysWhichPermissionIsMissing", explainSaysWhichPermissionIsMissing},
		{"SimulateAnswersALiveClusterAndItsManifestsAlike", simulateAnswersAClusterAndItsManifestsAlike},
		{"APIServerCallsAWebhookByItsService", apiServerCallsAWebhookByItsService},
		{"APIServerTakesGoodPoliciesAndExplainsThem", apiServerTakesGoodPolicies},
		{"APIServerRefusesBadPoliciesAndNamesTheField", apiServerRefusesBadPolicies},
		{"APIServerTakesWhatTheChartRenders", apiServerTakesWhatTheChartRenders},
		{"PlainManifestsInstallAndDemandLittle", plainManifestsInstallAndDemandLittle},
		{"RolesLetWeirDoItsWorkAndNothingBesides", rolesLetWeirDoItsWork},
		{"UpgradeKeepsTheCertificateAndTheCleanUpComesLast", upgradeKeepsTheCertificate},
		{"OutageRefusesConnectionsAndEndsWithTheSameState", outageEndsWithTheSameState},
	} {
		t.Run(one.name, func(t *testing.T) { one.run(subtest{t, c.For(t)}) })
	}
}
