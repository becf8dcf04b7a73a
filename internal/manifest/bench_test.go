package manifest_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/weir-lb/weir/internal/manifest"
)

// BenchmarkRead reads what kubectl prints of a cluster with 400 nodes, 300 services and 600 endpoints.
func BenchmarkRead(b *testing.B) {
	data, err := os.ReadFile("testdata/cluster/kubectl-get.yaml")
	if err != nil {
		b.Fatal(err)
	}
	var text bytes.Buffer
	for i := range 100 {
		// Names differ from copy to copy, so that none is left out as a duplicate.
		names := strings.NewReplacer("web", fmt.Sprintf("web%d", i), "worker", fmt.Sprintf("worker%d", i),
			"control-1", fmt.Sprintf("control%d", i), "payments", fmt.Sprintf("payments%d", i))
		text.WriteString(names.Replace(string(data)))
		text.WriteString("---\n")
	}
	b.SetBytes(int64(text.Len()))
	b.ReportAllocs()
	for b.Loop() {
		source := manifest.Source{Paths: []string{manifest.Stdin}, Stdin: strings.NewReader(text.String())}
		if _, err := manifest.Read(b.Context(), source, manifest.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
