//go:build peers

package peers_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestAutobahn runs the Autobahn suite through weir, all cases but those about speed and compression, which the endpoint decides.
func TestAutobahn(t *testing.T) {
	install := exec.CommandContext(t.Context(), "./autobahn.sh")
	install.Stderr = os.Stderr
	program, err := install.Output()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(echo))
	defer server.Close()
	p := startWeir(t, "127.78.5.1", []route{{name: "socket", endpoint: server.Listener.Addr().String()}})
	reports := t.TempDir()
	spec := p.write(t, "spec.json", fmt.Sprintf(`{"outdir": %q, "servers": [{"agent": "weir", "url": "ws://%s"}],
		"cases": ["*"], "exclude-cases": ["9.7.*", "9.8.*", "12.*", "13.*"], "exclude-agent-cases": {}}`, reports, p.address["socket"]))
	if out, err := exec.CommandContext(t.Context(), strings.TrimSpace(string(program)), "-m", "fuzzingclient", "-s", spec).CombinedOutput(); err != nil {
		t.Fatalf("wstest: %v\n%s", err, out)
	}
	index, err := os.ReadFile(filepath.Join(reports, "index.json"))
	if err != nil {
		t.Fatal(err)
	}
	var verdicts map[string]map[string]struct{ Behavior, BehaviorClose string }
	if err := json.Unmarshal(index, &verdicts); err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for name, v := range verdicts["weir"] {
		counts[v.Behavior]++
		if v.Behavior != "OK" && v.Behavior != "INFORMATIONAL" || v.BehaviorClose != "OK" && v.BehaviorClose != "INFORMATIONAL" {
			t.Errorf("%s: %s, closing %s", name, v.Behavior, v.BehaviorClose)
		}
	}
	t.Logf("verdicts: %v", counts)
	if len(verdicts["weir"]) < 240 {
		t.Errorf("%d cases ran", len(verdicts["weir"]))
	}
}
